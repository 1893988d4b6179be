"""Ranking: the candidates of a query in order, those that are relevant first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
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

METRICS = ("mean_average_precision", "mean_reciprocal_rank")


class Ranking:
    """Targets are a mark per candidate, 1 where relevant, be it none or several; a logit per candidate."""

    per_word = False
    per_choice: Literal[True] = True
    mends = ""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """One mark per candidate. Raises `DataError` for a grade or a word."""
        return parse_marks(text, where)

    def settle(
        self, target: tuple[int, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[int, ...], int]:
        """As it is. Raises `DataError` where marks and candidates don't belong together."""
        settle_marks(target, inputs, where)
        return target, 0

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in the metrics.

        Raises `ConfigError` for a positive class or labels, `DataError` where no query tells candidates apart.
        """
        if task.positive is not None or task.labels:
            raise ConfigError("a ranking has no classes", do="remove --positive and labels")
        if not any(0 < sum(target) < len(target) for target in targets):
            raise DataError(
                "no query has both relevant candidates and others: there is nothing to learn",
                where=str(task.data),
                got=f"{len(targets)} queries",
                do="choose another column with --label",
            )
        return task.resolved(metrics=task.metrics or METRICS)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Whether any candidate is relevant."""
        return [any(target) for target in targets]

    def encode(self, targets: Sequence[Any], task: Task) -> Ragged:
        """(W, 2) int64: the marks, and the number of the query of each."""
        return encode_marks(targets)

    def outputs(self, task: Task) -> int:
        """1: a logit for each candidate."""
        return 1

    def build_head(self, task: Task, width: int) -> nn.Module:
        """A linear layer (P -> 1), the same for every candidate."""
        return PooledHead(width, 1)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Listwise softmax cross entropy of (W, 1) logits, mean over the queries with a relevant candidate, in nats."""
        return listwise_loss(logits, targets)

    def weight(self, targets: Tensor) -> float:
        """The examples with a right candidate."""
        return answered(targets)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """(places, 1) log shares of the places of relevant candidates."""
        return place_shares(targets)

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """(W, 1) -> (W, 2) float64: the scores, and the number of the query of each."""
        return scored(logits)

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, 1) -> per query `{"ranking": [{"choice", "index", "score"}, …]}`, best first, equals in their order.

        Scores are logits: their differences mean something, within one query.
        """
        answers = []
        for scores, example in zip(logits, examples, strict=True):
            choices = example.inputs["choices"]
            order = np.argsort(-scores[:, 0], kind="stable").tolist()
            listed = [{"choice": choices[i], "index": i, "score": float(scores[i, 0])} for i in order]
            answers.append({"ranking": listed})
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """A line for each choice, with its score."""
        return "\n".join(f"{item['score']:8.4f}  {item['choice']}" for item in answer["ranking"])


kinds.register("ranking")(Ranking())
