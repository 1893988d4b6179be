"""Reader of fastText's training files: a text on every line, its labels as words that begin with `__label__`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graftwork.data.readers.lines import TextLines, without_eol
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource, each_parsed
from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import plain_name

PREFIX = "__label__"
_SPACE = " \t\v\f\r\0"  # what separates words for fastText
_LABEL = re.compile(rf"(?<![^{_SPACE}]){PREFIX}([^{_SPACE}]*)[{_SPACE}]*")
SUFFIXES = ("", ".txt", ".train", ".valid", ".test", ".label")  # usual for such files, and for other files too


def is_fasttext(lines: TextLines) -> bool:
    """Return whether the first line that is not blank has a label, as fastText writes them."""
    if Path(plain_name(lines.path)).suffix not in SUFFIXES:
        return False
    try:
        first = next((line for _, line in lines if isinstance(line, str) and line.strip()), "")
    except DataError:  # a truncated packed file: its reader reports this
        return False
    return _LABEL.search(first) is not None


def opened(lines: TextLines) -> RowSource:
    """Return a row per line: its text without the labels, and the tuple of labels."""

    def rows() -> Iterator[NumberedRow | Bad]:
        for found in each_parsed(lines, _cells):
            yield found if isinstance(found, Bad) else (*found, 0, found[0])

    return RowSource.named(("text", "label"), rows, "lines of fastText")


def _cells(line: str, where: str) -> dict[str, str | tuple[str, ...]]:
    content = without_eol(line)
    labels = tuple(dict.fromkeys(_LABEL.findall(content)))
    if not all(labels) or not labels:
        raise DataError(
            "the line has no label" if not labels else "a label has no name",
            where=where,
            got=clip(content),
            expected=f"{PREFIX}NAME before the text",
            do="label the line or remove it",
        )
    return {"text": _LABEL.sub("", content).strip(_SPACE), "label": labels}
