"""What kinds over candidates share: a logit per candidate, judged beside the others of its example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.targets.choices import (
    encode_marks,
    parse_marks,
    place_shares,
    scored,
    settle_marks,
)

if TYPE_CHECKING:
    from torch import Tensor, nn


class Listwise:
    """Targets are a mark per candidate, 1 where right. A kind adds its metrics (`resolve`), `strata` and answers."""

    per_word = False
    settings: tuple[str, ...] = ("choices", "count_from")
    per_choice: Literal[True] = True
    mends = ""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """One mark per candidate. Raises `DataError` for a grade or a word."""
        return parse_marks(text, where)

    def settle(
        self, target: tuple[int, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[int, ...], int]:
        """As it is. Raises `DataError` where marks and candidates don't belong together, and for unlike twins."""
        settle_marks(target, inputs, where)
        return target, 0

    def encode(self, targets: Sequence[Any], task: Task) -> Ragged:
        """(W, 2) int64: the marks, and the number of the example of each."""
        return encode_marks(targets)

    def outputs(self, task: Task) -> int:
        """1: a logit for each candidate."""
        return 1

    def build_head(self, task: Task, width: int) -> nn.Module:
        """A linear layer (P -> 1), the same for every candidate."""
        from graftwork.targets.linear_head import PooledHead

        return PooledHead(width, 1)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Listwise softmax cross entropy of (W, 1) logits, mean over the examples with a right candidate, in nats."""
        from graftwork.nn.listwise_loss import listwise_loss

        return listwise_loss(logits, targets)

    def weight(self, targets: Tensor) -> float:
        """The examples with a right candidate."""
        from graftwork.nn.listwise_loss import answered

        return answered(targets)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """(places, 1) log shares of the places of right candidates."""
        return place_shares(targets)

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """(W, 1) -> (W, 2) float64: the scores, and the number of the example of each."""
        return scored(logits)
