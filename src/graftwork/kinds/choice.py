"""Choice: which of several candidates goes with a text; one is right."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor, nn

from graftwork.core.choices import (
    answered,
    encode_marks,
    listwise_loss,
    parse_marks,
    place_shares,
    scored,
    settle_marks,
)
from graftwork.core.example import Example
from graftwork.core.head import PooledHead
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.registry import kinds

METRICS = ("accuracy",)


class Choice:
    """Targets are a mark per candidate, 1 for the right one; a logit per candidate; cross entropy over a text's."""

    per_word = False
    per_choice: Literal[True] = True
    mends = ""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """One mark per candidate. Raises `DataError` unless exactly one is 1."""
        marks = parse_marks(text, where)
        if sum(marks) != 1:
            raise DataError(
                "not exactly one choice is right",
                where=where,
                got=f"{sum(marks)} of {len(marks)}",
                expected="one",
                do="mend the row or remove it; where several may be right: --kind ranking",
            )
        return marks

    def settle(
        self, target: tuple[int, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[int, ...], int]:
        """As it is. Raises `DataError` where marks and choices don't belong together, and for a choice given twice."""
        settle_marks(target, inputs, where)
        return target, 0

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in the metrics. Raises `ConfigError` for a positive class or labels: a choice has neither."""
        if task.positive is not None or task.labels:
            raise ConfigError("a choice has no classes", do="remove --positive and labels")
        return task.resolved(metrics=task.metrics or METRICS)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """The place of the right choice."""
        return [target.index(1) for target in targets]

    def encode(self, targets: Sequence[Any], task: Task) -> Ragged:
        """(W, 2) int64: the marks, and the number of the example of each."""
        return encode_marks(targets)

    def outputs(self, task: Task) -> int:
        """1: a logit for each choice."""
        return 1

    def build_head(self, task: Task, width: int) -> nn.Module:
        """A linear layer (P -> 1), the same for every choice."""
        return PooledHead(width, 1)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of (W, 1) logits over the choices of each example, mean over examples, in nats."""
        return listwise_loss(logits, targets)

    def weight(self, targets: Tensor) -> float:
        """The examples with a right candidate."""
        return answered(targets)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """(places, 1) log shares of the places of right choices."""
        return place_shares(targets)

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """(W, 1) -> (W, 2) float64: the scores, and the number of the example of each."""
        return scored(logits)

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, 1) -> per example `{"choice", "index", "probabilities"}`: of equals the first; `index` is from 0."""
        answers = []
        for scores, example in zip(logits, examples, strict=True):
            chances, index = softmax(scores[:, 0]), int(scores[:, 0].argmax())
            choice = example.inputs["choices"][index]
            answers.append({"choice": choice, "index": index, "probabilities": chances.tolist()})
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """`the glass broke   (2 of 2, 0.731)`."""
        chances, index = answer["probabilities"], answer["index"]
        return f"{answer['choice']}   ({index + 1} of {len(chances)}, {chances[index]:.3f})"


kinds.register("choice")(Choice())
