"""First sentence: writes the first sentence of the text that it reads, the usual floor of summaries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import Baseline, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.written_texts import TextByRule, without_one_text

if TYPE_CHECKING:
    from torch import Tensor

_END = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+|(?<=[。！？])|\n+")  # between two sentences


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
        """Return a reason unless the task is to generate a text from a single text."""
        return without_one_text(task)

    def fit(self, bench: Workbench) -> TextByRule:
        """Return the rule; nothing is learned."""
        return TextByRule(first_sentence)

    def restore(self, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> TextByRule:
        """Rebuild the rule, which stores no weights."""
        return TextByRule(first_sentence, facts)
