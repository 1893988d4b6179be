"""Reader of Prodigy's JSONL (`prodigy db-out`): labels accepted or rejected, options chosen, and spans.

All answers to one text are one row. Answers to other questions, such as relations or images, are not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from graftwork.data.readers import annotated_texts
from graftwork.data.readers.annotated_texts import Annotated
from graftwork.data.readers.character_offsets import Mark
from graftwork.data.readers.json_text import json_object, json_text
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import Bad, RowSource
from graftwork.errors import DataError, clip
from graftwork.units import several

Item = Mapping[str, Any]
ANSWERS = ("accept", "reject", "ignore")
ASKED = ("_task_hash", "_input_hash", "spans", "accept", "options", "label")  # each answer has one of them
TEACH = "ner"  # the interface for accepting or rejecting a single span
MEND = "mend the line, or export it again: prodigy db-out DATASET > FILE.jsonl"


def is_prodigy(item: Item) -> bool:
    """Return whether an object of JSONL is a text that was annotated in Prodigy."""
    if not isinstance(item.get("text"), str):
        return False
    if item.get("answer") in ANSWERS:
        return any(key in item for key in ASKED)
    spans = item.get("spans")
    return isinstance(spans, list) and bool(spans) and all(map(_is_span, spans))


def opened(lines: TextLines) -> RowSource:
    """Return a row for every text with a decision. Raises `DataError` where no text has an answer."""
    found, answers, open_texts = _read(lines)
    counted = ", ".join(f"{answers[name]:,} {name.removesuffix('e')}ed" for name in ANSWERS if answers[name])
    left = f"; {several(open_texts, 'text')} left out, of which only rejected labels are known" if open_texts else ""
    told = f"answers of Prodigy: {counted}{left}"
    if not found:
        _refuse("no text has an answer", str(lines.path), told, "texts that were accepted", "annotate them, or others")
    return annotated_texts.source_of(lines.path, found, told)


def _read(lines: TextLines) -> tuple[list[Annotated | Bad], Counter[str], int]:
    """Return the texts in file order, the number of answers of each type, and of texts with rejected labels only."""
    path = lines.path
    answers: Counter[str] = Counter()
    found: dict[str, Annotated | Bad] = {}
    broken: list[Bad] = []
    chosen = set[str]()  # texts whose labels are all known
    for number, line in lines:
        if isinstance(line, str) and not line.strip():
            continue
        where, text = f"{path}:{number}", None
        try:
            if isinstance(line, DataError):
                raise line
            item = _item(line, where)
            text, answer = item["text"], item.get("answer", ANSWERS[0])
            answers[answer] += 1
            one = _answered(item, answer, number, where)
            if one is not None:
                before = found.get(text, one)
                found[text] = before if isinstance(before, Bad) else _merged(before, one, where)
                chosen |= {text} if "accept" in item or "options" in item else set()
        except DataError as error:
            bad = Bad(path, number, error, number)
            if text is None:
                broken.append(bad)
            else:
                found[text] = bad
    left = [] if len(annotated_texts.label_names(found.values())) == 1 else _left_open(found, chosen)
    kept = [*(one for text, one in found.items() if text not in left), *broken]
    return sorted(kept, key=lambda one: one.line if isinstance(one, Bad) else one.number), answers, len(left)


def _left_open(found: Mapping[str, Annotated | Bad], chosen: set[str]) -> list[str]:
    """Return the texts for which only rejected labels are known."""
    return [
        text
        for text, one in found.items()
        if isinstance(one, Annotated) and one.labels and not any(one.labels.values()) and text not in chosen
    ]


def _item(line: str, where: str) -> dict[str, Any]:
    item = json_object(line, where)
    if not isinstance(item.get("text"), str) or item.get("answer", ANSWERS[0]) not in ANSWERS:
        _refuse("the line is not an answer of Prodigy", where, json_text(item), '{"text": "…", …, "answer": "accept"}')
    return item


def _answered(item: Item, answer: str, number: int, where: str) -> Annotated | None:
    """Return the annotation of a text by one answer; None if the answer gives none."""
    text = item["text"]
    if "accept" in item or "options" in item:
        return Annotated(text, _options(item, where), number=number, last=number) if answer == "accept" else None
    if isinstance(item.get("label"), str):
        labels = {item["label"]: answer == "accept"}
        return Annotated(text, labels, number=number, last=number) if answer != "ignore" else None
    if item.get("_view_id") == TEACH:
        got = f"an answer of the interface {TEACH}"
        remedy = "annotate whole texts, by ner.manual or ner.correct"
        _refuse(
            "the answer is about one span and leaves the text's others open", where, got, "all spans of a text", remedy
        )
    if answer != "accept":
        return None
    spans = item.get("spans") or []
    if not (isinstance(spans, list) and all(map(_is_span, spans))):
        _refuse(
            "the spans are not in Prodigy's form", where, json_text(spans), '[{"start": 0, "end": 5, "label": "TYPE"}]'
        )
    marks = tuple(Mark(span["start"], span["end"], span["label"], where) for span in spans)
    return Annotated(text, marks=marks, number=number, last=number)


def _options(item: Item, where: str) -> dict[str, bool]:
    """Return label -> whether it was chosen, for all options; a label is the option's id."""
    options, accepted = item.get("options", []), item.get("accept", [])
    listed = [option.get("id") if isinstance(option, dict) else None for option in options or ()]
    if not isinstance(accepted, list) or not all(isinstance(one, str | int) for one in [*listed, *accepted]):
        got = json_text({"options": options, "accept": accepted})
        _refuse(
            "the options are not in Prodigy's form",
            where,
            got,
            '"options": [{"id": "A", "text": "…"}], "accept": ["A"]',
        )
    names = dict.fromkeys(map(str, [*listed, *accepted]), False)
    return names | dict.fromkeys(map(str, accepted), True)


def _merged(before: Annotated, after: Annotated, where: str) -> Annotated:
    """Return two answers to one text as one. Raises `DataError` where they contradict."""
    old, new = before.labels or {}, after.labels or {}
    clashing = [name for name in new if old.get(name, new[name]) != new[name]]
    spans = [{(mark.start, mark.end, mark.type) for mark in one.marks or ()} for one in (before, after)]
    both = before.marks is not None and after.marks is not None
    if clashing or (both and spans[0] != spans[1]):
        what = f"{clip(clashing[0])} is both accepted and rejected" if clashing else "other spans"
        _refuse(
            f"the text has another answer on an earlier line: {what}",
            where,
            f"{clip(after.text)}, first in line {before.number}",
            "one answer, or equal ones",
            "keep one of the answers: prodigy review",
        )
    labels = None if before.labels is None and after.labels is None else {**old, **new}
    return replace(before, labels=labels, marks=before.marks if before.marks is not None else after.marks)


def _is_span(span: Any) -> bool:
    parts = [span.get(key) for key in ("start", "end", "label")] if isinstance(span, dict) else []
    return [type(part) for part in parts] == [int, int, str]


def _refuse(what: str, where: str, got: str, expected: str, do: str = MEND) -> NoReturn:
    """Raise `DataError`; `got` is already shortened for a message."""
    raise DataError(what, where=where, got=got, expected=expected, do=do)
