"""Choice: selection of the one right candidate for a text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graftwork.core.example import Example
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.targets.choices import parse_marks
from graftwork.targets.listwise import Listwise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graftwork.core.ragged import Ragged

METRICS = ("accuracy",)


class Choice(Listwise):
    """Targets are a mark per candidate, 1 for the right one; a logit per candidate; cross entropy over each text's."""

    right_means = "the right choice"

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[int, ...]:
        """Parse one mark per candidate. Raises `DataError` unless exactly one is 1."""
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

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in the metrics."""
        return task.resolved(metrics=task.metrics or METRICS)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return the index of the right choice."""
        return [target.index(1) for target in targets]

    def right_class(self, targets: Ragged) -> NDArray[np.int64]:
        """Return the number (N,) of the choice that is marked in the targets (W, 2), counted from 0."""
        import numpy as np

        return np.asarray(np.flatnonzero(targets.flat[:, 0]) - targets.starts, dtype=np.int64)

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, 1) -> `{"choice", "index", "probabilities"}` per example: the first of ties; `index` counts from 0."""
        from scipy.special import softmax

        answers = []
        for scores, example in zip(logits, examples, strict=True):
            chances, index = softmax(scores[:, 0]), int(scores[:, 0].argmax())
            choice = example.inputs["choices"][index]
            answers.append({"choice": choice, "index": index, "probabilities": chances.tolist()})
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the choice: `the glass broke   (2 of 2, 0.731)`."""
        chances, index = answer["probabilities"], answer["index"]
        return f"{answer['choice']}   ({index + 1} of {len(chances)}, {chances[index]:.3f})"

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"choice", "index"}` of the right choice."""
        index = example.target.index(1)
        return {"choice": example.inputs["choices"][index], "index": index}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the number of the choice and its text."""
        return f"{answer['index'] + 1}: {answer['choice']}"

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return one outcome: the places of the two choices."""
        places = [answer_of["index"] for answer_of in (expected, answer)]
        return [Outcome(f"choice {places[0] + 1}", f"choice {places[1] + 1}", places[0] == places[1])]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return names for two to ten choices."""
        return [f"choice {place}" for place in range(1, 11)]


kinds.register("choice")(Choice())
