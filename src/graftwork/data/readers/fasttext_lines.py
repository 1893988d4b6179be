"""Reader of fastText's training files: a text on every line, its labels as words that begin with `__label__`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graftwork.data.readers.lines import each_line, without_eol
from graftwork.data.readers.rejects import Bad, Named
from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import unpacked

PREFIX = "__label__"
_SPACE = " \t\v\f\r\0"  # what separates words for fastText
_LABEL = re.compile(rf"(?<![^{_SPACE}]){PREFIX}([^{_SPACE}]*)[{_SPACE}]*")
LOOKED_AT = 4096  # bytes read to recognise such a file


def is_fasttext(path: Path) -> bool:
    """Return whether the first line of a file that is not blank has a label, as fastText writes them."""
    try:
        with unpacked(path) as stream:
            start = stream.read(LOOKED_AT).decode("utf-8-sig", "ignore")
    except DataError:  # packed, and not whole: its reader tells
        return False
    return _LABEL.search(start.lstrip().partition("\n")[0]) is not None


def rows(path: Path) -> Iterator[Named | Bad]:
    """Yield every line's text without its labels, and the tuple of these."""
    for number, line in each_line(path):
        if isinstance(line, str) and not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            if isinstance(line, DataError):
                raise line
            content = without_eol(line)
            labels = tuple(dict.fromkeys(_LABEL.findall(content)))
            if not all(labels) or not labels:
                raise DataError(
                    "a line without a label" if not labels else "a label without a name",
                    where=where,
                    got=clip(content),
                    expected=f"{PREFIX}NAME before the text",
                    do="label the line or remove it",
                )
        except DataError as error:
            yield Bad(path, number, error, number)
        else:
            yield number, {"text": _LABEL.sub("", content).strip(_SPACE), "label": labels}, 0, number
