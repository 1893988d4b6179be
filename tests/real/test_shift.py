"""Domain shift with the real backbone: film reviews are not sentences of films, and held-out sentences are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.module.task_module import TaskModule

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> TaskModule:
    """A probe of minilm on the 872 sentences of SST-2's dev."""
    shared = Path(os.environ.get("GRAFTWORK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    path = shared / "data" / "sst2" / "dev.tsv"
    if not path.is_file():
        pytest.skip(f"no real data at {shared}")
    return gw.train(Task.from_file(path), method="linear_probe", runs=tmp_path_factory.mktemp("runs")).module


def texts(path: Path) -> list[str]:
    """The first column."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        return [line.split("\t")[0] for line in stream][1:]


def test_reviews_are_another_domain(module: TaskModule, shared: Path) -> None:
    reviews = texts(shared / "data" / "imdb" / "test.tsv.gz")
    found = gw.shift(module, reviews[:: len(reviews) // 60])
    assert found["two_sample"]["low"] > 0.95 and found["two_sample"]["p"] == 0.001
    assert found["lengths"]["low"] > 100
    assert found["words"]["new"]["words"] > found["words"]["held_out"]["words"] > 0


def test_questions_are_another_domain(module: TaskModule, shared: Path) -> None:
    found = gw.shift(module, texts(shared / "data" / "trec6" / "test.tsv")[:200])
    assert found["two_sample"]["low"] > 0.95
    assert found["confidence"]["high"] < 0  # it was not taught to say that it does not know, but it is less sure


def test_held_out_sentences_are_not(module: TaskModule, shared: Path) -> None:
    """Nine disjoint parts of SST-2's test, at the level 0.05: three alarms or more have a chance of 0.8 %."""
    sentences = texts(shared / "data" / "sst2" / "test.tsv")
    alarms = [gw.shift(module, sentences[part::9])["two_sample"]["p"] < 0.05 for part in range(9)]
    assert sum(alarms) < 3
