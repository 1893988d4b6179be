"""A module, what was exported of it, and one with a network of its own are served by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank.single_task import SingleTask
from graftwork.core.configured_methods import parse_method
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, UnknownName
from graftwork.module.task_module import TaskModule
from graftwork.run.session import Session
from graftwork.run.train import train_in
from graftwork.serve.server import open_served
from graftwork.ship.export import export
from graftwork.ship.folding import folded_network
from graftwork.ship.standalone import save_standalone

TEXTS = ["good film", "a bad one, and long, and dull", "x"]


@pytest.fixture
def module(kept_session: Callable[..., Session]) -> TaskModule:
    """A trained module."""
    return train_in(kept_session(), parse_method("full"), Recipe(epochs=1), 0, silent).module


def asked(task: Any, module: TaskModule) -> list[dict[str, Any]]:
    """Its answers to the texts under the module's name."""
    answers: list[dict[str, Any]] = task.answers([(module.task.name, one) for one in module.examples(TEXTS)])
    return answers


def test_a_module_answers_under_its_name(module: TaskModule) -> None:
    task = open_served(module.folder, "cpu")
    assert isinstance(task, SingleTask) and open_served(module.folder.parent, "cpu").path == module.folder
    assert asked(task, module) == module.predict(TEXTS)
    name = module.task.name
    assert list(task.tasks) == [name] and task.tasks[name].roles == module.roles and task.precision == "fp32"
    assert task.cut([(name, "long " * 1000), (name, "short")]) == [True, False]
    assert task.load_all() == {} and task.refresh().added == ()
    assert task.card is not None and task.open_backbone().card.revision == task.card.revision
    for ask in (task.cut, task.answers):
        with pytest.raises(UnknownName, match="other"):
            ask([("other", "a")])


@pytest.mark.slow
def test_one_with_a_network_of_its_own_is_exported_and_served(module: TaskModule, tmp_path: Path) -> None:
    network = folded_network(module)
    own = save_standalone(module, tmp_path / "own", network.backbone, head=network.head)
    told = export(tmp_path / "own", tmp_path / "onnx", to="onnx")
    assert told["largest_difference"] < 1e-4
    for folder in ("own", "onnx"):
        answers = asked(open_served(tmp_path / folder, "cpu"), own)
        assert [one["label"] for one in answers] == [one["label"] for one in module.predict(TEXTS)]
        assert answers[1]["probabilities"] == pytest.approx(module.predict(TEXTS)[1]["probabilities"], abs=1e-4)
    with pytest.raises(ConfigError, match="no network that can be looked into"):
        open_served(tmp_path / "onnx", "cpu").open_backbone()
