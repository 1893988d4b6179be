"""Folders of brat (Stenetorp et al. 2012): texts in `NAME.txt`, spans of their characters in `NAME.ann` beside them.

A row is a line of a text; lines that a span goes across are one row. Relations, events, attributes and notes are left
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graftwork.data.lines import read_lines
from graftwork.data.offsets import Mark, Tagged, tagged
from graftwork.errors import DataError, clip

HEADER = ("tokens", "tags")
_SPAN = re.compile(r"(T\d+)\t(\S+) (\d+) (\d+)\t(.*)")
_OTHER = re.compile(r"[REAMN#*]")


def is_brat(path: Path) -> bool:
    """Whether this is a folder with annotations in it."""
    return path.is_dir() and any(path.glob("*.ann"))


def rows(folder: Path) -> Iterator[tuple[int, Tagged]]:
    """Number of the first line, and words and tags of every row, file by file.

    Raises `DataError` with file:line for a broken annotation, or one that is not about this text.
    """
    for path in sorted(folder.glob("*.txt")):
        lines = [line for _, line in read_lines(path)]
        text = "".join(lines)
        marks = _marks(path.with_suffix(".ann"), text)
        for number, start, end in _pieces(lines, marks):
            piece = text[start:end]
            inside = [mark for mark in marks if start <= mark.start < end]
            if piece.strip():
                moved = [replace(mark, start=mark.start - start, end=mark.end - start) for mark in inside]
                yield number, tagged(piece, moved)


def _pieces(lines: list[str], marks: list[Mark]) -> Iterator[tuple[int, int, int]]:
    """Number of the first line, first character and the one behind the last of every row."""
    crossed = sorted((mark.start, mark.end) for mark in marks)
    number, begin, at = 1, 0, 0
    for place, line in enumerate(lines, 1):
        at += len(line)
        if any(start < at < end for start, end in crossed):
            continue
        yield number, begin, at
        number, begin = place + 1, at


def _marks(path: Path, text: str) -> list[Mark]:
    if not path.is_file():
        raise DataError(
            "a text without its annotations",
            where=str(path.with_suffix(".txt")),
            expected=f"{path.name} beside it",
            do="make an empty one if there are none",
        )
    marks = []
    for number, line in read_lines(path):
        content, where = line.rstrip("\r\n"), f"{path}:{number}"
        found = _SPAN.fullmatch(content)
        if found is None:
            if content and not _OTHER.match(content):
                _refuse(content, where)
            continue
        start, end = int(found[3]), int(found[4])
        if " ".join(text[start:end].split()) != " ".join(found[5].split()):
            raise DataError(
                "the annotation is of another text",
                where=where,
                got=f"{clip(found[5])}, where characters {start} to {end} are {clip(text[start:end])}",
                do="take the .txt that was annotated, with its own line ends",
            )
        marks.append(Mark(start, end, found[2], where))
    return marks


def _refuse(content: str, where: str) -> None:
    gaps = ";" in content
    raise DataError(
        "a span with gaps" if gaps else "not an annotation of brat",
        where=where,
        got=clip(content),
        expected="a line such as T1<tab>Disease 12 30<tab>muscular dystrophy",
        do="make one span of it, or one for each piece" if gaps else "mend the line",
    )
