"""Misclassification costs, and the checks that costs and class weights name the labels of the task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from graftwork.core.task import Task
from graftwork.errors import ConfigError, clip

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def require_weights(task: Task, labels: Sequence[str]) -> None:
    """Raise `ConfigError` if the task's class weights do not name exactly its labels."""
    if isinstance(weights := task.settings.class_weights, Mapping):
        _require_labels(weights, labels, "class_weights")


def require_costs(task: Task, labels: Sequence[str]) -> None:
    """Raise `ConfigError` if the costs do not name exactly the labels, leave no choice, or meet class weights."""
    if (costs := task.settings.costs) is not None:
        _require_labels(costs, labels, "costs")
        _require_choice(costs)
        if task.settings.class_weights is not None:
            raise ConfigError(
                "costs need the probabilities as they are, and class_weights shift them",
                expected="one of the two",
                do="leave class_weights out: with costs, labels that are expensive to miss are predicted more often",
            )


def cost_matrix(task: Task) -> NDArray[np.float64]:
    """Return (C, C), the cost of each answer (a column) for each true label (a row), in the order of the labels.

    Without costs of its own, a task has 0 for a right answer and 1 for a wrong one.
    """
    import numpy as np

    costs = task.settings.costs
    if costs is None:
        return 1.0 - np.eye(len(task.labels))
    return np.array([[costs[true][said] for said in task.labels] for true in task.labels], dtype=np.float64)


def _require_labels(named: Iterable[str], labels: Sequence[str], setting: str) -> None:
    known = list(named)
    unknown, missing = [one for one in known if one not in labels], [one for one in labels if one not in known]
    if unknown or missing:
        which = unknown[0] if unknown else missing[0]
        raise ConfigError(
            f"{setting} name {clip(which)}, which is no label of the data"
            if unknown
            else f"{setting} lack {clip(which)}",
            got=", ".join(map(clip, known)),
            expected=f"each label once: {', '.join(map(clip, labels))}",
            do="labels are compared letter by letter, white space included" if unknown else f"add {clip(which)}",
        )


def _require_choice(costs: Mapping[str, Mapping[str, float]]) -> None:
    """Raise `ConfigError` where one answer never costs more than any other: it would always be given (Elkan 2001)."""
    for said in costs:
        if all(row[said] <= min(row.values()) for row in costs.values()):
            raise ConfigError(
                f"the answer {clip(said)} is the cheapest whatever the true label is: it would always be given",
                got="; ".join(
                    f"{clip(true)} costs {row[said]:g}, others {_others(row, said)}" for true, row in costs.items()
                ),
                expected="for each answer a true label where another answer costs less",
                do="rows are true labels, columns are answers; a right answer usually costs 0",
            )


def _others(row: Mapping[str, float], said: str) -> str:
    return ", ".join(f"{cost:g}" for answer, cost in row.items() if answer != said)
