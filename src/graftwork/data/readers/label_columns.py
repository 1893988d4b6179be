"""One column per label: 1, true or yes in the rows where it applies, 0, false or no in the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from graftwork.data.readers.rejects import Bad, Cell, DataRow, map_rows
from graftwork.data.readers.table import Table
from graftwork.errors import DataError, clip
from graftwork.targets.labels import is_number

APART = ","  # separator of columns that are labels: toxic,obscene
SAMPLE = 100  # rows by which a column of marks is recognised
MARKS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y"), True),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), False),
}
_PREFIX = re.compile(r"(labels?|targets?|class|classes|tags?|y)[_.:\- ]+(?=.)", re.IGNORECASE)
_ID = re.compile(r"(?i:|(.*[_.\- ])?(id|idx|uid|guid|uuid|index)|unnamed: 0)|.*I[dD]")


def names_of(label: str, header: Collection[str]) -> tuple[str, ...]:
    """Return the columns that `label` names: one, or several with commas between them."""
    if label in header or APART not in label:
        return (label,)
    return tuple(name.strip() for name in label.split(APART) if name.strip())


def found_labels(table: Table, inputs: Collection[str]) -> tuple[str, ...]:
    """Return the columns of marks if they are certainly the labels, else an empty tuple.

    They are if two or more are named like `label_a`, `label_b`, or if all columns other than the `inputs` and ids are
    such columns.
    """
    others = [name for name in table.header if name not in inputs]
    marked = marked_columns(table, others)
    prefixes = Counter(found[1].lower() for name in marked if (found := _PREFIX.match(name)))
    prefix, count = next(iter(prefixes.most_common(1)), ("", 0))
    if count > 1 and len(prefixes) == 1:
        return tuple(name for name in marked if (found := _PREFIX.match(name)) and found[1].lower() == prefix)
    rest = [name for name in others if name not in marked and not _ID.fullmatch(name)]
    return marked if len(marked) > 1 and not rest else ()


def marked_columns(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of `names` that hold marks (`MARKS`) in all of the first rows."""
    return tuple(name for name in names if APART not in name and _is_marked(table, name))


def _is_marked(table: Table, name: str) -> bool:
    first = islice(table.readings([name], label=name), SAMPLE)
    return all(not isinstance(row, Bad) and _mark(row.cells[0]) is not None for row in first)


def _mark(cell: Cell) -> bool | None:
    """Return whether the label applies; None if the cell is not a mark."""
    return MARKS.get(cell.strip().lower()) if isinstance(cell, str) else None


def with_labels(rows: Iterator[DataRow | Bad], names: Sequence[str], path: Path) -> Iterator[DataRow | Bad]:
    """Replace the last cells of every row, a mark per label in `names`, by the tuple of the labels that apply."""

    def labelled(row: DataRow) -> DataRow:
        marks = row.cells[-len(names) :]
        held = tuple(name for name, mark in zip(names, marks, strict=True) if _holds(mark, name, path, row.line))
        return replace(row, cells=(*row.cells[: -len(names)], held))

    return map_rows(rows, path, labelled)


def _holds(mark: Cell, name: str, path: Path, line: int) -> bool:
    found = _mark(mark)
    if found is None:
        raise DataError(
            f"neither 0 nor 1 is in the column of the label {clip(name)}",
            where=f"{path}:{line}",
            got=clip(" | ".join(mark) if isinstance(mark, tuple) else str(mark)),
            expected="1, true or yes where the label holds, else 0, false or no",
            do=_remedy(mark),
        )
    return found


def _remedy(mark: Cell) -> str:
    if isinstance(mark, str) and is_number(mark):
        if float(mark) < 0:
            return "if it marks rows without labels, set them aside: --rejects FILE"
        if float(mark) < 1:
            return "a share: write 1 where it is large enough, such as 0.5 or more, and 0 elsewhere"
    return "mend the row or remove it"
