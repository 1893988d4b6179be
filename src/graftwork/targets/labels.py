"""Label names and their indices, shared by the kinds whose targets are labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, clip, nearest

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(text: str) -> bool:
    """Return whether this is a finite decimal number such as `3`, `-0.5` or `1e-3`."""
    return bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text))


def labels_of(target: Any) -> tuple[str, ...]:
    """Return the labels of a target of any kind: one, several, or none for a number or marks."""
    if isinstance(target, str):
        return (target,)
    return tuple(item for item in target if isinstance(item, str)) if isinstance(target, tuple) else ()


def require_label(label: str, task: Task, where: str) -> None:
    """Raise `DataError` unless `label` is a name and, where the task lists its labels, one of them."""
    if not label.strip():
        raise DataError(
            "the label is empty",
            where=where,
            got=clip(label),
            expected="a name",
            do="remove the row or fill the label in",
        )
    if task.labels and label not in task.labels:
        near = nearest(label, task.labels)
        raise DataError(
            f"unknown label {clip(label)}",
            where=where,
            expected=f"one of {', '.join(task.labels)}",
            do=f"did you mean {near!r}?" if near else "add it to the task's labels or remove the row",
        )


def resolve_labels(task: Task, targets: Sequence[Any]) -> tuple[str, ...]:
    """Return the task's labels, else the targets' labels, sorted. Raises `ConfigError` when one is listed twice."""
    twice = [label for label, count in Counter(task.labels).items() if count > 1]
    if twice:
        raise ConfigError(f"the task lists the label {twice[0]!r} twice", do="remove one of them")
    return task.labels or tuple(sorted({label for target in targets for label in labels_of(target)}))


def label_sentence(label: str, probabilities: Mapping[str, float]) -> str:
    """Format the label and the three most probable: `refund   (refund 0.910, order 0.050, other 0.020)`."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])[:3]
    return f"{label}   ({', '.join(f'{name} {chance:.3f}' for name, chance in ranked)})"


def label_indices(task: Task) -> dict[str, int]:
    """Map each label to its class index."""
    return {label: index for index, label in enumerate(task.labels)}


def positive_label(task: Task, labels: tuple[str, ...], counts: Counter[str]) -> str | None:
    """Return the positive class of `f1`: the task's, else the rarer one of two, else None.

    Raises `ConfigError` when the task names a class that is not a label.
    """
    given: str | None = task.settings.positive
    if given is not None:
        if given not in labels:
            near = nearest(given, labels)
            raise ConfigError(
                f"the positive class {given!r} is no label of the data",
                expected=f"one of {', '.join(labels)}",
                do=f"did you mean {near!r}?" if near else "name one of these, or leave it out",
            )
        return given
    return min(reversed(labels), key=lambda label: counts[label]) if len(labels) == 2 else None
