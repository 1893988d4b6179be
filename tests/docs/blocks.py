"""The code blocks of a document: what a reader copies from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"[Ss]ave (?:this|it) as `([\w.]+)`")


class Block(NamedTuple):
    """A block: its language (`sh` if indented, `text` of an output), its text, and the name that it is saved under."""

    language: str
    text: str
    saved_as: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, from above. An indented line is a command of its own."""
    text = page.read_text(encoding="utf-8")
    at = 0
    for found in [*_FENCED.finditer(text), None]:
        prose = text[at : found.start() if found else len(text)]
        yield from (Block("sh", line.strip(), "") for line in prose.split("\n") if line.startswith("    "))
        if found:
            named = _SAVED.findall(prose)
            yield Block(found[1] or "text", found[2], named[-1] if named else "")
            at = found.end()


def commands(page: Path) -> list[str]:
    """The lines of a page that call `graft`, continued lines joined."""
    lines = "\n".join(block.text for block in blocks(page) if block.language == "sh").replace("\\\n", " ")
    return [line for line in lines.split("\n") if line.startswith("graft ")]
