"""Students: fewer blocks, another network, word vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.ragged import flat
from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.ship import teacher_answers
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.distil import Distil
from graftwork.ship.compressions.prune import Prune

Teacher = Callable[..., tuple[TaskModule, CompressionData]]
QUICK = {"epochs": 2, "invented": 1}


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        ("classification", False),
        pytest.param("classification", True, marks=pytest.mark.slow),
        pytest.param("regression", False, marks=pytest.mark.slow),
        pytest.param("multilabel", False, marks=pytest.mark.slow),
        pytest.param("tagging", False, marks=pytest.mark.slow),
    ],
)
def test_half_the_blocks_learn_and_open_as_a_module(tmp_path: Path, teacher: Teacher, kind: str, pair: bool) -> None:
    module, data = teacher(kind, pair=pair)
    facts = Distil(**QUICK).apply(module, tmp_path / "student", data, seed=0)
    student = TaskModule.load(tmp_path / "student")
    assert student.backbone is not None and student.backbone.card.blocks == 1 and facts["blocks_kept"] == [0]
    assert student.roles == module.roles and student.difference == 0
    answers = flat(student.fitted.logits(data.validation.examples))
    assert answers.shape == flat(module.fitted.logits(data.validation.examples)).shape
    assert student.backbone.card.parameters < module.backbone.card.parameters  # type: ignore[union-attr]


def test_a_student_starts_without_adapters_that_cannot_be_folded(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher(method="adapter")
    Distil(**QUICK).apply(module, tmp_path / "student", data, seed=0)
    student = TaskModule.load(tmp_path / "student")
    assert student.backbone is not None and student.backbone.card.blocks == 1 and student.difference == 0
    assert "adapter" not in " ".join(student.fitted.delta())


@pytest.mark.slow
def test_a_student_comes_near_its_teacher(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    texts = tuple(replace(example, target=None) for example in data.train.examples)
    further = replace(data, unlabelled=texts)
    expected, apart = module.fitted.logits(data.train.examples), []
    for epochs, rate in ((1, 1e-9), (15, 3e-3)):
        made = Distil(epochs=epochs, learning_rate=rate, teacher=1.0, features=0.0, invented=1)
        facts = made.apply(module, tmp_path / str(epochs), further, seed=0)
        found = TaskModule.load(tmp_path / str(epochs)).fitted.logits(data.train.examples)
        apart.append(float(np.square(flat(found) - flat(expected)).mean()))
    assert apart[1] < apart[0] / 2 and facts["answered_by_teacher"] == 3 * len(data.train.examples)


@pytest.mark.slow
def test_same_seed_same_student(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        Distil(**QUICK).apply(module, tmp_path / name, data, seed=seed)
    one, two, other = (
        (tmp_path / name / "backbone" / "model.safetensors").read_bytes() for name in ("one", "two", "other")
    )
    assert one == two != other


@pytest.mark.slow
def test_the_teacher_answers_once_for_several_students(
    tmp_path: Path, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, data = teacher()
    teacher_answers._once.cache_clear()
    asked = []
    own = type(module.fitted).logits
    monkeypatch.setattr(
        type(module.fitted), "logits", lambda self, examples: asked.append(self is module.fitted) or own(self, examples)
    )
    for name in ("one", "two"):
        Distil(**QUICK).apply(module, tmp_path / name, data, seed=0)
    assert sum(asked) == 2  # labelled and invented texts


def test_word_vectors_are_made_of_the_network(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    facts = Distil(student="static", width=8, words=60, **QUICK).apply(module, tmp_path / "static", data, seed=0)
    student = TaskModule.load(tmp_path / "static")
    assert student.backbone is not None and student.backbone.card.family == "word_vectors"
    assert (facts["words"], student.backbone.card.width) == (60, 8)
    assert [answer["label"] in module.task.labels for answer in student.predict(["so fine", "never seen"])] == [
        True
    ] * 2
    assert Prune().unfit(student) == "a backbone of type word_vectors can't be written as a folder of its own"


@pytest.mark.slow
def test_another_network_learns_from_any_module(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher(method="adapter")
    facts = Distil(student="random:tiny_text", **QUICK).apply(module, tmp_path / "student", data, seed=0)
    assert facts["blocks"] == 2
    assert TaskModule.load(tmp_path / "student").difference == 0


@pytest.mark.parametrize(
    ("method", "settings", "reason"),
    [
        ("full", {"layers": 2}, "fewer than its 2 blocks, and not 2"),
        ("full", {"dropped": "third"}, "fewer than its 2 blocks, and not 2"),  # of two blocks two thirds are two
        ("full", {"dropped": "most"}, "dropped is half or third, not most"),
    ],
)
def test_what_does_not_fit_is_told(
    tmp_path: Path, teacher: Teacher, method: str, settings: dict[str, Any], reason: str
) -> None:
    module, data = teacher(method=method)
    assert reason in Distil(**settings).unfit(module)
    with pytest.raises(ConfigError, match="distil can't be used here"):
        Distil(**settings).apply(module, tmp_path / "student", data, seed=0)


def test_settings_out_of_range_are_refused(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    with pytest.raises(ConfigError, match="temperature of a student's training is out of range"):
        Distil(temperature=0.0).apply(module, tmp_path / "student", data, seed=0)
