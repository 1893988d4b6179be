"""Readers of annotation exports: JSON of Label Studio (choices, spans) and JSONL of doccano (character spans).

doccano's labelled texts are ordinary JSONL and are not read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.annotated_texts import Annotated, annotated, items_of, source_of
from graftwork.data.readers.character_offsets import Mark, TaggedText, tagged
from graftwork.data.readers.json_text import json_object, json_text
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource, each_parsed
from graftwork.errors import DataError, clip

Item = Mapping[str, Any]
MARKED = ("label", "labels", "entities")  # keys of the spans in doccano's versions
TASK = 'tasks such as {"id": 1, "data": {"text": "…"}, "annotations": [{"result": […]}]}'
SAID = ("type", "from_name", "to_name", "value")  # keys with a result's content; the others are its id and origin


def doccano(lines: TextLines) -> RowSource | None:
    """Return the words and tags of every text in doccano's JSONL; None for other JSONL, or doccano's without spans."""
    key = _spans_key(lines)

    def rows() -> Iterator[NumberedRow | Bad]:
        for found in each_parsed(lines, _of_doccano):
            yield found if isinstance(found, Bad) else (found[0], found[1].cells, found[1].rounded, found[0])

    return RowSource.named(("tokens", "tags"), rows, spans_key=key) if key else None


def _spans_key(lines: TextLines) -> str | None:
    """Return the key of the spans if a JSONL file is doccano's: its first non-empty label is a list of spans."""
    for found in each_parsed(lines, json_object):
        if isinstance(found, Bad):
            continue  # the reader of JSONL reports the error
        item = found[1]
        key, given = _span_field(item)
        if not (isinstance(item.get("text"), str) and isinstance(given, list)):
            return None
        if given:
            return key if all(_is_triple(mark) for mark in given) else None
    return None


def _of_doccano(line: str, where: str) -> TaggedText:
    item = json_object(line, where)
    text, given = item.get("text"), _span_field(item)[1]
    if not (isinstance(text, str) and isinstance(given, list) and all(_is_triple(mark) for mark in given)):
        _refuse(
            "the line is not a row of doccano with spans",
            where,
            json_text(item),
            '{"text": "…", "label": [[0, 5, "TYPE"]]}',
        )
    return tagged(text, [_mark(mark, where) for mark in given])


def _span_field(item: Item) -> tuple[str | None, Any]:
    """Return the key that may hold spans, and its value."""
    return next(((key, item[key]) for key in MARKED if key in item), (None, None))


def _is_triple(mark: Any) -> bool:
    parts = [mark.get(key) for key in ("start_offset", "end_offset", "label")] if isinstance(mark, dict) else mark
    return isinstance(parts, list) and [type(part) for part in parts] == [int, int, str]


def _mark(mark: Any, where: str) -> Mark:
    if isinstance(mark, dict):
        return Mark(mark["start_offset"], mark["end_offset"], mark["label"], where)
    start, end, label = mark
    return Mark(start, end, label, where)


def label_studio(path: Path, content: Any) -> RowSource:
    """Return the texts of an export, parsed from JSON. Raises `DataError` if they have neither choices nor spans."""
    if not isinstance(content, list):
        _refuse(
            "the file is not a list",
            str(path),
            json_text(content),
            "a list of rows, or the JSON export of Label Studio; for that of SQuAD: --kind span",
            'write a list of rows, as pandas does by to_json(…, orient="records"); a file with an object on every line '
            "is called .jsonl",
        )
    found = annotated(path, items_of(path, content), _task)
    if not any(isinstance(one, Annotated) and one.marks for one in found):
        found = [one if isinstance(one, Bad) else replace(one, marks=None) for one in found]
    return source_of(path, found, "", single=True)


def is_task(item: Item) -> bool:
    """Return whether an item of a list is meant as a task of an export, not as a row."""
    return isinstance(item.get("data"), dict) or "annotations" in item


def _task(item: Any, where: str) -> Annotated:
    """Return the text of a task with its choices and spans."""
    if not (isinstance(item, dict) and isinstance(item.get("data"), dict) and "annotations" in item):
        _refuse("the item is not a task of Label Studio's JSON export", where, json_text(item), TASK)
    text, results = task_text(item["data"], where), _results(item["annotations"], where)
    _require_one_control(results, where)
    choices = [choice for result in results for choice in _choices(result, where)]
    marks = tuple(region(result, text, where) for result in results if result["type"] == "labels")
    return Annotated(text, dict.fromkeys(choices, True), marks)


def task_text(data: Item, where: str) -> str:
    """Return a task's text: the field `text` of its data, else the only text field. Raises `DataError`."""
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    if "text" not in texts and "text" in data:
        _refuse("the text is not a string", where, json_text(data["text"]), 'data such as {"text": "…"}')
    if "text" not in texts and len(texts) != 1:
        what = "the task has no text, or more than one"
        _refuse(what, where, clip(", ".join(data)), "data with a text called text")
    return texts.get("text", next(iter(texts.values())))


def _results(annotations: Any, where: str) -> list[Any]:
    """Return the results of the annotation, or of the first of several equal ones; each is an object with a type."""
    if not isinstance(annotations, list) or not all(isinstance(one, dict) for one in annotations):
        _refuse("the annotations are not a list of objects", where, json_text(annotations), TASK)
    done = [one.get("result") for one in annotations if not one.get("was_cancelled")]
    for found in done:
        if not isinstance(found, list) or not all(isinstance(r, dict) and type(r.get("type")) is str for r in found):
            _refuse("the results are not a list of objects with a type", where, json_text(found), TASK)
    if not done or any(_comparable(found) != _comparable(done[0]) for found in done):
        what = "the annotators gave different answers" if done else "nobody has annotated the task"
        _refuse(what, where, json_text(annotations), "one annotation of each task")
    return list(done[0])


def _comparable(results: list[Item]) -> list[str]:
    """Return an annotation's content, for comparison: its results sorted and without their ids."""
    return sorted(json.dumps([result.get(key) for key in SAID], sort_keys=True) for result in results)


def _value(result: Item, where: str) -> Item:
    value = result.get("value")
    if not isinstance(value, dict):
        _refuse("the result has no value", where, json_text(result), '{"type": "choices", "value": {"choices": ["…"]}}')
    return value


def _require_one_control(results: list[Any], where: str) -> None:
    """Raise `DataError` where the choices answer more than one question."""
    controls = dict.fromkeys(str(result.get("from_name")) for result in results if result["type"] == "choices")
    if len(controls) > 1:
        told = clip(", ".join(controls))
        remedy = "export a project that asks one question, or keep the results of one"
        _refuse("the choices answer more than one question", where, told, "results with one from_name", remedy)


def _choices(result: Item, where: str) -> list[str]:
    if result["type"] != "choices":
        return []
    found = _value(result, where).get("choices")
    if not isinstance(found, list) or not all(isinstance(choice, str) for choice in found):
        _refuse("the choices are not a list of texts", where, json_text(found), '{"choices": ["…"]}')
    return found


def region(result: Item, text: str, where: str) -> Mark:
    """Return a result with one span of `text`. Raises `DataError`."""
    value = _value(result, where)
    start, end, types = value.get("start"), value.get("end"), value.get("labels")
    if not (type(start) is int and type(end) is int and isinstance(types, list)):
        _refuse("not a span", where, json_text(value), '{"start": 0, "end": 5, "labels": ["TYPE"]}')
    if len(types) != 1 or not isinstance(types[0], str):
        _refuse("the span does not have exactly one label", where, json_text(types), "one label for each span")
    if "text" in value and (start < 0 or text[start:end] != value["text"]):
        there = clip(text[max(0, start) : max(0, end)])
        _refuse(
            "the span's text is not the one at its offsets",
            where,
            f"{json_text(value['text'])} where characters {start} to {end} are {there}",
            "offsets that count characters; those of texts with emoji may count half characters",
        )
    return Mark(start, end, types[0], where)


def _refuse(what: str, where: str, got: str, expected: str, do: str = "mend it, or export it again") -> NoReturn:
    """Raise `DataError`; `got` is already shortened for a message."""
    raise DataError(what, where=where, got=got, expected=expected, do=do)
