"""The benchmark of streams: the tasks that it makes of a collection, what it concludes, and its picture."""

from __future__ import annotations

import itertools
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graftwork.data.load import load

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "bank"


@pytest.fixture(scope="module")
def script(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("bank/stream")


def test_there_are_25_sources_and_four_sizes(script: ModuleType) -> None:
    assert len(script.SOURCES) == 25 and len(script.SIZES) == 4


def test_a_task_of_each_size_shares_its_test_rows(script: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "cr"
    folder.mkdir(parents=True)
    lines = [f"text number {i}\t{'good' if i % 2 else 'bad'}" for i in range(600)]
    (folder / "all.tsv").write_text("\n".join(["text\tlabel", *lines, lines[0]]) + "\n", encoding="utf-8")
    few, many = (load(script.write_task("cr", size, 60, tmp_path / "data", tmp_path)) for size in (20, 60))
    assert few.task.name == "cr-20" and len(few.train.examples) == 20 and len(many.train.examples) == 60
    for split, rows in (("validation", 100), ("test", 200)):
        texts = [[example.inputs["text"] for example in data.splits[split].examples] for data in (few, many)]
        assert texts[0] == texts[1] and len(texts[0]) == rows
        assert not set(texts[0]) & {example.inputs["text"] for example in many.train.examples}
    assert {e.inputs["text"] for e in few.train.examples} < {e.inputs["text"] for e in many.train.examples}


def add(seconds: float, identical: bool = True) -> dict[str, Any]:
    return {
        "score": {"score": 0.8}, "bytes": 1000, "seconds": {"add": seconds}, "compared": 1,
        "first_task_identical": identical,
    }  # fmt: skip


def test_what_it_concludes(script: ModuleType) -> None:
    adds = [add(0.10), add(0.10), *[add(5.0)] * 4, add(0.11), add(0.11)]
    found = script.summary(adds, [[0.9], [0.5, 0.7]])
    assert found["add_seconds_ratio"] == pytest.approx(1.1) and found["first_task_identical_after_every_add"]
    assert found["contrast"]["average"] == pytest.approx(0.6) and found["contrast"]["forgetting"] == pytest.approx(0.4)
    assert not script.summary([*adds, add(0.1, identical=False)], [])["first_task_identical_after_every_add"]


def test_the_picture_is_svg_with_its_labels_apart(script: ModuleType, tmp_path: Path) -> None:
    contrast = {"matrix": [[0.9], [0.5, 0.7]], "majority": [0.5, 0.5]}
    sys.modules["stream_plot"].write_plot({"adds": [add(0.1), add(0.2)], "contrast": contrast}, tmp_path / "plot.svg")
    drawn = ET.parse(tmp_path / "plot.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{space}polyline")) == 5
    heights = sorted(
        float(text.attrib["y"]) for text in drawn.findall(f"{space}text") if ":" in (text.text or "") and text.text
    )
    assert len(heights) == 3 and min(b - a for a, b in itertools.pairwise(heights)) >= 16.9
    sys.modules["stream_plot"].write_plot({"adds": [], "contrast": {"matrix": []}}, tmp_path / "empty.svg")
