"""What a validation split can show, and how two modules are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.ship import rung_measure
from graftwork.ship.compression import CompressionData
from graftwork.ship.rung_measure import evidence, latency_ratio, loss_of, pace, rows_needed

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


def test_equal_answers_show_only_what_their_number_can(teacher: Teacher) -> None:
    module, data = teacher()
    split, rows = data.train, len(data.train.examples)
    logits = np.asarray(module.fitted.logits(split.examples))
    same = loss_of(module.task, split, logits, logits)
    assert same.mean == 0 and same.most == pytest.approx(1 - 0.05 ** (1 / rows))
    worse = loss_of(module.task, split, logits, -logits)
    assert worse.mean > 0.3 and worse.most > worse.mean


def test_rows_needed_are_some_600_for_half_a_point() -> None:
    assert rows_needed(0.005) == 598
    assert 1 - 0.05 ** (1 / 598) <= 0.005 < 1 - 0.05 ** (1 / 597)


def test_evidence_is_of_the_metric_that_is_named(teacher: Teacher) -> None:
    module, data = teacher()
    task = replace(module.task, metrics=("accuracy", "macro_f1"))
    logits = np.zeros((len(data.train.examples), len(task.labels))) + np.arange(len(task.labels))[::-1]
    (headline,), (other,) = evidence(task, data.train, logits), evidence(task, data.train, logits, by="macro_f1")
    assert headline.score > other.score > 0, "one class for all: the others have an f1 of 0"


def test_one_answer_takes_about_as_long_as_itself(teacher: Teacher) -> None:
    module, data = teacher()
    assert 0.3 < latency_ratio(module, module, data.validation.examples) < 3


def test_a_module_is_about_as_fast_as_itself(teacher: Teacher, monkeypatch: pytest.MonkeyPatch) -> None:
    module, data = teacher()
    assert 0.3 < pace(module, module, data.validation.examples).ratio < 3
    monkeypatch.setattr(rung_measure, "read_zones", dict)
    with pytest.raises(ConfigError, match="energy counters can't be read"):
        pace(module, module, data.validation.examples, joules=True)
