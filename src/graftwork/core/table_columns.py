"""Columns of tables in memory: of pandas, polars and Arrow, of dictionaries and rows, and of `(texts, labels)`.

None of these libraries is imported: a table is recognised by what it can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from graftwork.errors import ConfigError, DataError, clip

COLUMNS = {False: ("text", "sentence"), True: ("tokens", "words")}  # usual columns of a text, and of a list of words
TARGETS = {False: ("label",), True: ("tags", "upos", "label")}  # usual columns of what is to be predicted
ACCEPTED = (
    "a data frame of pandas or polars, an Arrow table, a set of the library datasets, (texts, labels), a list of "
    'dictionaries, a dictionary of columns or of splits such as {"train": …, "test": …}, a path or a Task'
)
PAIR = ("text_a", "text_b")  # columns of texts that are pairs


@dataclass(frozen=True)
class MemoryTable:
    """Named columns of equal length. Cells are those of the object."""

    columns: Mapping[str, Sequence[Any]]
    row_names: Sequence[Any] | None = None  # the index of a pandas frame

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def place(self, row: int) -> str:
        """Return the name of a row in a message: its position from 0, and its index label where that differs."""
        name = None if self.row_names is None else self.row_names[row]
        return f"row {row}" if name is None or str(name) == str(row) else f"row {row} (index {name!s})"


def table_in_memory(data: Any, what: str = "data", per_word: bool = False) -> MemoryTable:
    """Return the columns of `data`; `what` is its name in messages.

    `per_word` says that a tuple of two strings is two words, and not a pair of texts. Raises `ConfigError` for what is
    no table, `DataError` for a table without rows or with two columns of one name.
    """
    index = None
    if isinstance(data, tuple):
        names, columns = _of_texts(data, what, per_word)
    elif isinstance(data, Mapping):
        names, columns = list(data), [_listed(column) for column in data.values()]
        _require_equal(dict(zip(map(str, names), columns, strict=True)), what)
    elif isinstance(data, list):
        names, columns = _of_rows(data, what)
    elif hasattr(data, "iloc") and hasattr(data, "columns"):
        names, columns = list(data.columns), [list(data.iloc[:, place].array) for place in range(len(data.columns))]
        index = list(data.index)
    elif hasattr(data, "collect_schema") and not hasattr(data, "get_columns"):
        raise ConfigError("a lazy frame has no rows yet", where=what, do="collect it first: frame.collect()")
    elif hasattr(data, "get_columns"):
        names, columns = list(data.columns), [column.to_list() for column in data.get_columns()]
    elif hasattr(data, "column_names") and hasattr(data, "to_pydict"):
        names, columns = list(data.column_names), [data.column(place).to_pylist() for place in range(data.num_columns)]
    else:
        _refuse(data, what)
    return _checked(names, columns, index, what)


def _checked(
    names: Sequence[Any], columns: Sequence[Sequence[Any]], index: Sequence[Any] | None, what: str
) -> MemoryTable:
    named = [str(name) for name in names]
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        places = [str(place) for place, name in enumerate(named) if name == twice[0]]
        raise DataError(
            f"two columns are called {clip(twice[0])}",
            where=what,
            got=f"columns {' and '.join(places)}, counted from 0",
            expected="a name of its own for every column",
            do="rename or drop one of them",
        )
    if not columns or not len(columns[0]):
        raise DataError(
            "there are no rows",
            where=what,
            got=f"columns: {', '.join(named) or 'none'}",
            expected="rows with a text and a label",
            do="check the filter or the join that made it",
        )
    return MemoryTable(dict(zip(named, columns, strict=True)), index)


def _of_texts(data: tuple[Any, ...], what: str, per_word: bool) -> tuple[list[str], list[Sequence[Any]]]:
    """Return the columns of `(texts, labels)`."""
    if len(data) != 2:
        raise ConfigError(
            "a tuple of data holds texts and labels",
            where=what,
            got=f"{len(data)} items",
            expected="(texts, labels)",
            do='for splits: {"train": …, "validation": …, "test": …}',
        )
    texts, labels = _column(data[0], f"{what}: texts"), _column(data[1], f"{what}: labels")
    _require_equal({"texts": texts, "labels": labels}, what)
    for row, text in enumerate(texts):
        if not (is_missing(text) or isinstance(text, str) or _is_words(text)):
            raise DataError(
                "this is no text",
                where=f"{what}: row {row} of the texts",
                got=clip(repr(text)),
                expected="a string, a pair of them as a tuple, or a list of words",
                do="give the texts themselves, not their tokens' numbers or features: the backbone reads texts",
            )
    if not per_word and texts and all(isinstance(text, tuple) and len(text) == 2 for text in texts):
        return [*PAIR, "label"], [[first for first, _ in texts], [second for _, second in texts], labels]
    words = any(not isinstance(text, str) and not is_missing(text) for text in texts)
    return (["tokens", "tags"] if per_word and words else ["text", "label"]), [texts, labels]


def _is_words(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(word, str) for word in given)


def _column(given: Any, what: str) -> Sequence[Any]:
    """Return one column: a list, an array, a Series, or a frame with a single column."""
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise ConfigError(
            "this is not a list",
            where=what,
            got=clip(repr(given)),
            expected="(texts, labels): two lists, arrays or Series of one length",
            do="put the values into a list",
        )
    if hasattr(given, "tocsr"):
        raise ConfigError(
            "this is a sparse matrix of numbers",
            where=what,
            got=f"{type(given).__name__} of shape {given.shape}",
            expected="a list of texts",
            do="give the texts that it was made of: a method makes its own features",
        )
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) > 1:
        if shape[1] != 1:
            raise ConfigError(
                f"this has {shape[1]} columns",
                where=what,
                got=f"{type(given).__name__} of shape {shape}",
                expected="one value for each row",
                do="give the texts themselves: a method makes its own features"
                if what.endswith("texts")
                else "for several labels of a row give lists of their names; for marks, a frame with a column for each",
            )
        given = given.iloc[:, 0] if hasattr(given, "iloc") else given[:, 0]
    return _listed(given)


def _listed(given: Any) -> Sequence[Any]:
    """Return the items of a list, an array or a Series, one by one as they are, without their index."""
    if hasattr(given, "to_list") and not hasattr(given, "iloc"):
        return list(given.to_list())  # polars
    return list(getattr(given, "array", given) if hasattr(given, "iloc") else given)


def _of_rows(data: Sequence[Any], what: str) -> tuple[list[Any], list[Sequence[Any]]]:
    """Return the columns of a list of dictionaries, which all have the keys of the first."""
    names = list(data[0]) if data and isinstance(data[0], Mapping) else []
    for row, item in enumerate(data):
        if not isinstance(item, Mapping):
            raise ConfigError(
                "a list of data holds dictionaries",
                where=f"{what}: row {row}",
                got=clip(repr(item)),
                expected='dictionaries such as {"text": "…", "label": "…"}',
                do="give texts and labels as (texts, labels); of pairs (text, label): tuple(zip(*rows))",
            )
        if set(item) != set(names):
            raise DataError(
                "this row has other keys than the first",
                where=f"{what}: row {row}",
                got=f"keys: {', '.join(map(str, item))}",
                expected=f"the keys of the first row: {', '.join(map(str, names))}",
                do="add what is missing, as None outside of text and label",
            )
    return names, [[item[name] for item in data] for name in names]


def _require_equal(columns: Mapping[str, Sequence[Any]], what: str) -> None:
    """Raise `DataError` for columns of different lengths."""
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError(
            f"{' and '.join(columns)} are not of one length",
            where=what,
            got=", ".join(f"{len(column):,} {name}" for name, column in columns.items()),
            expected="a label for each text",
            do="check how they were selected: the same rows of both",
        )


def _refuse(data: Any, what: str) -> NoReturn:
    """Raise `ConfigError` for what is no table."""
    one_column = hasattr(data, "to_list") or hasattr(data, "ndim")
    raise ConfigError(
        "this has no named columns" if one_column else "this is no data",
        where=what,
        got=f"{type(data).__name__}{f' of shape {data.shape}' if hasattr(data, 'shape') else ''}"
        if one_column
        else clip(repr(data)),
        expected=ACCEPTED,
        do="give the frame with its text and its label column, or (texts, labels)",
    )


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, NaT or NA of any library."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str | Sequence | Mapping):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # raised by arrays
        return False
