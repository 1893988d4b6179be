"""Weights of classes and costs of predictions, given as a mapping or as a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graftwork.core.kind_settings import table_from
from graftwork.errors import ConfigError, DataError, clip

WEIGHT_COLUMNS = ("label", "weight")


def read_class_weights(given: Any) -> dict[str, float]:
    """Return label -> weight from a mapping, or from a file with the columns label and weight.

    Raises `ConfigError` for a weight that is not above 0, `DataError` and `StorageError` as `open_table`.
    """
    if isinstance(given, Mapping):
        return {str(label): _number(weight, f"class_weights[{label!r}]", above=True) for label, weight in given.items()}
    path = _file(given, "class_weights", "balanced, a mapping from label to weight, or a file of it")
    found: dict[str, float] = {}
    for line, (label, weight) in _rows(path, WEIGHT_COLUMNS):
        _require_once(label, found, f"{path}:{line}")
        found[label] = _number(weight, f"{path}:{line}", above=True)
    return found


def read_costs(given: Any) -> dict[str, dict[str, float]]:
    """Return true label -> predicted label -> cost, from such a mapping or from a file.

    The first column of the file holds the true labels; the names of the other columns are the predicted labels.

    Raises `ConfigError` for a cost that is below 0 or for labels that differ in rows and columns, `DataError` and
    `StorageError` as `open_table`.
    """
    if isinstance(given, Mapping):
        found = {
            str(true): {str(said): _number(cost, f"costs[{true!r}][{said!r}]") for said, cost in dict(row).items()}
            for true, row in given.items()
        }
        return _square(found, "costs")
    path, found = _file(given, "costs", "a mapping from true label to answer to cost, or a file of it"), {}
    for line, (true, *costs), answers in _rows_of_matrix(path):
        _require_once(true, found, f"{path}:{line}")
        numbers = (
            _number(cost, f"{path}:{line}, answer {clip(said)}") for said, cost in zip(answers, costs, strict=True)
        )
        found[true] = dict(zip(answers, numbers, strict=True))
    return _square(found, str(path))


WEIGHED, COSTS = table_from(read_class_weights), table_from(read_costs)


def _file(given: Any, setting: str, expected: str) -> Path:
    if not isinstance(given, str | Path):
        raise ConfigError(f"{setting} are of the wrong type", got=clip(repr(given)), expected=expected)
    return Path(given)


def _rows(path: Path, columns: tuple[str, ...]) -> Iterable[tuple[int, list[str]]]:
    from graftwork.data.readers.table import open_table

    table = open_table(path)
    if missing := [name for name in columns if name not in table.header]:
        raise DataError(
            f"there is no column {clip(missing[0])}",
            where=f"{path}:1",
            got=", ".join(map(clip, table.header)),
            expected=f"the columns {' and '.join(columns)}",
            do="name the columns in the first line",
        )
    return [(row.line, [str(cell) for cell in row.cells]) for row in table.rows(columns, label=columns[1:])]


def _rows_of_matrix(path: Path) -> Iterable[tuple[int, list[str], tuple[str, ...]]]:
    from graftwork.data.readers.table import open_table

    table = open_table(path)
    answers = table.header[1:]
    return [(row.line, [str(cell) for cell in row.cells], answers) for row in table.rows(table.header, label=answers)]


def _require_once(label: str, found: Mapping[str, Any], where: str) -> None:
    if label in found:
        raise DataError(
            f"the label {clip(label)} occurs twice", where=where, expected="each label once", do="remove one"
        )


def _number(given: Any, where: str, above: bool = False) -> float:
    """Return a finite number of at least 0, or above 0. Raises `ConfigError`."""
    try:
        value = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and (value > 0 if above else value >= 0)):
        raise ConfigError(
            f"a {'weight' if above else 'cost'} that can't be used",
            where=where,
            got=clip(str(given)),
            expected="a number above 0" if above else "a number, 0 or above",
            do="write a decimal point, no thousands separator and no unit",
        )
    return value


def _square(found: dict[str, dict[str, float]], where: str) -> dict[str, dict[str, float]]:
    """Return the costs unchanged. Raises `ConfigError` unless true and predicted labels are the same in every row."""
    for true, row in found.items():
        odd = [name for name in (*row, *found) if name not in found or name not in row]
        if odd:
            place = "columns (answers)" if odd[0] in found else "rows (true labels)"
            raise ConfigError(
                f"the costs are not square: {clip(odd[0])} is missing among the {place}",
                where=where,
                got=f"{len(found)} rows; the row {clip(true)} has {len(row)} answers",
                expected="the same labels as rows and as columns",
                do="add it",
            )
    return found
