"""What a session's runs are computed in, and what another process that opens it anew is told of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.compare.workers import RunOrder
from graftwork.core.configured_methods import parse_method
from graftwork.core.task import Task
from graftwork.machine import environment, faster_precision
from graftwork.run.session import Session, open_session, with_backbone
from graftwork.run.sessions import Sessions
from graftwork.run.settings import RunSettings
from graftwork.run.worker import Opening, ordered
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.recipe import EQUAL_RATES, RATES_BY_DEPTH

Opened = Callable[..., Session]


@pytest.fixture
def opened(write: Callable[..., Path], tmp_path: Path) -> Opened:
    def opening(method: str, **settings: Any) -> Session:
        setup = RunSettings("tiny_text", runs=str(tmp_path / "runs"), **settings)
        return open_session(Task.from_file(write()), [parse_method(method)], setup)

    return opening


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A processor with bf16 products; the list has what every measurement finds, the next one first."""
    findings = ["fp32"]
    monkeypatch.setattr(environment, "multiplies_bf16", lambda capabilities: True)
    monkeypatch.setattr(faster_precision, "faster_precision", lambda machine: findings.pop(0))
    return findings


def test_workers_are_told_the_precision_that_auto_came_to(opened: Opened, found: list[str]) -> None:
    opened("bitfit", precision="bf16")
    assert found == ["fp32"], "an explicit precision is measured"
    found *= 2  # of the runs' arithmetic, and to open the backbone
    parent = opened("bitfit")
    assert parent.numerics["precision"] == "fp32"
    found.clear()  # a worker that measures would fail
    told = Opening.read(json.loads(json.dumps(Opening.of(Sessions(parent)).line())))
    by = told.session
    worker = open_session(by.task, [parse_method("bitfit")], by.setup, checked=False)
    assert worker.numerics == parent.numerics
    specs = [session.spec(parse_method("bitfit"), by.setup.recipe, 0) for session in (parent, worker)]
    assert specs[0].id == specs[1].id


def test_without_a_network_nothing_is_measured(opened: Opened, found: list[str]) -> None:
    found.clear()
    assert opened("majority").backbone is None


def test_a_backbone_that_is_opened_later_is_measured_for(opened: Opened, found: list[str]) -> None:
    baselines = opened("majority")
    assert baselines.opened_by is not None and found == ["fp32"]
    by = replace(baselines.opened_by, methods=(parse_method("bitfit").config,))
    there = with_backbone(baselines, by)
    assert there.numerics["precision"] == "fp32" and there.backbone is not None and found == []
    assert there.opened_by is not None and there.opened_by.setup.precision == "fp32"
    module: Any = there.backbone
    assert next(iter(module.module.parameters())).dtype == torch.float32


@pytest.fixture
def writing(tmp_path: Path) -> Callable[..., Session]:
    """A session over texts to be written by a tiny T5."""
    rows = [f"the house has {n} doors,{n} doors" for n in range(30)]
    (tmp_path / "texts.csv").write_text("\n".join(["source,target", *rows]), encoding="utf-8")
    task = Task.from_file(tmp_path / "texts.csv", kind="generation")
    backbone = f"hf:{write_seq2seq(tmp_path / 't5', 't5')}"
    setup = RunSettings(backbone, runs=str(tmp_path / "runs"), precision="fp32")
    return lambda *words: open_session(task, [parse_method(word) for word in words], setup)


def test_a_method_has_the_rate_that_suits_the_backbone_unless_one_is_given(writing: Callable[..., Session]) -> None:
    names = ("full", "full:learning_rate=2e-4", "average:by=full", "adapter", "full:decay=0.8")
    session, methods = writing(*names), [parse_method(words) for words in names]
    full, given, average, adapter, _ = methods
    recipe = RunSettings().recipe
    assert session.learning_rate(full) == session.spec(full, recipe, 0).recipe["learning_rate"] == 1e-3
    assert session.learning_rate(given) == 2e-4 and session.spec(given, recipe, 0).recipe["learning_rate"] is None
    assert session.learning_rate(average) == 1e-3 and session.learning_rate(adapter) == 2e-3
    assert session.spec(full, replace(recipe, learning_rate=0.5), 0).recipe["learning_rate"] == 0.5
    for item in methods:  # a worker runs what was ordered, also where a default is given explicitly
        order = json.loads(json.dumps(RunOrder(item.label, item, recipe, 0, "").line()))
        assert session.spec(ordered(order), recipe, 0) == session.spec(item, recipe, 0)


def test_a_network_that_writes_learns_in_all_blocks_alike_unless_a_decay_is_given(
    writing: Callable[..., Session],
) -> None:
    names = ("full", "average:by=full", "full:decay=0.8", "full:decay=1", "lora")
    session, recipe = writing(*names), RunSettings().recipe
    found = [session.spec(parse_method(words), recipe, 0).recipe.get("rates") for words in names]
    assert found == [EQUAL_RATES, EQUAL_RATES, RATES_BY_DEPTH, None, None]
