"""Reader of parallel files: line by line the same text in two languages or more, as `train.en` and `train.de`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from graftwork.data.readers.lines import each_line, without_eol
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource
from graftwork.errors import DataError
from graftwork.io.gzip_files import plain_name
from graftwork.units import several

_SIDE = re.compile(
    r"(.+)\.([a-z]{2}(?:[_-][a-z]{2,4})?|src|tgt|trg|ref|source|target)"
)  # a language code, or the role of the side
_PROGRAMS = ("py", "sh", "js", "md", "gz", "xz")  # two-letter suffixes that are not language codes


def is_parallel(path: Path) -> bool:
    """Return whether `path` is one side of a parallel text: its folder has a file of the same name for another side."""
    return _side(path) is not None and len(sides(path)) > 1


def sides(path: Path) -> dict[str, Path]:
    """Return suffix -> file for all sides of the text that `path` is one side of, sorted; empty for any other file."""
    own = _side(path)
    if own is None:
        return {}
    found = ((_side(other), other) for other in sorted(path.parent.iterdir()))
    return {side[1]: other for side, other in found if side is not None and side[0] == own[0]}


def _side(path: Path) -> tuple[str, str] | None:
    """Return a file's name without its side, and the side; None for a file that is no side."""
    found = _SIDE.fullmatch(plain_name(path))
    return (found[1], found[2]) if found and found[2] not in _PROGRAMS and path.is_file() else None


def opened(path: Path) -> RowSource:
    """Return a row per line: its text on each side. The columns are the sides."""
    found = sides(path)
    told = f"lines of {' and '.join(one.name for one in found.values())}"
    return RowSource.named(tuple(found), lambda: _rows(found), told)


def _rows(found: Mapping[str, Path]) -> Iterator[NumberedRow | Bad]:
    """Yield every line with its text of each side. Raises `DataError` where one file has more lines than another."""
    path = next(iter(found.values()))
    for lines in zip_longest(*(each_line(side) for side in found.values())):
        here = [line for line in lines if line is not None]
        number, wrong = here[0][0], next((text for _, text in here if isinstance(text, DataError)), None)
        if len(here) < len(found):
            counts = {side: sum(1 for _ in each_line(one)) for side, one in found.items()}
            raise DataError(
                "parallel files have different numbers of lines",
                where=str(path.parent),
                got=", ".join(f"{found[side].name}: {several(count, 'line')}" for side, count in counts.items()),
                expected="line by line the same text",
                do="mend the files: a line is missing, or occurs twice",
            )
        if wrong is not None:
            yield Bad(path, number, wrong, number)
        else:
            texts = [without_eol(text) for _, text in here if isinstance(text, str)]
            yield number, dict(zip(found, texts, strict=True)), 0, number
