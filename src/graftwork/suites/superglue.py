"""SuperGLUE (Wang et al. 2019, arXiv:1905.00537), from its download folder: a JSONL file for each split."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.data.readers.choice_tables import ASKED
from graftwork.data.readers.json_text import json_object, json_text
from graftwork.data.readers.lines import read_lines
from graftwork.errors import DataError, clip
from graftwork.registry import suites

TITLE = "SuperGLUE (Wang et al. 2019)"
LEFT_OUT = {
    "MultiRC": "an answer has a score for each of its question's candidates together, which no kind gives",
    "ReCoRD": "a blank filled by one of many mentions in the passage, which no kind does",
}
MARKED = "the word that is asked about is between asterisks in both sentences: *word*"
MENTIONS = "one text, the noun phrase between asterisks and the pronoun between number signs: *Mark* … #him#"

Item = dict[str, Any]
Inputs = Callable[[Item], Row]  # a line of a file -> its inputs by role


def tasks(folder: Path) -> list[OfficialTask]:
    """Return the six tasks of single texts, pairs, or choices."""
    premise = _columns(text_a="premise", text_b="hypothesis")
    return [
        _task(folder, "BoolQ", _columns(text_a="question", text_b="passage")),
        _task(folder, "CB", premise, metrics=("macro_f1", "accuracy")),
        _task(folder, "COPA", _choices, kind="choice", ask=_asked),
        _task(folder, "RTE", premise),
        _task(folder, "WiC", _marked_word, note=MARKED),
        _task(folder, "WSC", _marked_mentions, note=MENTIONS),
    ]


def hand_in(name: str, answered: Iterable[tuple[Row, Any]]) -> Iterator[str]:
    """Yield the lines of the submission file `name`, such as `BoolQ.jsonl`: idx and label in the server's format."""
    for row, answer in answered:
        label: Any = answer
        if name == "COPA.jsonl":
            label = [row["choice1"], row["choice2"]].index(answer)
        elif name == "WSC.jsonl":
            label = answer.capitalize()
        yield json.dumps({"idx": row["index"], "label": label})


def _task(
    folder: Path,
    name: str,
    inputs: Inputs,
    *,
    kind: str = "classification",
    metrics: tuple[str, ...] = ("accuracy",),
    ask: Callable[[Row], Any] | None = None,
    note: str = "",
) -> OfficialTask:
    train, dev = (
        Source(path, partial(_rows, path, inputs, "label"))
        for path in (folder / name / "train.jsonl", folder / name / "val.jsonl")
    )
    hidden = folder / name / "test.jsonl"
    test = {f"{name}.jsonl": Source(hidden, partial(_rows, hidden, inputs, "idx"))}
    return OfficialTask(name, kind, metrics, train, {name: dev}, test, ask=ask, note=note)


def _columns(**roles: str) -> Inputs:
    return lambda item: {role: _text(item[key]) for role, key in roles.items()}


def _choices(item: Item) -> Row:
    """Return premise, choices and the question, in the words of COPA's authors."""
    asked = {key: _text(item[key]) for key in ("premise", "choice1", "choice2")}
    if item["question"] not in list(ASKED):
        raise ValueError(f"{json_text(item['question'])} is neither cause nor effect")
    return asked | {"question": ASKED[item["question"]]}


def _asked(row: Row) -> Any:
    return {"text": f"{row['premise']} {row['question']}", "choices": [row["choice1"], row["choice2"]]}


def _marked_word(item: Item) -> Row:
    marked = {}
    for role, number in (("text_a", 1), ("text_b", 2)):
        text, start, end = _text(item[f"sentence{number}"]), item[f"start{number}"], item[f"end{number}"]
        if not (type(start) is int and type(end) is int and 0 <= start < end <= len(text)):
            raise ValueError(f"start{number} and end{number} lie outside sentence{number}")
        marked[role] = f"{text[:start]}*{text[start:end]}*{text[end:]}"
    return marked


def _marked_mentions(item: Item) -> Row:
    """Mark the two mentions of WSC; their positions count words separated by white space."""
    words = _text(item["text"]).split()
    for number, sign in ((1, "*"), (2, "#")):
        first = item["target"][f"span{number}_index"]
        last = first + len(_text(item["target"][f"span{number}_text"]).split()) - 1
        if type(first) is not int or not 0 <= first <= last < len(words):
            raise ValueError(f"span{number} lies outside the text")
        words[first] = sign + words[first]
        words[last] += sign
    return {"text": " ".join(words)}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{json_text(value)} is no text")
    return value


def _rows(path: Path, inputs: Inputs, wanted: str) -> Iterator[Row]:
    """Yield every row with its label or, for a test file, its index. Raises `DataError` with file:line."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        item = json_object(line, f"{path}:{number}")
        try:
            extra = {"index": item["idx"]} if wanted == "idx" else {"label": _label(item["label"], item)}
            yield {**inputs(item), **extra}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            missing = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f"not a row of SuperGLUE: {missing}",
                where=f"{path}:{number}",
                got=clip(line.strip()),
                expected="the keys and types of its own files",
                do="take the file from the download of SuperGLUE as it is",
            ) from None


def _label(value: Any, item: Item) -> str:
    """Return the label as text: "true" or "false" for a boolean, "choice1" or "choice2" for the index of a choice."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if "choice1" not in item:
        return _text(value)
    if type(value) is not int or f"choice{value + 1}" not in item:
        raise ValueError(f"{json_text(value)} is no choice")
    return f"choice{value + 1}"


suites.register("superglue")(Suite(TITLE, tasks, LEFT_OUT, hand_in))
