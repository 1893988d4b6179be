"""SuperGLUE's files as they are: labels, marked words and mentions, what is handed in, and bad lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.benchmark.run_suite import benchmark
from graftwork.core.suite import OfficialTask
from graftwork.errors import DataError
from graftwork.registry import suites


def task(folder: Path, name: str, *items: dict[str, Any], split: str = "train") -> OfficialTask:
    """The task, after these lines were written to one of its files."""
    path = folder / name / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items))
    return next(task for task in suites.get("superglue").tasks(folder) if task.name == name)


def boolq(count: int) -> list[dict[str, Any]]:
    words = ("warm", "cold")
    return [{"question": f"is it warm {i}", "passage": f"it is {words[i % 2]}", "label": i % 2 == 0, "idx": i}
            for i in range(count)]  # fmt: skip


def test_labels_are_as_the_server_names_them(tmp_path: Path) -> None:
    asked = task(tmp_path, "BoolQ", *boolq(2))
    assert [row["label"] for row in asked.train.read() if row] == ["true", "false"]
    item = {"premise": "It rained.", "question": "effect", "choice1": "Wet.", "choice2": "Dry.", "label": 1, "idx": 0}
    copa = task(tmp_path, "COPA", item)
    row = next(copa.train.read())
    assert row is not None
    assert row["label"] == "choice2"
    assert row["question"] == "What happened as a RESULT?"
    assert copa.ask is not None
    assert copa.ask(row) == {"text": "It rained. What happened as a RESULT?", "choices": ["Wet.", "Dry."]}
    hand_in = suites.get("superglue").hand_in
    assert hand_in is not None
    assert list(hand_in("COPA.jsonl", [(row | {"index": 0}, "Dry.")])) == ['{"idx": 0, "label": 1}']
    assert list(hand_in("WSC.jsonl", [({"index": 3}, "true")])) == ['{"idx": 3, "label": "True"}']
    assert list(hand_in("BoolQ.jsonl", [({"index": 3}, "true")])) == ['{"idx": 3, "label": "true"}']


def test_words_and_mentions_are_marked(tmp_path: Path) -> None:
    item = {"sentence1": "He played it.", "start1": 3, "end1": 9, "sentence2": "A play.", "start2": 2, "end2": 6,
            "word": "play", "label": True, "idx": 0}  # fmt: skip
    wic = task(tmp_path, "WiC", item)
    assert list(wic.train.read()) == [{"text_a": "He *played* it.", "text_b": "A *play*.", "label": "true"}]
    target = {"span1_index": 0, "span1_text": "Mark Twain", "span2_index": 4, "span2_text": "him"}
    wsc = task(tmp_path, "WSC", {"text": "Mark Twain saw them  him there", "target": target, "label": False, "idx": 0})
    assert list(wsc.train.read()) == [{"text": "*Mark Twain* saw them #him# there", "label": "false"}]
    assert "asterisks" in wic.note and "asterisks" in wsc.note


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "the line is not valid JSON"),
        ('{"question": "a", "label": true}', "the key 'passage' is missing"),
        ('{"question": 1, "passage": "b", "label": true}', "'1' is no text"),
        ("[]", "not a JSON object"),
    ],
)
def test_a_bad_line(tmp_path: Path, line: str, what: str) -> None:
    asked = task(tmp_path, "BoolQ", *boolq(1))
    asked.train.path.write_text(f"{asked.train.path.read_text()}{line}\n")
    with pytest.raises(DataError, match=what) as caught:
        list(asked.train.read())
    assert caught.value.where.startswith(f"{asked.train.path}:2")


def test_through_the_benchmark(tmp_path: Path) -> None:
    folder = tmp_path / "super"
    task(folder, "BoolQ", *boolq(40))
    task(folder, "BoolQ", *boolq(10), split="val")
    task(folder, "BoolQ", *({key: item[key] for key in ("question", "passage", "idx")} for item in boolq(4)),
         split="test")  # fmt: skip
    done = benchmark("superglue", folder, methods=["tfidf_svm"], seeds=1, out=tmp_path / "out", runs=tmp_path / "runs",
                     backbone="tiny_text", jobs=1)  # fmt: skip
    assert "no kind gives" in done.content["left_out"]["MultiRC"]
    best = next(row for row in done.content["rows"] if row["method"] == "tfidf_svm")
    assert best["scores"]["BoolQ accuracy"]["mean"] == 1
    lines = (tmp_path / "out" / "submission" / "BoolQ.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"idx": i, "label": ("true", "false")[i % 2]} for i in range(4)
    ]  # fmt: skip
