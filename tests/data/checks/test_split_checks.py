"""The data report finds what it says it finds, and keeps silent about clean data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.task import Split, Task
from graftwork.data.checks.split_checks import lengths, report

Pair = tuple[str, Any]


def found(train: Sequence[Pair], validation: Sequence[Pair], test: Sequence[Pair], labels: tuple[str, ...]) -> Any:
    splits = {}
    for name, rows in (("train", train), ("validation", validation), ("test", test)):
        examples = tuple(Example(f"{name}/{i}", {"text": text}, target) for i, (text, target) in enumerate(rows, 1))
        splits[name] = Split(name, examples, np.zeros(len(examples)))
    task = Task("t", Path("t.csv"), labels=labels)
    content = report(task, splits, "given.")
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    return content


def clean(prefix: str, rows: int) -> list[Pair]:
    return [(f"{prefix} some words {i}", "ab"[i % 2]) for i in range(rows)]


def test_clean_data_has_no_warning() -> None:
    content = found(clean("x", 60), clean("y", 10), clean("z", 20), ("a", "b"))
    assert content["warnings"] == []
    assert content["rows"] == {"train": 60, "validation": 10, "test": 20}
    assert content["classes"]["train"] == {"a": 30, "b": 30}
    assert content["majority_share"]["test"] == 0.5
    assert content["words"] == {"median": 4, "max": 4, "over_1000": 0}
    assert content["splits"] == "given."


def test_duplicates_and_conflicts() -> None:
    train = [*clean("x", 60), ("x some words 0", "a"), ("x some words 1", "a")]
    content = found(train, clean("y", 10), [*clean("z", 9), ("x some words 3", "b")], ("a", "b"))
    assert content["duplicates_within"] == {"train": 2, "validation": 0, "test": 0}
    assert content["duplicates_across"] == {"rows": {"validation": 0, "test": 1}, "examples": [["train/4", "test/10"]]}
    assert content["conflicts"] == {"groups": 1, "rows": 2, "examples": [["train/2", "train/62"]]}
    text = "\n".join(content["warnings"])
    assert "1 row of test (10.0%) has the same text as a row of train" in text
    assert "2 rows of train (3.2%) repeat the text" in text
    assert "different targets: 1 (2 rows), for example train/2, train/62" in text


def test_rows_of_test_that_choices_were_made_on() -> None:
    held = clean("y", 10)
    content = found(clean("x", 60), held, [*clean("z", 9), held[3]], ("a", "b"))
    assert content["test_in_validation"] == {"rows": 1, "examples": [["validation/4", "test/10"]]}
    text = "\n".join(content["warnings"])
    assert "1 row of test (10.0%) has the same text as a row of validation: choices are made on" in text
    assert content["duplicates_across"]["rows"] == {"validation": 0, "test": 0}


def test_rare_absent_and_similar_classes() -> None:
    train = [*clean("x", 60), ("rare one", "A "), ("rare two", "A ")]
    content = found(train, clean("y", 10), clean("z", 10), ("A ", "a", "b"))
    assert content["rare_classes"] == {"A ": 2}
    text = "\n".join(content["warnings"])
    assert "Classes with fewer than 10 rows in train: 1 of 3: 'A ' (2)." in text
    assert "Classes with no row in test: 1 of 3: 'A '." in text
    assert "The labels 'A ' and 'a' differ only in case or spaces" in text


def test_sorted_files() -> None:
    by_class = sorted(clean("x", 60), key=lambda pair: str(pair[1]))
    assert found(by_class, clean("y", 4), clean("z", 4), ("a", "b"))["sorted"] is True
    rising = [(f"t {i}", float(i)) for i in range(60)]
    content = found(rising, rising[:1], rising[:1], ())
    assert content["sorted"] is True
    assert content["targets"]["train"] == {
        "mean": 29.5,
        "sd": np.std(np.arange(60)),
        "min": 0.0,
        "max": 59.0,
        "most_common": 1 / 60,
    }
    assert "majority_share" not in content


def test_labels_in_texts_and_long_texts() -> None:
    train = [(f"this is about Card Arrival {i}", "card_arrival") for i in range(20)]
    train += [(f"discard arrivals {i}", "other") for i in range(20)]
    long = [("word " * 1001, "other")]
    content = found([*train, *long], train[:2], train[-2:], ("card_arrival", "other"))
    assert content["label_in_text"] == 20 / 41
    assert content["words"]["over_1000"] == 1
    text = "\n".join(content["warnings"])
    assert "In 49% of the training rows the text names its own label" in text
    assert "more than 1,000 words: 1 row;" in text


def test_multilabel_counts_every_label() -> None:
    rows: list[Pair] = [(f"t {i}", ("a", "b") if i % 2 else ()) for i in range(30)]
    content = found(rows, rows[:2], rows[:2], ("a", "b"))
    assert content["classes"]["train"] == {"a": 15, "b": 15}


def test_stretches_of_one_label() -> None:
    rows = [(f"text number {i}", "ab"[i // 10 % 2]) for i in range(80)]
    content = found(rows, rows[:4], rows[:4], ("a", "b"))
    assert content["order"] == {"changes": 7, "changes_by_chance": 40.0, "longest_stretch": 10}
    assert any("stretches of one label: it changes 7 times" in warning for warning in content["warnings"])
    assert content["sorted"] is False
    mixed = [(text, "ab"[i % 2]) for i, (text, _) in enumerate(rows)]
    assert not any("stretches" in warning for warning in found(mixed, rows[:4], rows[:4], ("a", "b"))["warnings"])


def test_targets_that_are_the_same() -> None:
    rows = [(f"text {i}", 1.0 if i < 36 else float(i)) for i in range(60)]
    warnings = found(rows, rows[:4], rows[:4], ())["warnings"]
    assert any("60% of the targets of train are one" in warning for warning in warnings)


def test_lengths_and_texts_without_letters() -> None:
    rows: list[Pair] = [("one two three " * 4, "a"), ("?!", "b"), ("word " * 2000, "a")]
    content = found(rows, rows[:1], rows[1:2], ("a", "b"))
    assert content["without_letters"] == {"train": 1, "validation": 0, "test": 1}
    assert content["lengths"]["unit"] == "words"
    assert {name: count for name, count in content["lengths"]["train"].items() if count} == {
        "up to 8": 1,
        "up to 16": 1,
        "over 1,024": 1,
    }
    assert lengths([1, 8, 9, 20], limit=20) == {"up to 8": 2, "up to 16": 1, "up to 20": 1}
    assert any("without a letter or digit: 1 row of train" in warning for warning in content["warnings"])


def test_words_of_unspaced_scripts_are_their_letters() -> None:
    rows: list[Pair] = [(f"我的银行卡丢了{i}", "银行卡" if i % 2 else "账户") for i in range(40)]
    content = found(rows, rows[:2], rows[-2:], ("银行卡", "账户"))
    assert content["label_in_text"] == 0.5
    assert content["words"] == {"median": 8, "max": 8, "over_1000": 0}
