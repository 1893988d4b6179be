"""Generated texts with their log-probabilities, the outputs of the kind generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.kind import WritesTexts
from graftwork.core.method import Baseline, LooksUp, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import kinds

WRITTEN = np.dtype([("text", object), ("log_probability", np.float64), ("cut", np.bool_), ("alternatives", object)])
# the text; the sum of its tokens' log-probabilities in nats, end token included; whether it was cut at the maximum
# length; a tuple of `Text`: the results of the other beams, best first

Text = tuple[str, float, bool]  # a text, its log-probability, and whether it was cut


def written_array(
    texts: Sequence[str],
    log_probabilities: Sequence[float],
    cut: Sequence[bool],
    alternatives: Sequence[tuple[Text, ...]] | None = None,
) -> NDArray[Any]:
    """Return (N,) of `WRITTEN`, without alternatives where none are given."""
    others = [()] * len(texts) if alternatives is None else alternatives
    return np.array(list(zip(texts, log_probabilities, cut, others, strict=True)), dtype=WRITTEN)


def written_by_rank(ranks: Sequence[Sequence[Text]]) -> NDArray[Any]:
    """Return (N,) of `WRITTEN` from the N best texts, the N second best, and so on; without repeated texts."""
    rows = []
    for best, *others in zip(*ranks, strict=True):
        apart = {other[0]: other for other in reversed(others) if other[0] != best[0]}
        rows.append((*best, tuple(reversed(apart.values()))))
    return np.array(rows, dtype=WRITTEN)


def written_from_lists(rows: Sequence[Any]) -> NDArray[Any]:
    """Convert the `tolist` of an array of `WRITTEN` from JSON. Raises `ValueError` or `TypeError` for anything else."""
    told = [(_text(row[:3]), tuple(map(_text, row[3] if len(row) > 3 else ()))) for row in rows]  # older ones have none
    return np.array([(*text, others) for text, others in told], dtype=WRITTEN)


def _text(row: Sequence[Any]) -> Text:
    text, log_probability, cut = row
    if not (isinstance(text, str) and isinstance(log_probability, float | int) and isinstance(cut, bool)):
        raise TypeError(f"{row!r} is not a text, its log-probability and whether it is cut")
    return text, log_probability, cut


def certainly(texts: Sequence[str]) -> NDArray[Any]:
    """Return (N,) of `WRITTEN`: these texts with probability 1, whole."""
    return written_array(texts, [0.0] * len(texts), [False] * len(texts))


@dataclass
class TextByRule(LooksUp):
    """A `Fitted` without training: a rule makes the output text from the input text."""

    rule: Callable[[str], str]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def logits(self, examples: Sequence[Example]) -> NDArray[Any]:
        """Return (N,) of `WRITTEN`, with certainty."""
        return certainly([self.rule(example.inputs["text"]) for example in examples])

    def delta(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


class TextBaseline(Baseline):
    """Base of the baselines that make a text from one text."""

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task is to generate a text from a single text."""
        if not isinstance(kinds.get(task.kind), WritesTexts):
            return f"it writes texts, and the answers of kind {task.kind} are none"
        if task.reads != "text":
            return f"it reads texts, and this task reads {task.reads}s"
        return "it reads one text, and this task has two" if task.text_a is not None else ""


class RuleBaseline(TextBaseline):
    """Base of the baselines that make a text by a rule, and learn nothing."""

    rule: Callable[[str], str]  # makes the output text from the input text

    def fit(self, bench: Workbench) -> TextByRule:
        """Return the rule."""
        return TextByRule(self.rule)

    def restore(self, setting: Setting, delta: Mapping[str, Any], facts: Mapping[str, Any]) -> TextByRule:
        """Return the rule, which stores no weights."""
        return TextByRule(self.rule, facts)
