"""Readers of annotation exports: JSON of Label Studio (choices, spans) and JSONL of doccano (character spans).

doccano's labelled texts are ordinary JSONL and are not read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.character_offsets import Mark, Tagged, tagged
from graftwork.data.readers.json_text import json_object, shown, whole_json
from graftwork.data.readers.lines import each_line
from graftwork.data.readers.rejects import Bad, Named
from graftwork.errors import DataError, clip

Item = Mapping[str, Any]
MARKED = ("label", "labels", "entities")  # keys of the spans in doccano's versions
TASK = 'tasks such as {"id": 1, "data": {"text": "…"}, "annotations": [{"result": […]}]}'
TO_LINES = "python -c 'import json; [print(json.dumps(row)) for row in json.load(open(\"%s\"))]' > %s.jsonl"
SAID = ("type", "from_name", "to_name", "value")  # keys with a result's content; the others are its id and origin


def spans_key(path: Path) -> str | None:
    """Return the key of the spans if a JSONL file is doccano's: its first non-empty label is a list of spans."""
    for number, line in each_line(path):
        item = json_object(line, f"{path}:{number}") if isinstance(line, str) else line
        if isinstance(item, DataError):
            continue  # the reader of JSONL reports the error
        key, given = _marked(item)
        if not (isinstance(item.get("text"), str) and isinstance(given, list)):
            return None
        if given:
            return key if all(_is_triple(mark) for mark in given) else None
    return None


def doccano_rows(path: Path) -> Iterator[Named | Bad]:
    """Yield the words and tags of every text."""
    for number, line in each_line(path):
        if isinstance(line, str) and not line.strip():
            continue
        try:
            found = _of_doccano(line, f"{path}:{number}")
        except DataError as error:
            yield Bad(path, number, error, number)
        else:
            yield number, found.cells, found.rounded, number


def _of_doccano(line: str | DataError, where: str) -> Tagged:
    item = json_object(line, where) if isinstance(line, str) else line
    if isinstance(item, DataError):
        raise item
    text, given = item.get("text"), _marked(item)[1]
    if not (isinstance(text, str) and isinstance(given, list) and all(_is_triple(mark) for mark in given)):
        _refuse("not a row of doccano's spans", where, shown(item), '{"text": "…", "label": [[0, 5, "TYPE"]]}')
    return tagged(text, [_mark(mark, where) for mark in given])


def _marked(item: Item) -> tuple[str | None, Any]:
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


def label_studio_header(path: Path) -> tuple[str, ...] | None:
    """Return `text`, `label` if tasks have choices, `tokens`, `tags` if they have spans; None without tasks."""
    found: dict[str, None] = {}
    tasks, wrong = 0, None
    for _, _, task in _tasks(path):
        tasks += 1
        if isinstance(task, DataError):
            wrong = wrong or task
            continue
        for result in task[1]:
            found |= dict.fromkeys({"choices": ("text", "label"), "labels": ("tokens", "tags")}.get(result["type"], ()))
        if len(found) == 4:
            break
    if found or not tasks:
        return tuple(found) or None
    if wrong is not None:
        raise wrong
    raise DataError(
        "the tasks have neither choices nor spans",
        where=str(path),
        got=f"{tasks:,} tasks",
        expected='results of the type "choices" or "labels"',
        do="export a project that labels texts or spans of them",
    )


def label_studio_rows(path: Path) -> Iterator[Named | Bad]:
    """Yield the text, label, words and tags of every task, numbered from 1. Errors give its place and its id."""
    for number, where, task in _tasks(path):
        try:
            if isinstance(task, DataError):
                raise task
            text, results = task
            _require_one_control(results, where)
            choices = [choice for result in results for choice in _choices(result, where)]
            found = tagged(text, [region(result, text, where) for result in results if result["type"] == "labels"])
        except DataError as error:
            yield Bad(path, number, error)
            continue
        label = choices[0] if len(choices) == 1 else tuple(choices)
        yield number, {"text": text, "label": label, **found.cells}, found.rounded, 0


def _tasks(path: Path) -> Iterator[tuple[int, str, tuple[str, list[Any]] | DataError]]:
    """Yield the number and location of every task with its text and results, or with its error."""
    content = whole_json(path, "export it again; if it has an object on every line, rename the file to .jsonl")
    if not isinstance(content, list):
        _refuse(
            "not a list of tasks",
            str(path),
            shown(content),
            "the JSON export of Label Studio; for that of SQuAD: --kind span",
            "rename the file to .jsonl, if it has an object on every line",
        )
    for number, item in enumerate(content, 1):
        where = f"{path}: [{number - 1}]"
        try:
            if not (isinstance(item, dict) and isinstance(item.get("data"), dict) and "annotations" in item):
                remedy = f"make JSONL of a list of rows: {TO_LINES % (path.name, path.stem)}"
                _refuse("not a task of Label Studio's JSON export", where, shown(item), TASK, remedy)
            where += f" (task {str(item.get('id'))[:40]})" if isinstance(item.get("id"), int | str) else ""
            yield number, where, (task_text(item["data"], where), _results(item["annotations"], where))
        except DataError as error:
            yield number, where, error


def task_text(data: Item, where: str) -> str:
    """Return the text among a task's data: `text`, or the only one. Raises `DataError`."""
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    if "text" not in texts and "text" in data:
        _refuse("the text is no string", where, shown(data["text"]), 'data such as {"text": "…"}')
    if "text" not in texts and len(texts) != 1:
        what = "no text, or more than one"
        _refuse(what, where, clip(", ".join(data)), "data with a text called text")
    return texts.get("text", next(iter(texts.values())))


def _results(annotations: Any, where: str) -> list[Any]:
    """Return the results of the annotation, or of the first of several equal ones; each is an object with a type."""
    if not isinstance(annotations, list) or not all(isinstance(one, dict) for one in annotations):
        _refuse("the annotations are no list of objects", where, shown(annotations), TASK)
    done = [one.get("result") for one in annotations if not one.get("was_cancelled")]
    for found in done:
        if not isinstance(found, list) or not all(isinstance(r, dict) and type(r.get("type")) is str for r in found):
            _refuse("the results are no list of objects with a type", where, shown(found), TASK)
    if not done or any(_said(found) != _said(done[0]) for found in done):
        what = "several annotators answered, and not the same" if done else "nobody has annotated the task"
        _refuse(what, where, shown(annotations), "one annotation of each task")
    return list(done[0])


def _said(results: list[Item]) -> list[str]:
    """Return an annotation's content, for comparison: its results sorted and without their ids."""
    return sorted(json.dumps([result.get(key) for key in SAID], sort_keys=True) for result in results)


def _value(result: Item, where: str) -> Item:
    value = result.get("value")
    if not isinstance(value, dict):
        _refuse("a result without its value", where, shown(result), '{"type": "choices", "value": {"choices": ["…"]}}')
    return value


def _require_one_control(results: list[Any], where: str) -> None:
    """Raise `DataError` where the choices answer more than one question."""
    controls = dict.fromkeys(str(result.get("from_name")) for result in results if result["type"] == "choices")
    if len(controls) > 1:
        told = clip(", ".join(controls))
        remedy = "export a project that asks one question, or keep the results of one"
        _refuse("choices of more than one control", where, told, "results with one from_name", remedy)


def _choices(result: Item, where: str) -> list[str]:
    if result["type"] != "choices":
        return []
    found = _value(result, where).get("choices")
    if not isinstance(found, list) or not all(isinstance(choice, str) for choice in found):
        _refuse("the choices are no list of texts", where, shown(found), '{"choices": ["…"]}')
    return found


def region(result: Item, text: str, where: str) -> Mark:
    """Return a result with one span of `text`. Raises `DataError`."""
    value = _value(result, where)
    start, end, types = value.get("start"), value.get("end"), value.get("labels")
    if not (type(start) is int and type(end) is int and isinstance(types, list)):
        _refuse("not a span", where, shown(value), '{"start": 0, "end": 5, "labels": ["TYPE"]}')
    if len(types) != 1 or not isinstance(types[0], str):
        _refuse("a span with more than one label", where, shown(types), "one label for each span")
    if "text" in value and (start < 0 or text[start:end] != value["text"]):
        _refuse(
            "the span's own text is another",
            where,
            f"{shown(value['text'])} where characters {start} to {end} are {clip(text[max(0, start) : max(0, end)])}",
            "offsets that count characters; those of texts with emoji may count half characters",
        )
    return Mark(start, end, types[0], where)


def _refuse(what: str, where: str, got: str, expected: str, do: str = "mend it, or export it again") -> NoReturn:
    """Raise `DataError`; `got` is already shortened for a message."""
    raise DataError(what, where=where, got=got, expected=expected, do=do)
