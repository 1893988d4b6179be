"""Shared code of kinds over candidates: one logit per candidate, compared within its example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.task import Task
from graftwork.errors import DataError, clip
from graftwork.targets.choices import check_choices, encode_marks, parse_marks
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
    count_from: Literal["0", "1"] | None = None  # number of the first choice in labels; None: 0, unless it could be 1


class Listwise(PooledKind):
    """A base of kinds with one mark per candidate, 1 if right; a kind adds `resolve`, `strata` and answers."""

    settings: type[Any] = ChoiceSettings
    has_labels = False
    per_choice: Literal[True] = True

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """Parse one mark per candidate. Raises `DataError` for a grade or a word."""
        return parse_marks(text, where)

    def settle(
        self, target: tuple[int, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[int, ...], int]:
        """Return the target unchanged. Raises `DataError` if marks do not fit the choices, or differ for equal ones."""
        choices = inputs["choices"]
        check_choices(choices, where)
        if len(target) != len(choices):
            raise DataError(
                "the numbers of choices and marks differ",
                where=where,
                got=f"{len(choices)} choices, {len(target)} marks",
                expected="a mark, 0 or 1, for each choice",
                do="mend the row or remove it",
            )
        known: dict[str, int] = {}
        for choice, mark in zip(choices, target, strict=True):
            if known.setdefault(choice, mark) != mark:
                raise DataError(
                    "the same choice is right and wrong",
                    where=where,
                    got=clip(choice),
                    expected="one mark for equal choices",
                    do="remove one of the two or mend it",
                )
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
        from graftwork.nn.listwise_loss import count_answered

        return count_answered(targets)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """Return the log shares (places, 1) of the first, second, … candidate being right."""
        import numpy as np

        places = np.arange(len(targets.flat)) - np.repeat(targets.starts, targets.counts)
        right = np.bincount(places, weights=targets.flat[:, 0])
        return np.asarray(np.log(np.maximum(right / max(1, len(targets)), 1e-9)))[:, None]

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """Map (W, 1) to (W, 2) float64: the scores and their example numbers."""
        import numpy as np

        from graftwork.core.ragged import Ragged

        return Ragged(np.stack([logits.flat[:, 0], logits.owners.astype(np.float64)], axis=1), logits.counts)
