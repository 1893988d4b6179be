"""Shared code of kinds over candidates: one logit per candidate, compared within its example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.task import Task
from graftwork.targets.choices import (
    encode_marks,
    parse_marks,
    place_shares,
    scored,
    settle_marks,
)
from graftwork.targets.pooled_kind import PooledKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from graftwork.core.ragged import Ragged


@dataclass(frozen=True)
class ChoiceSettings:
    """The settings of kinds over candidates."""

    choices: tuple[str, ...] = ()  # columns of the choices, or the one of their lists; empty: found by name
    count_from: Literal["0", "1"] | None = None  # what labels call the first choice; None: 0 where that is certain


class Listwise(PooledKind):
    """A base of kinds with one mark per candidate, 1 if right; a kind adds `resolve`, `strata` and answers."""

    per_word = False
    settings: type[Any] = ChoiceSettings
    has_labels = False
    per_choice: Literal[True] = True
    mends = ""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """Parse one mark per candidate. Raises `DataError` for a grade or a word."""
        return parse_marks(text, where)

    def settle(
        self, target: tuple[int, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[int, ...], int]:
        """Return the target unchanged. Raises `DataError` if marks and choices mismatch, or equal choices differ."""
        settle_marks(target, inputs, where)
        return target, 0

    def encode(self, targets: Sequence[Any], task: Task) -> Ragged:
        """Encode the marks as (W, 2) int64: mark and example number."""
        return encode_marks(targets)

    def outputs(self, task: Task) -> int:
        """Return 1: one logit per candidate."""
        return 1

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the listwise softmax cross entropy of (W, 1) in nats, mean over examples with a right one."""
        from graftwork.nn.listwise_loss import listwise_loss

        return listwise_loss(logits, targets)

    def weight(self, targets: Tensor) -> float:
        """Return the number of examples with a right candidate."""
        from graftwork.nn.listwise_loss import answered

        return answered(targets)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """Return the log shares (places, 1) of the positions of right candidates."""
        return place_shares(targets)

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """Map (W, 1) to (W, 2) float64: the scores and their example numbers."""
        return scored(logits)
