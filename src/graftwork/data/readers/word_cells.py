"""Checks of the word lists in tables for kinds that predict each word, such as tagging."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graftwork.core.example import Input, text_of
from graftwork.data.readers.json_text import NamedList
from graftwork.errors import DataError, clip


def check_words(given: Input, where: str) -> None:
    """Raise `DataError` unless this is a list of at least one word, none of them blank."""
    if isinstance(given, str | NamedList):
        raise DataError(
            f"the cell is {'one text' if isinstance(given, str) else 'a list of objects'}, where its words are needed",
            where=where,
            got=clip(text_of(given)),
            expected="a list of words",
            do='use a CoNLL file, or JSONL like {"tokens": ["…"], "tags": ["…"]}',
        )
    if not given or not all(word.strip() for word in given):
        what = "a word is empty" if given else "there are no words"
        raise DataError(what, where=where, got=clip(" | ".join(given)), do="mend the row or remove it")


def refuse_numbered(listed: Sequence[Sequence[str]], column: str | None, header: Sequence[str], path: Path) -> None:
    """Raise `DataError` if the words of every example are 1, 2, 3, …, as in a column that numbers the words."""
    if max(map(len, listed)) < 3 or any(tuple(words) != tuple(map(str, range(1, len(words) + 1))) for words in listed):
        return
    following = header[header.index(column) + 1 :] if column in header else ()
    raise DataError(
        "the words are only the numbers of their places",
        where=str(path),
        got=clip(" | ".join(listed[0])),
        expected="words",
        do=f"name their column: --text {following[0] if len(following) > 1 else 'COLUMN'}",
    )
