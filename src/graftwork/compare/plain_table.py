"""Tables as plain text, at most 100 columns wide, and the titled lists below them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from graftwork.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
GAP = "  "


def width_of(console: Console) -> int:
    """Return the width of the output in characters: `WIDTH`, or that of a narrower terminal."""
    return min(WIDTH, console.width) if console.is_terminal else WIDTH


def print_lines(lines: Iterable[str], console: Console) -> None:
    """Print lines as they are, without markup and not wrapped again."""
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def table(columns: Sequence[Sequence[str]], left: Collection[int] = (0,), ruled: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table: columns with indices in `left` aligned to the left, a rule below rows in `ruled`."""
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for number, row in enumerate(zip(*columns, strict=True)):
        cells = zip(row, widths, strict=True)
        padded = [cell.ljust(wide) if at in left else cell.rjust(wide) for at, (cell, wide) in enumerate(cells)]
        lines.append(GAP.join(padded).rstrip())
        if number in ruled:
            lines.append("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    return lines


def side_by_side(
    columns: Sequence[Sequence[str]], width: int, left: Collection[int] = (0,), ruled: Collection[int] = (0,)
) -> Iterator[list[str]]:
    """Yield tables that each begin with the first column and have as many of the others, in order, as fit `width`."""
    block = first = [columns[0]]
    for column in columns[1:]:
        if len(block) > 1 and sum(max(map(len, one)) + len(GAP) for one in [*block, column]) - len(GAP) > width:
            yield table(block, left, ruled)
            block = first
        block = [*block, column]
    if len(block) > 1:
        yield table(block, left, ruled)


def titled_list(title: str, items: Iterable[str], width: int) -> list[str]:
    """Return an empty line, the title and its items, indented and wrapped; nothing without items."""
    lines = [
        line for item in items for line in textwrap.wrap(item, width, initial_indent=GAP, subsequent_indent="    ")
    ]
    return ["", title, *lines] if lines else []
