"""Exports of annotation tools: JSON of Label Studio (choices, spans) and JSONL of doccano (spans by characters).

doccano's texts with labels are JSONL like any other and need nothing of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.lines import read_lines
from graftwork.data.offsets import Mark, tagged
from graftwork.errors import DataError, clip

Item = Mapping[str, Any]
Cells = dict[str, Any]  # column -> cell
MARKED = ("label", "labels", "entities")  # where doccano's versions keep spans
_SKIPPED = re.compile(r"[\s,]*")


def has_spans(path: Path) -> bool:
    """Whether a JSONL file is doccano's with spans: its first label that is no empty list is a list of them."""
    for _, line in read_lines(path):
        try:
            item = json.loads(line)
        except ValueError:
            return False  # the reader of JSONL says what is wrong with it
        given = _marked(item) if isinstance(item, dict) and isinstance(item.get("text"), str) else None
        if not isinstance(given, list):
            return False
        if given:
            return all(_is_triple(mark) for mark in given)
    return False


def doccano_rows(path: Path) -> Iterator[tuple[int, Cells, int]]:
    """Line, words and tags, and how many spans were rounded, of every text. Raises `DataError` with file:line."""
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            text, given = item["text"], _marked(item)
        except (ValueError, TypeError, KeyError, AttributeError):
            item, text, given = None, None, None
        if not (isinstance(text, str) and isinstance(given, list) and all(_is_triple(mark) for mark in given)):
            _refuse("not a row of doccano's spans", where, line, '{"text": "…", "label": [[0, 5, "TYPE"]]}')
        found = tagged(text, [_mark(mark, where) for mark in given])
        yield number, {"tokens": found.words, "tags": found.tags}, found.rounded


def _marked(item: Item) -> Any:
    return next((item[key] for key in MARKED if key in item), None)


def _is_triple(mark: Any) -> bool:
    if isinstance(mark, dict):
        return {"start_offset", "end_offset", "label"} <= mark.keys()
    return isinstance(mark, list) and [type(part) for part in mark] == [int, int, str]


def _mark(mark: Any, where: str) -> Mark:
    if isinstance(mark, dict):
        return Mark(mark["start_offset"], mark["end_offset"], mark["label"], where)
    start, end, label = mark
    return Mark(start, end, label, where)


def label_studio_header(path: Path) -> tuple[str, ...] | None:
    """`text` and `label` where the tasks have choices, `tokens` and `tags` where they have spans; None for no task."""
    found: dict[str, None] = {}
    for _, _, _, results in _tasks(path):
        for result in results:
            found |= dict.fromkeys({"choices": ("text", "label"), "labels": ("tokens", "tags")}.get(result["type"], ()))
        if len(found) == 4:
            break
    return tuple(found) or None


def label_studio_rows(path: Path) -> Iterator[tuple[int, Cells, int]]:
    """Line, cells, and how many spans were rounded, of every task. Raises `DataError` with file:line and the id."""
    for number, where, text, results in _tasks(path):
        choices = [choice for result in results for choice in result["value"].get("choices", ())]
        marks = [_region(result["value"], text, where) for result in results if result["type"] == "labels"]
        found = tagged(text, marks)
        label = choices[0] if len(choices) == 1 else tuple(choices)
        yield number, {"text": text, "label": label, "tokens": found.words, "tags": found.tags}, found.rounded


def _tasks(path: Path) -> Iterator[tuple[int, str, str, list[Any]]]:
    """Line, place, text and results of every task."""
    expected = 'tasks such as {"id": 1, "data": {"text": "…"}, "annotations": [{"result": […]}]}'
    for number, item in _items(path):
        place = f"{path}:{number}"
        if not (isinstance(item, dict) and isinstance(item.get("data"), dict) and "annotations" in item):
            _refuse("not a task of Label Studio's JSON export", place, json.dumps(item), expected)
        where = f"{place} (task {item.get('id')})"
        texts = {key: value for key, value in item["data"].items() if isinstance(value, str)}
        if "text" not in texts and len(texts) != 1:
            _refuse("no text, or more than one", where, ", ".join(item["data"]), "data with a text called text")
        done = [one["result"] for one in item["annotations"] if not one.get("was_cancelled")]
        if not done or any(result != done[0] for result in done):
            what = "several annotators answered, and not the same" if done else "nobody has annotated the task"
            _refuse(what, where, next(iter(texts.values())), "one annotation of each task")
        yield number, where, texts.get("text", next(iter(texts.values()))), done[0]


def _region(value: Item, text: str, where: str) -> Mark:
    start, end, types = value["start"], value["end"], value["labels"]
    if len(types) != 1:
        _refuse("a span with more than one label", where, ", ".join(types), "one label for each span")
    if "text" in value and text[start:end] != value["text"]:
        _refuse(
            "the span's own text is another",
            where,
            f"{value['text']} where characters {start} to {end} are {text[start:end]}",
            "offsets that count characters; those of texts with emoji may count half characters",
        )
    return Mark(start, end, types[0], where)


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    """Line and value of every item of a JSON list."""
    text = "".join(line for _, line in read_lines(path))
    decoder, at = json.JSONDecoder(), len(text) - len(text.lstrip())
    if text[at : at + 1] != "[":
        _refuse(
            "not a list of tasks",
            f"{path}:1",
            text[at : at + 200],
            "the JSON export of Label Studio; for that of SQuAD: --kind span",
        )
    at, line, counted = at + 1, 1, 0
    while True:
        skipped = _SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if text[at : at + 1] == "]":
            return
        line, counted = line + text.count("\n", counted, at), at
        try:
            item, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise DataError(f"not whole JSON: {error}", where=f"{path}:{line}", do="export it again") from None
        yield line, item


def _refuse(what: str, where: str, got: str, expected: str) -> NoReturn:
    raise DataError(what, where=where, got=clip(got.strip()), expected=expected, do="mend it, or export it again")
