"""Near duplicates in the report, and leaks that are taken out of train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.data.checks.repeats import leaking, near_report
from graftwork.data.load import load
from graftwork.errors import DataError

LONG = "the quick brown fox jumps over the lazy dog and runs far away into a dark wood"


def examples(split: str, rows: Sequence[tuple[Any, Any]]) -> list[Example]:
    listed = [({"text": given} if isinstance(given, str) else given, target) for given, target in rows]
    return [Example(f"{split}/{i}", inputs, target) for i, (inputs, target) in enumerate(listed, 1)]


def found(train: Sequence[Any], validation: Sequence[Any] = (), test: Sequence[Any] = ()) -> dict[str, Any]:
    rows = {"train": train, "validation": validation, "test": test}
    return near_report({split: examples(split, listed) for split, listed in rows.items()}, "text")


def test_rows_are_counted_in_their_splits() -> None:
    train = [(LONG, "a"), (LONG.upper(), "a"), (LONG + "!", "a"), ("something else", "a")]
    report = found(train, [("new", "a")], [(f"{LONG} again", "a"), (LONG, "a"), ("new too", "a")])
    assert report["within"] == {"train": 2, "validation": 0, "test": 1}
    assert report["across"]["rows"] == {"validation": 0, "test": 1}  # the same text is no near one
    assert report["across"]["examples"][0][1] == "test/1"
    assert 0.8 <= report["across"]["examples"][0][2] < 1.0
    assert report["conflicts"] == {"rows": 0, "examples": []}


def test_rows_of_test_that_are_near_rows_of_validation() -> None:
    report = found([("something else", "a")], [("new", "a"), (LONG, "a")], [(f"{LONG} again", "a"), (LONG, "a")])
    assert report["across"]["rows"] == {"validation": 0, "test": 0}
    told = report["test_in_validation"]
    assert told["rows"] == 1 and told["examples"][0][:2] == ["validation/2", "test/1"]


def test_near_rows_with_other_labels() -> None:
    report = found([(LONG, "a"), ("something else", "b")], [(LONG.replace("dark", "green"), "b")])
    assert report["conflicts"] == {"rows": 2, "examples": [["train/1", "validation/1", 0.829]]}


def test_near_rows_with_other_labels_are_found_in_a_file_sorted_by_label() -> None:
    """Hundreds of messages from one template, which lie in the same buckets."""
    rows = [(f"{LONG} {number}", "spam" if number < 300 else "ham") for number in range(600)]
    shuffled = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    assert [found(listed)["conflicts"]["rows"] for listed in (rows, shuffled)] == [600, 600]
    report = found([*rows[:540], *((text, "spam") for text, _ in rows[540:])])
    assert report["conflicts"]["rows"] > 590, "where four rows of ten have the other label, and they are together"


def test_numbers_conflict_when_a_deviation_apart() -> None:
    near = found([(LONG, 1.0), (LONG + "!", 1.1), ("x", 0.0), ("y", 9.0)])
    far = found([(LONG, 1.0), (LONG + "!", 8.0), ("x", 0.0), ("y", 9.0)])
    assert (near["conflicts"]["rows"], far["conflicts"]["rows"]) == (0, 2)


def test_words_and_choices_have_near_ones_too() -> None:
    words = tuple(LONG.split())
    tagged = found([({"words": words}, ("O",) * 17), ({"words": (*words, "!")}, ("O",) * 18)])
    assert tagged["within"]["train"] == 1 and tagged["conflicts"]["rows"] == 0
    chosen = [({"text": LONG, "choices": ("yes", one)}, ("1", "0")) for one in ("no", "No.", "perhaps")]
    assert found(chosen)["within"]["train"] == 1


def test_leaks_are_marked_and_counted() -> None:
    rows = {
        "train": [{"text": text} for text in (LONG, LONG + " now", "apart", "seen", "seen")],
        "validation": [{"text": "seen"}],
        "test": [{"text": LONG + " today"}],
    }
    marked, counts = leaking(rows)
    assert marked.tolist() == [True, True, False, True, True]
    assert counts == {"exact": 2, "near": 2}


def table(path: Path, rows: Sequence[tuple[str, str]]) -> Path:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


def rows_of(seed: int, count: int) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    return [(" ".join(f"w{i}" for i in random.integers(0, 500, 15)), "ab"[i % 2]) for i in range(count)]


def test_dropping_leaks_leaves_validation_and_test_and_changes_the_digest(tmp_path: Path) -> None:
    test = rows_of(1, 10)
    train = [*rows_of(0, 40), test[0], (test[1][0] + " more", "b")]
    files = {"validation": table(tmp_path / "v.tsv", rows_of(2, 10)), "test": table(tmp_path / "t.tsv", test)}
    data = table(tmp_path / "train.tsv", train)
    kept, dropped = (load(Task.from_file(data, drop_leaks=drop, **files)) for drop in (None, True))
    assert [len(kept.train.examples), len(dropped.train.examples)] == [42, 40]
    assert len(dropped.test.examples) == 10 and kept.digest != dropped.digest
    assert [example.id for example in dropped.train.examples] == [f"train/{i}" for i in range(1, 41)]
    assert dropped.report["dropped"] == {"exact": 1, "near": 1} and "dropped" not in kept.report
    assert "another split has them: 1 row exactly, and 1 nearly." in " ".join(dropped.report["warnings"])
    assert any("--drop-leaks" in warning for warning in kept.report["warnings"])
    assert not any("--drop-leaks" in warning for warning in dropped.report["warnings"])
    clean = load(Task.from_file(table(tmp_path / "clean.tsv", train[:40]), drop_leaks=True, **files))
    assert clean.digest == dropped.digest  # the same rows are the same data


def test_nothing_to_drop_changes_nothing(tmp_path: Path) -> None:
    data = table(tmp_path / "train.tsv", rows_of(0, 60))
    assert load(Task.from_file(data, drop_leaks=True)).digest == load(Task.from_file(data)).digest


def test_a_class_that_would_be_gone_is_an_error(tmp_path: Path) -> None:
    only = ("a text that stands in both files", "c")
    data = table(tmp_path / "train.tsv", [*rows_of(0, 20), only])
    test = table(tmp_path / "t.tsv", [*rows_of(1, 10), only])
    with pytest.raises(DataError, match="train has none of 'c'"):
        load(Task.from_file(data, test=test, drop_leaks=True))


def test_a_tag_may_be_gone(tmp_path: Path) -> None:
    def sentences(path: Path, seed: int, only: str) -> Path:
        found = ["".join(f"{word} O\n" for word in text.split()) for text, _ in rows_of(seed, 20)]
        path.write_text("\n".join([*found, only]), encoding="utf-8")
        return path

    only = "Ann B-PER\nlost O\nit O\n"
    data, test = sentences(tmp_path / "train.conll", 0, only), sentences(tmp_path / "t.conll", 1, only)
    loaded = load(Task.from_file(data, test=test, kind="tagging", drop_leaks=True))
    assert loaded.report["dropped"] == {"exact": 1, "near": 0} and "B-PER" in loaded.task.labels


def test_unchecked_data_are_the_same_data(tmp_path: Path) -> None:
    task = Task.from_file(table(tmp_path / "train.tsv", rows_of(0, 60)))
    assert load(task, checked=False).digest == load(task).digest
    assert load(task, checked=False).report["warnings"] == []
