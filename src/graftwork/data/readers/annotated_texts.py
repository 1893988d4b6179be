"""Texts with labels or spans of characters, as annotation tools export them, to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftwork.data.readers.character_offsets import Mark, tagged
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource
from graftwork.errors import DataError
from graftwork.units import several

Item = tuple[int, int, str, Any]  # first and last line (0: none) of an annotated text, its place, and what is there
OTHERWISE = "not "  # before the only label of a file, for the texts that it was denied to


@dataclass(frozen=True, slots=True)
class Annotated:
    """A text with what is known of it."""

    text: str
    labels: Mapping[str, bool] | None = None  # label -> whether it applies; None: nobody said
    marks: tuple[Mark, ...] | None = None
    number: int = 0  # its first line, or in files without lines its place, from 1
    last: int = 0  # its last line; 0 where it has no lines of its own


def items_of(path: Path, listed: Iterable[Any]) -> Iterator[Item]:
    """Yield the items of a list that is a file, with their places in it, and their ids if they have one."""
    for number, item in enumerate(listed, 1):
        name = item.get("id") if isinstance(item, dict) else None
        told = f" (task {str(name)[:40]})" if isinstance(name, int | str) else ""
        yield number, 0, f"{path}: [{number - 1}]{told}", item


def annotated(path: Path, items: Iterable[Item], parse: Callable[[Any, str], Annotated]) -> list[Annotated | Bad]:
    """Return what `parse` makes of every item and its place, and the bad ones, for which it raises `DataError`."""
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
    """Return the texts as rows, held in memory; where `single`, an only label is a text. Raises as `header_of`."""
    return RowSource.named(header_of(path, found), lambda: rows_of(path, found, single), told)


def header_of(path: Path, found: Sequence[Annotated | Bad]) -> tuple[str, ...] | None:
    """Return `text`, `label` if texts have labels, `tokens`, `tags` if they have spans; None without texts.

    Raises the first error where no text can be read, `DataError` where none has either.
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
    """Yield every text as its text, label, words and tags.

    Where the file has one label only, and it was denied to some texts, these are labelled `not LABEL`; else a label is
    the tuple of those that apply, or where `single` the only one.
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
            tags = words.tags if one.marks is not None else ()  # nobody looked for spans
            label = applying[0] if single and len(applying) == 1 else applying
            cells = {"text": one.text, "label": label, "tokens": words.words, "tags": tags}
            yield one.number, cells, words.rounded, one.last


def label_names(found: Iterable[Annotated | Bad]) -> list[str]:
    """Return all labels, applying or not, in the order in which they occur."""
    return list(dict.fromkeys(name for one in found if isinstance(one, Annotated) for name in one.labels or ()))
