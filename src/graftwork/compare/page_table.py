"""A table of a page: columns with their meanings, and cells that a reader may sort by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graftwork.registry import meters, metrics


@dataclass(frozen=True)
class Heading:
    """The heading of a column; its `hint` is a tooltip, and part of the page's list of meanings."""

    title: str
    hint: str = ""
    number: bool = True  # numbers are aligned to the right


@dataclass(frozen=True)
class Cell:
    """A cell. A column is sorted by `value`; where that is None, by the number that `text` begins with."""

    text: str
    value: float | None = None
    hint: str = ""
    letter: str = ""  # after the text, small: the grade of a cost
    note: str = ""  # after the text of a row's first cell
    look: str = ""  # CSS class of the cell; of the whole row, if this is its first cell
    link: str = ""
    heat: float | None = None  # intensity of the background, 0 to 1


@dataclass(frozen=True)
class PageTable:
    """A table; the first cell of a row is its heading."""

    label: str  # what it shows, for a screen reader
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell | str]]

    def hints(self) -> dict[str, str]:
        """Return heading -> hint, for the headings that have one."""
        return {one.title: one.hint for one in self.headings if one.hint}


def named(label: str, titles: Sequence[str], rows: Sequence[Sequence[Cell | str]], texts: int = 1) -> PageTable:
    """Return a table without hints, whose first `texts` columns are texts and the others numbers."""
    headings = [Heading(title, number=at >= texts) for at, title in enumerate(titles)]
    return PageTable(label, headings, rows)


def meaning(part: str) -> str:
    """Return the summary of the metric or meter named `part`; "" if none is registered by this name."""
    return next((parts.summary(part) for parts in (metrics, meters) if part in parts.names()), "")
