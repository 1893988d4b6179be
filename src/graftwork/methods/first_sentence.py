"""First sentence: writes the first sentence of the text that it reads, the usual floor of summaries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.written_texts import certainly, without_one_text

if TYPE_CHECKING:
    from torch import Tensor

_END = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+|(?<=[。！？])|\n+")  # between two sentences


@dataclass
class Leading(LooksUp):
    """A fitted method that writes the first sentence of its source."""

    facts: Mapping[str, Any] = field(default_factory=dict)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the first sentences (N,), with certainty."""
        return certainly([first_sentence(example.inputs["text"]) for example in examples])

    def delta(self) -> dict[str, Tensor]:
        """Return nothing: nothing is learned."""
        return {}


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop, question or exclamation mark before a space, or its first line."""
    text = text.strip()
    found = _END.search(text)
    return text[: found.end()].rstrip() if found else text


@methods.register("first_sentence")
@dataclass(frozen=True)
class FirstSentence(Baseline):
    """The first sentence of the source."""

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task writes a text of one text."""
        return without_one_text(task)

    def fit(self, bench: Workbench) -> Leading:
        """Learn nothing."""
        return Leading()

    def restore(self, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Leading:
        """Rebuild the method from nothing."""
        return Leading(facts)
