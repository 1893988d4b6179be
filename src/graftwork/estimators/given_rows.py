"""Checks of an estimator's X and y, row by row, and their conversion to a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from graftwork.core.example import text_of
from graftwork.core.kind import Kind
from graftwork.core.table_columns import is_missing
from graftwork.core.task import Task
from graftwork.data.load import FEWEST_ROWS
from graftwork.data.splits.content_split import draw, with_every_label
from graftwork.errors import InputError, clip
from graftwork.io.files import write_bytes
from graftwork.targets.labels import labels_of

Inputs = Mapping[str, Any]  # role -> a text, or a tuple of words, as in an example
MOST_COLUMNS = 2


def texts_of(estimator: Any, X: Any, *, reset: bool) -> list[Inputs]:
    """Return the inputs of each row of X by role: `text` for one text, `text_a` and `text_b` for two columns of texts.

    With `reset`, the number and names of columns are stored in the estimator; else they are compared with the stored
    ones. Raises `InputError` for a cell that is no text and for wrong columns; otherwise as scikit-learn's
    `check_array`.
    """
    if isinstance(X, str):
        raise InputError("one text where a list of texts is expected", got=clip(X), do='write ["…"]')
    cells: NDArray[Any] = validate_data(
        estimator, X, reset=reset, dtype=object, ensure_2d=False, ensure_all_finite=False
    )  # (N,) or (N, columns)
    columns = 1 if cells.ndim == 1 else cells.shape[1]
    if reset:
        estimator.n_features_in_ = columns
    elif columns != estimator.n_features_in_:
        name = type(estimator).__name__
        raise InputError(
            f"X has {columns} features, but {name} is expecting {estimator.n_features_in_} features as input",
            do="give the same columns of texts as in fit",
        )
    if columns > MOST_COLUMNS:
        raise InputError(
            "X has too many columns",
            got=f"{columns} columns",
            expected="texts, or one or two columns of texts",
            do="select the columns of the text: X[['text']]",
        )
    roles = ("text",) if columns == 1 else ("text_a", "text_b")
    rows: list[Inputs] = [dict(zip(roles, row, strict=True)) for row in cells.reshape(-1, columns).tolist()]
    named = getattr(estimator, "feature_names_in_", range(columns))
    for place, row in enumerate(rows):
        for name, given in zip(named, row.values(), strict=True):
            _require_text(given, f"X, row {place}" + (f", column {name}" if columns > 1 else ""))
    return rows


def words_of(X: Any) -> list[Inputs]:
    """Return the input `words` of each row of X. Raises `InputError` for a row that is no list of words, or no rows."""
    if isinstance(X, str):
        raise InputError("one text where lists of words are expected", got=clip(X), do="split each text into words")
    rows: list[Inputs] = [{"words": strings_of(words, f"X, row {place}", "words")} for place, words in enumerate(X)]
    if not rows:
        raise InputError("there are no rows", expected="a list of words for each row")
    return rows


def column_of(y: Any, estimator: Any, *, numeric: bool = False) -> NDArray[Any]:
    """Return y as (N,) labels, or numbers. Raises `InputError` for a missing one, `ValueError` as `check_array`."""
    if y is None:
        name = type(estimator).__name__
        raise InputError(f"{name} requires y to be passed, but the target y is None", do="give one for each row of X")
    listed = y if isinstance(y, list | tuple) else column_or_1d(y).tolist()  # in a list of texts, numpy makes NaN "nan"
    for place, given in enumerate(listed):
        if is_missing(given):
            raise InputError("the label is missing", where=f"y, row {place}", do="drop the row, or fill it in")
    dtype = "numeric" if numeric else None
    column: NDArray[Any] = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=dtype, input_name="y")
    return column


def strings_of(given: Any, where: str, noun: str) -> tuple[str, ...]:
    """Return a list of words or tags as a tuple. Raises `InputError` for anything else, and for an empty list."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, str) for one in listed):
        raise InputError(f"no list of {noun}", where=where, got=clip(repr(given)), expected=f"a list of {noun}")
    return tuple(listed)


def _require_text(given: Any, where: str) -> None:
    if isinstance(given, str):
        return
    missing = is_missing(given)
    what = "the text is missing" if missing else "this is no text"
    do = "drop the row, or fill it in" if missing else "str(…) makes a text of it, if that is meant"
    raise InputError(what, where=where, got=clip(repr(given)), expected="a text", do=do)


def require_no_target(rows: Sequence[Inputs], targets: NDArray[Any]) -> None:
    """Raise `InputError` if one of the two columns of X equals y (N,): the model would see its target."""
    for place, role in enumerate(("text_a", "text_b"), 1):
        if rows and all(row.get(role) == target for row, target in zip(rows, targets.tolist(), strict=True)):
            raise InputError(
                "a column of X is y", got=f"column {place} of 2", expected="texts", do="leave it out: X[['text']]"
            )


def require_filled(rows: Sequence[Inputs]) -> None:
    """Raise `InputError` for a blank text: nothing can be learnt from it."""
    for place, row in enumerate(rows):
        if not all(text_of(given).strip() for given in row.values()):
            raise InputError("the text is empty", where=f"X, row {place}", do="drop the row, or fill it in")


def held_for_validation(rows: Sequence[Inputs], targets: Sequence[Any], kind: Kind, fraction: float) -> list[bool]:
    """Return for each row whether it is held out for validation: a share `fraction` of every class or stratum.

    The rows are drawn as in `data.load`, by a hash of their texts. Equal texts stay together, and a class with one row
    is only trained on. Raises `InputError` for a `fraction` outside of (0, 1), for too few rows, and if the texts of
    all rows are equal.
    """
    if not 0 < fraction < 1:
        raise InputError("validation_fraction must be above 0 and below 1", got=repr(fraction))
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            "too few rows to hold some out for validation",
            got=f"n_samples = {len(rows)}",
            expected=f"{FEWEST_ROWS} or more",
        )
    names = draw(rows, kind.strata(targets), {"validation": fraction})
    if kind.has_labels and not kind.per_word:
        names = with_every_label(rows, names, [labels_of(target) for target in targets])
    held = [name == "validation" for name in names]
    if not any(held) or all(held):
        raise InputError("no row is left for validation: rows with equal texts stay together", do="add rows")
    return held


def task_of(folder: Path, rows: Sequence[Inputs], targets: Sequence[Any], held: Sequence[bool], **flags: Any) -> Task:
    """Write the rows to files in `folder` and return their task, with further settings `flags`.

    The test split repeats the rows held out for validation: a run needs one, and no rows are taken from training.
    """
    parts = {
        name: columns_of(
            [row for row, out in zip(rows, held, strict=True) if out == held_out],
            [target for target, out in zip(targets, held, strict=True) if out == held_out],
        )
        for name, held_out in (("train", False), ("validation", True))
    }
    task = Task.from_data(parts, folder=folder, **flags)
    assert task.validation is not None
    again = task.validation.with_name(f"again-{task.validation.name}")
    write_bytes(again, task.validation.read_bytes())
    return task.resolved(test=again)


def columns_of(rows: Sequence[Inputs], targets: Sequence[Any]) -> dict[str, list[Any]]:
    """Return rows and targets as columns, with the names that a task looks for by default."""
    names = {"words": "tokens"}
    columns = {names.get(role, role): [row[role] for row in rows] for role in rows[0]}
    return columns | {"tags" if "tokens" in columns else "label": list(targets)}
