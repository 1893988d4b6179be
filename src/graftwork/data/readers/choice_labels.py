"""Matching of labels to choices: by a column's name, a text, a number, a letter, or a name in the row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graftwork.core.task import Task
from graftwork.data.readers.json_text import NamedList
from graftwork.errors import DataError, clip

_NUMBER = re.compile("[0-9]{1,4}")
_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")
OF_LETTER = re.compile(  # a column of a family with a letter each, such as opt_a, answerB or C
    r"(?P<stem>(?:(?:choice|ending|option|opt|op|answer|ans|alternative|hypothesis|candidate|sol)[_ \-]?)?)"
    r"(?P<letter>[A-Za-z])",
    re.IGNORECASE,
)


def letter_of(label: str) -> str | None:
    """Return the letter, in upper case, of a label such as `B`, `b`, `(B)` or `B.`; None for another label."""
    found = _LETTER.fullmatch(label.strip())
    return found[1].upper() if found else None


def marks_of(
    label: str | tuple[str, ...], choices: Sequence[str], columns: Sequence[str], task: Task, where: str
) -> tuple[str, ...]:
    """Return a mark for each choice, "1" for the right one; `columns` are their column names, if each has its own.

    Raises `DataError` if the label names no choice, or could mean two.
    """
    if isinstance(label, tuple):
        return label
    right = _place(label, choices, columns, task, where)
    return tuple("1" if place == right else "0" for place in range(len(choices)))


def _place(label: str, choices: Sequence[str], columns: Sequence[str], task: Task, where: str) -> int:
    """Return the index of the choice that the label names."""
    counted = task.settings.count_from is not None
    first = int(task.settings.count_from) if counted else 0
    number = int(label) - first if _NUMBER.fullmatch(label) else None
    if isinstance(choices, NamedList) and (named := _named(label, choices)) is not None:
        return named
    if not counted and label in columns:
        return columns.index(label)
    text = choices.index(label) if label in choices and not counted else None
    numbered = number if number is not None and 0 <= number < len(choices) else _lettered(label, columns, len(choices))
    from_one = number is not None and bool(columns) and columns[0].endswith("1") and not counted
    if (text is not None and numbered not in (None, text)) or (text is None and numbered is not None and from_one):
        called = "number" if number is not None else "letter"
        other = "the text of another" if text is not None else f"counted from 0 or, as {columns[0]} is, from 1"
        raise DataError(
            "the label can be read in two ways",
            where=where,
            got=f"{clip(label)}: the {called} of a choice, {other}",
            expected="a label that means one choice",
            do="say from where labels count: --count-from 0 or --count-from 1"
            if number is not None
            else "if labels are letters, and no texts: --count-from 0",
        )
    found = text if text is not None else numbered
    if found is None:
        raise DataError(
            f"the label {clip(label)} is no choice",
            where=where,
            got=" | ".join(map(clip, choices)),
            expected=_expected(choices, columns, task),
            do="mend it; if labels count from 1: --count-from 1"
            if number == len(choices) and first == 0
            else "mend it",
        )
    return found


def _named(label: str, choices: NamedList) -> int | None:
    """Return the index of the only choice with this name in the row's own list of names; letters match in any case."""
    names = [letter_of(name) or name for name in choices.names]
    given = letter_of(label) or label
    return names.index(given) if names.count(given) == 1 else None


def _lettered(label: str, columns: Sequence[str], count: int) -> int | None:
    """Return the index of the choice with this letter: that in its column's name, else its position in the alphabet."""
    letter = letter_of(label)
    if letter is None:
        return None
    families = [OF_LETTER.fullmatch(column) for column in columns]
    letters = [found["letter"].upper() for found in families if found]
    if not letters or len(letters) < len(columns):
        letters = [chr(ord("A") + place) for place in range(min(count, 26))]
    return letters.index(letter) if letter in letters else None


def _expected(choices: Sequence[str], columns: Sequence[str], task: Task) -> str:
    first, count = int(task.settings.count_from or 0), len(choices)
    if isinstance(choices, NamedList):
        return f"one of {', '.join(choices.names)}"
    letters = f"its letter, from A to {chr(ord('A') + min(count, 26) - 1)}"
    if task.settings.count_from is not None:
        return f"a number from {first} to {first + count - 1}, or {letters}"
    named = f"{', '.join(columns)}, " if columns else ""
    return f"{named}{letters}, the text of a choice, or its number, from 0 to {count - 1}"
