"""Reader of Label Studio's JSON_MIN: a task and its annotations in one flat object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.data.readers.annotated_texts import items_of
from graftwork.data.readers.annotation_exports import region, task_text
from graftwork.data.readers.character_offsets import tagged
from graftwork.data.readers.json_text import json_text
from graftwork.data.readers.rejects import Bad, Cell, DataRow, RowSource
from graftwork.errors import DataError, clip

ABOUT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")  # no task data
WRITERS = ("annotator", "annotation_id", "lead_time")  # one of them is in every object
AGAIN = "export the project again"


def is_min(item: Any) -> bool:
    """Return whether an item of a list is of this format."""
    return isinstance(item, dict) and "data" not in item and any(key in item for key in WRITERS)


def opened(path: Path, content: Any) -> RowSource:
    """Return a row per task of an export, parsed from JSON: its data and annotations, numbered by position from 1.

    Columns are the names of data fields and questions, and `tokens` and `tags` for a question about spans. Equal
    annotations by several annotators are one row. An unanswered question is an empty list, as is a task without spans.
    """
    if not isinstance(content, list):
        raise _error(
            "the file is not a list of tasks", str(path), json_text(content), "the JSON_MIN export of Label Studio"
        )
    header: dict[str, None] = {}
    answers: dict[str, set[str]] = {}  # id -> the different answers
    for item in content:
        if isinstance(item, dict):
            spans = _span_keys(item)
            header |= dict.fromkeys(key for key in item if key not in (*ABOUT, *spans))
            header |= dict.fromkeys(("tokens", "tags") if spans else ())
        if is_min(item):
            answers.setdefault(_id(item), set()).add(_comparable(item))

    def rows(wanted: Sequence[str], labels: Sequence[str], words: str | None) -> Iterator[DataRow | Bad]:
        return _rows(path, content, answers, wanted)

    return RowSource(tuple(header) or None, rows, "JSON_MIN of Label Studio")


def _rows(
    path: Path, content: list[Any], answers: Mapping[str, set[str]], wanted: Sequence[str]
) -> Iterator[DataRow | Bad]:
    read = set[str]()
    for number, _, where, item in items_of(path, content):
        try:
            if not is_min(item):
                raise _error(
                    "the item is not a task of JSON_MIN",
                    where,
                    json_text(item),
                    '{"id": 1, "text": "…", "label": "…", …}',
                )
            if len(answers[_id(item)]) > 1:
                what, got = "the annotators gave different answers", clip(_comparable(item))
                raise _error(what, where, got, "one annotation of each task", "keep one of them")
            if _id(item) in read:
                continue
            read |= {_id(item)} if "id" in item else set()
            cells, rounded = _cells(item, wanted, where)
        except DataError as error:
            yield Bad(path, number, error)
        else:
            yield DataRow(number, cells, rounded)


def _id(item: dict[str, Any]) -> str:
    return json.dumps(item.get("id", _comparable(item)))


def _comparable(item: dict[str, Any]) -> str:
    """Return data and annotations, for comparison."""
    return json.dumps({name: value for name, value in item.items() if name not in ABOUT}, sort_keys=True)


def _span_keys(item: dict[str, Any]) -> list[str]:
    listed = {key: value for key, value in item.items() if isinstance(value, list) and value}
    return [key for key, spans in listed.items() if all(isinstance(one, dict) and "labels" in one for one in spans)]


def _cells(item: dict[str, Any], wanted: Sequence[str], where: str) -> tuple[tuple[Cell, ...], int]:
    """Return the cells, and the number of spans that were widened."""
    words: dict[str, tuple[str, ...]] = {}
    rounded, spans = 0, _span_keys(item)
    if "tokens" in wanted or "tags" in wanted:
        if len(spans) > 1:
            raise _error(
                "the spans answer more than one question", where, clip(", ".join(spans)), "one question about spans"
            )
        text = task_text({key: value for key, value in item.items() if key not in (*ABOUT, *spans)}, where)
        marked = item[spans[0]] if spans else []
        found = tagged(text, [region({"value": span}, text, where) for span in marked])
        words, rounded = found.cells, found.rounded
    return tuple(words[name] if name in words else _cell(item.get(name), name, where) for name in wanted), rounded


def _cell(value: Any, name: str, where: str) -> Cell:
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        value = value["choices"]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    if value is None:
        return ()
    if isinstance(value, str):
        return value
    raise _error(f"the answer to {name!r} is neither a text, a number nor choices", where, json_text(value), '"…"')


def _error(what: str, where: str, got: str, expected: str, do: str = AGAIN) -> DataError:
    return DataError(what, where=where, got=got, expected=expected, do=do)
