"""Conversion of annotation tools' exports, texts with labels or spans of characters, to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftwork.data.readers.character_offsets import Mark, tagged
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource
from graftwork.errors import DataError
from graftwork.units import several

Item = tuple[int, int, str, Any]  # first and last line (0: none) of an annotated text, its location, its content
OTHERWISE = "not "  # prefix of a file's only label, for texts for which it was rejected


@dataclass(frozen=True, slots=True)
class Annotated:
    """A text with its annotations."""

    text: str
    labels: Mapping[str, bool] | None = None  # label -> whether it applies; None: nobody said
    marks: tuple[Mark, ...] | None = None
    number: int = 0  # its first line; in files without lines its position, from 1
    last: int = 0  # its last line; 0 where it has no lines of its own


def items_of(path: Path, listed: Iterable[Any]) -> Iterator[Item]:
    """Yield the items of a file that is one JSON list, each located by its index, and by its id if it has one."""
    for number, item in enumerate(listed, 1):
        name = item.get("id") if isinstance(item, dict) else None
        told = f" (task {str(name)[:40]})" if isinstance(name, int | str) else ""
        yield number, 0, f"{path}: [{number - 1}]{told}", item


def annotated(path: Path, items: Iterable[Item], parse: Callable[[Any, str], Annotated]) -> list[Annotated | Bad]:
    """Parse every item by `parse(item, location)`; an item for which this raises `DataError` becomes a `Bad`."""
    found: list[Annotated | Bad] = []
    for number, last, where, item in items:
        try:
            if isinstance(item, DataError):
                raise item
            found.append(replace(parse(item, where), number=number, last=last))
        except DataError as error:
            found.append(Bad(path, number, error, last))
    return found


def source_of(path: Path, found: Sequence[Annotated | Bad], told: str, single: bool = False) -> RowSource:
    """Return a source of the texts as rows, held in memory; `single` as in `rows_of`. Raises as `header_of`."""
    return RowSource.named(header_of(path, found), lambda: rows_of(path, found, single), told)


def header_of(path: Path, found: Sequence[Annotated | Bad]) -> tuple[str, ...] | None:
    """Return the columns: `text`, `label` if texts have labels; `tokens`, `tags` if they have spans; None if no text.

    Raises the error of the first bad text if all are bad, `DataError` if the texts have neither labels nor spans.
    """
    texts = [one for one in found if isinstance(one, Annotated)]
    labelled = any(one.labels for one in texts)
    header: tuple[str, ...] = ("text", "label") if labelled else ()
    if any(one.marks is not None for one in texts) and (not labelled or any(one.marks for one in texts)):
        header += ("tokens", "tags")
    if header or not found:
        return header or None
    for one in found:
        if isinstance(one, Bad):
            raise one.error
    raise DataError(
        "the texts have neither labels nor spans",
        where=str(path),
        got=several(len(texts), "text"),
        expected="labels, or spans of characters",
        do="export the annotations with the texts",
    )


def rows_of(path: Path, found: Sequence[Annotated | Bad], single: bool = False) -> Iterator[NumberedRow | Bad]:
    """Yield a row for every text: its text, label, words and tags.

    If the file has only one label, texts for which it was rejected are labelled `not LABEL`. The label cell is the
    tuple of the labels that apply; with `single`, one label alone is a string.
    """
    names = label_names(found)
    for one in found:
        if isinstance(one, Bad):
            yield one
            continue
        applying = tuple(name for name, applies in (one.labels or {}).items() if applies)
        if len(names) == 1 and one.labels and not applying:
            applying = (OTHERWISE + names[0],)
        try:
            words = tagged(one.text, one.marks or ())
        except DataError as error:
            yield Bad(path, one.number, error, one.last)
        else:
            tags = words.tags if one.marks is not None else ()  # its spans were not annotated
            label = applying[0] if single and len(applying) == 1 else applying
            cells = {"text": one.text, "label": label, "tokens": words.words, "tags": tags}
            yield one.number, cells, words.rounded, one.last


def label_names(found: Iterable[Annotated | Bad]) -> list[str]:
    """Return all labels, applying or not, in the order in which they occur."""
    return list(dict.fromkeys(name for one in found if isinstance(one, Annotated) for name in one.labels or ()))
