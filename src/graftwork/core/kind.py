"""A kind: how one sort of question becomes numbers and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn


class Kind(Protocol):
    """Stateless. Targets are str, tuple[str, ...] or float; encoded they are (N,) or (N, C) arrays."""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> Any:
        """The target that stands in the file as `text` (a tuple: a list in JSONL).

        `where` is `file:line` for the `DataError`.
        """

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """`task` with labels, positive class, scale and metrics filled in from the training targets."""

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """A key per target; a stratified split draws the same share of every key."""

    def encode(self, targets: Sequence[Any], task: Task) -> NDArray[np.generic]:
        """Targets as numbers. Raises `DataError` naming a label that the task does not have."""

    def outputs(self, task: Task) -> int:
        """C, the number of logits."""

    def build_head(self, task: Task, width: int) -> nn.Module:
        """A module `Features -> logits (B, C)`."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(B, C) logits and encoded targets -> scalar, the mean over B."""

    def constant(self, targets: NDArray[np.generic], task: Task) -> NDArray[np.float64]:
        """(C,) logits of the best answer that never looks at the input: the majority class, or the mean."""

    def predictions(self, logits: NDArray[np.float64], task: Task) -> NDArray[np.generic]:
        """(B, C) logits -> what `encode` would return for the predicted targets. What metrics compare."""

    def decode(self, logits: NDArray[np.float64], task: Task) -> list[dict[str, Any]]:
        """(B, C) logits -> per example the answer as JSON: `{"label", "probabilities"}` or `{"value"}`.

        `label` is a list where an example may have several.
        """
