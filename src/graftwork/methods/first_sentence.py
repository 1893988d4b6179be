"""First sentence: writes the first sentence of the text that it reads, the usual floor of summaries."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graftwork.registry import methods
from graftwork.targets.written_texts import RuleBaseline

_END = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+|(?<=[。！？])|\n+")  # between two sentences


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop, question or exclamation mark before a space, or its first line."""
    text = text.strip()
    found = _END.search(text)
    return text[: found.end()].rstrip() if found else text


@methods.register("first_sentence")
@dataclass(frozen=True)
class FirstSentence(RuleBaseline):
    """The first sentence of the source."""

    rule = staticmethod(first_sentence)
