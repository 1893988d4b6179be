"""What a module was trained on is opened again as it was read, whatever decided which rows those were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.data.splits.draws import draw, parse_sizes
from graftwork.module.trained_on import record, reopen_data


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Forty films."""
    rows = [f"{'good' if i % 2 else 'bad'} film {i},{'yes' if i % 2 else 'no'}" for i in range(40)]
    (tmp_path / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return Task("films", tmp_path / "films.csv")


def again(dataset: Dataset) -> Dataset:
    found, why = reopen_data(record(dataset), dataset.task)
    assert found is not None, why
    assert found.digest == dataset.digest
    return found


@pytest.mark.parametrize("settings", [{}, {"split_seed": 3}, {"label": "label"}, {"drop_leaks": True}])
def test_the_rows_are_those_that_it_was_trained_on(settings: dict[str, Any], task: Task) -> None:
    again(load(replace(task, **settings), checked=False))


def test_a_class_that_f1_is_of_is_known_again(task: Task) -> None:
    with task.data.open("a") as stream:
        stream.writelines(f"middling film {number},so so\n" for number in range(20))
    again(load(task.resolved(metrics=("f1",), positive="yes"), checked=False))


def test_a_draw_is_drawn_again(task: Task) -> None:
    whole = load(task, checked=False)
    (size,) = parse_sizes("4/class", whole.task)
    found = again(draw(whole, size, 2, seed=1).dataset)
    assert len(found.train.examples) == 8 < len(whole.train.examples)


def test_rows_that_were_set_aside_are_not_written_again(task: Task, tmp_path: Path) -> None:
    with task.data.open("a") as stream:
        stream.write("a film without a label,\n")
    rejects = tmp_path / "rejects.csv"
    dataset = load(replace(task, rejects=str(rejects)))
    rejects.unlink()
    again(dataset)
    assert not rejects.exists()


def test_other_rows_are_no_longer_those(task: Task) -> None:
    recorded = record(load(task, checked=False))
    with task.data.open("a") as stream:
        stream.write("a new film,yes\n")
    found, why = reopen_data(recorded, task)
    assert found is None and "has changed since" in why
