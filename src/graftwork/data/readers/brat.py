"""Reader of brat folders (Stenetorp et al. 2012): texts in `NAME.txt`, character spans in `NAME.ann` beside them.

A row is a line of a text; lines that a span crosses are one row. Relations, events, attributes and notes are ignored.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graftwork.data.readers.character_offsets import Mark, tagged
from graftwork.data.readers.lines import each_line, read_lines, without_eol
from graftwork.data.readers.rejects import Bad, NumberedRow
from graftwork.errors import DataError, clip

_SPAN = re.compile(r"(T[0-9]+)\t(\S+) ([0-9]{1,12}) ([0-9]{1,12})\t(.*)")
_OTHER = re.compile(r"(?:[REAMN#][0-9]+|\*)\t.*")


def is_brat(path: Path) -> bool:
    """Return whether `path` is a folder with `.ann` files."""
    return path.is_dir() and any(path.glob("*.ann"))


def rows(folder: Path) -> Iterator[NumberedRow | Bad]:
    """Yield every row, file by file.

    If an annotation is broken or does not match the text, all rows of the text are bad: any may lack a span.
    """
    _require_texts(folder)
    for path in sorted(folder.glob("*.txt")):
        lines = [line for _, line in read_lines(path)]
        text = "".join(lines)
        wrong: DataError | None = None
        marks: list[Mark] = []
        try:
            marks = _marks(path.with_suffix(".ann"), text)
        except DataError as error:
            wrong = error
        for first, last, start, end, inside in _pieces(lines, marks):
            piece = text[start:end]
            if not piece.strip():
                continue
            try:
                if wrong is not None:
                    raise wrong
                found = tagged(
                    piece, [replace(mark, start=mark.start - start, end=mark.end - start) for mark in inside]
                )
            except DataError as error:
                yield Bad(path, first, error, last)
            else:
                yield first, found.cells, found.rounded, last


def _require_texts(folder: Path) -> None:
    for path in sorted(folder.glob("*.ann")):
        if not path.with_suffix(".txt").is_file():
            raise DataError(
                "the annotations have no text file",
                where=str(path),
                expected=f"{path.stem}.txt beside it",
                do="put the text back, or remove the annotations",
            )


def _pieces(lines: list[str], marks: list[Mark]) -> Iterator[tuple[int, int, int, int, list[Mark]]]:
    """Yield the first and last line, the start and end character (exclusive), and the marks of every row."""
    waiting = deque(sorted(marks, key=lambda mark: mark.start))
    number, begin, at, reach = 1, 0, 0, 0
    inside: list[Mark] = []
    for place, line in enumerate(lines, 1):
        at += len(line)
        while waiting and waiting[0].start < at:
            inside.append(waiting.popleft())
            reach = max(reach, inside[-1].end)
        if reach <= at:
            yield number, place, begin, at, inside
            number, begin, inside = place + 1, at, []


def _marks(path: Path, text: str) -> list[Mark]:
    if not path.is_file():
        raise DataError(
            "the text has no annotation file",
            where=str(path.with_suffix(".txt")),
            expected=f"{path.name} beside it",
            do="make an empty one if there are none",
        )
    marks = []
    places: dict[str, int] = {}  # id -> line
    for number, line in each_line(path):
        if isinstance(line, DataError):
            raise line
        content, where = without_eol(line), f"{path}:{number}"
        found = _SPAN.fullmatch(content)
        if found is None:
            if content and not _OTHER.fullmatch(content):
                _refuse(content, where)
            continue
        if places.setdefault(found[1], number) != number:
            raise DataError(
                f"the id {found[1]} occurs twice",
                where=where,
                got=f"it is in line {places[found[1]]}, too",
                expected="an id of its own for every span",
                do="remove the span that is there again, or give it another id",
            )
        start, end = int(found[3]), int(found[4])
        if not (start < end <= len(text) and text[start:end].split() == found[5].split() != []):
            raise DataError(
                "the annotation does not match the text at its offsets",
                where=where,
                got=f"{clip(found[5])}, where characters {start} to {end} are {clip(text[start:end])}",
                expected=f"a stretch of {path.with_suffix('.txt').name}, which has {len(text):,} characters",
                do="take the .txt that was annotated, with its own line ends",
            )
        marks.append(Mark(start, end, found[2], where))
    return marks


def _refuse(content: str, where: str) -> None:
    gaps = ";" in content
    raise DataError(
        "the span has gaps" if gaps else "the line is not an annotation of brat",
        where=where,
        got=clip(content),
        expected="a line such as T1<tab>Disease 12 30<tab>muscular dystrophy",
        do="make one span of it, or one for each piece" if gaps else "mend the line",
    )
