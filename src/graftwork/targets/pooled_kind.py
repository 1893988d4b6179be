"""Base of the kinds whose head is one linear layer on pooled features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graftwork.core.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn


class PooledKind:
    """Methods of a `Kind` with a logit per label, whose loss is the mean over its rows (words, for tags)."""

    per_word = False
    repairs = ""

    def settle(self, target: Any, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Any, int]:
        """Return the target unchanged, with no repairs: it does not depend on the inputs."""
        return target, 0

    def outputs(self, task: Task) -> int:
        """Return C, the number of labels."""
        return len(task.labels)

    def build_head(self, task: Task, width: int) -> nn.Module:
        """Build a linear layer (P -> C)."""
        from graftwork.targets.linear_head import PooledHead

        return PooledHead(width, self.outputs(task))

    def weight(self, targets: Tensor) -> float:
        """Return the number of rows, B, or of words, W."""
        return len(targets)
