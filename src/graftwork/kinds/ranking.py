"""Ranking: ordering of a query's candidates, relevant ones first."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graftwork.core.example import Example
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.targets.listwise import Listwise

if TYPE_CHECKING:
    from graftwork.core.ragged import Ragged

METRICS = ("mean_average_precision", "mean_reciprocal_rank")
FIRST = "the first relevant one"
RANKS = {"rank 1": 1, "rank 2": 2, "rank 3": 3, "rank 4 to 10": 10, "rank 11 or lower": math.inf}  # band -> its last


class Ranking(Listwise):
    """Targets are a mark per candidate, 1 where relevant, with any number of them; a logit per candidate."""

    right_means = "a relevant candidate at rank 1"

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

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"ranking": [{"choice", "index"}, …]}` of the relevant candidates alone."""
        choices = example.inputs["choices"]
        return {"ranking": [{"choice": choices[i], "index": i} for i, mark in enumerate(example.target) if mark]}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the first candidate."""
        return str(answer["ranking"][0]["choice"]) if answer["ranking"] else "(none)"

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return one outcome: the rank of the first relevant candidate; none for a query without one."""
        relevant = {item["index"] for item in expected["ranking"]}
        rank = next((rank for rank, item in enumerate(answer["ranking"], 1) if item["index"] in relevant), 0)
        if not rank:
            return []
        band = next(name for name, last in RANKS.items() if rank <= last)
        return [Outcome(FIRST, band, rank == 1)]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return what is ranked, and the bands of ranks."""
        return [FIRST, *RANKS]


kinds.register("ranking")(Ranking())
