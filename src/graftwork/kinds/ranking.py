"""Ranking: ordering of a query's candidates, relevant ones first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.targets.listwise import Listwise

if TYPE_CHECKING:
    from graftwork.core.ragged import Ragged

METRICS = ("mean_average_precision", "mean_reciprocal_rank")


class Ranking(Listwise):
    """Targets are a mark per candidate, 1 where relevant, with any number of them; a logit per candidate."""

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in the metrics. Raises `DataError` where no query has both relevant and other candidates."""
        if not any(0 < sum(target) < len(target) for target in targets):
            raise DataError(
                "no query has both relevant candidates and others: there is nothing to learn",
                where=str(task.data),
                got=f"{len(targets)} queries",
                do="choose another column with --label",
            )
        return task.resolved(metrics=task.metrics or METRICS)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return for each query whether any candidate is relevant."""
        return [any(target) for target in targets]

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, 1) -> `{"ranking": [{"choice", "index", "score"}, …]}` per query, best first, ties in their order.

        Scores are logits: only their differences within one query are meaningful.
        """
        import numpy as np

        answers = []
        for scores, example in zip(logits, examples, strict=True):
            choices = example.inputs["choices"]
            order = np.argsort(-scores[:, 0], kind="stable").tolist()
            listed = [{"choice": choices[i], "index": i, "score": float(scores[i, 0])} for i in order]
            answers.append({"ranking": listed})
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format a line for each choice, with its score."""
        return "\n".join(f"{item['score']:8.4f}  {item['choice']}" for item in answer["ranking"])


kinds.register("ranking")(Ranking())
