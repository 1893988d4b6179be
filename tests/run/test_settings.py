"""What decides how runs are computed travels as one: every name of it is an argument, a flag and a field."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank.stream import stream
from graftwork.benchmark.run_suite import benchmark
from graftwork.budget.ladder import climb
from graftwork.cli.main import main
from graftwork.compare.compare_tasks import compare_tasks
from graftwork.compare.curve import curve
from graftwork.compare.leaderboard import compare
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError
from graftwork.run.settings import WHAT, GivenSettings, RunSettings, over
from graftwork.run.train import train

NAMES = [item.name for item in fields(RunSettings)]


def test_what_can_be_given_is_what_there_is() -> None:
    assert list(GivenSettings.__annotations__) == NAMES


@pytest.mark.parametrize("command", ["compare", "curve", "train", "stream", "benchmark"])
def test_every_one_is_a_flag(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in NAMES if f"--{name.replace('_', '-')}" not in shown] == []


@pytest.mark.parametrize("function", [benchmark, climb, compare, compare_tasks, curve, stream, train])
def test_every_one_is_an_argument_of_whatever_makes_runs(function: Callable[..., Any]) -> None:
    assert "Unpack[GivenSettings]" in function.__annotations__.values()


@pytest.mark.parametrize("function", [benchmark, climb, compare, compare_tasks, curve, stream, train])
def test_help_tells_every_one_of_them(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    told = function.__doc__.partition("Settings of its runs:\n")[2].splitlines()
    for item in fields(RunSettings):
        assert parameters[item.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[item.name].default == item.default
        assert f"    {item.name}: {WHAT[item.name].replace('  ', ' ')}" in told
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    assert "cache_size: str | None = '10GB'" in pydoc.render_doc(function)


def test_what_is_said_of_a_default_is_true() -> None:
    for name in ("backbone", "batch_size", "runs", "precision", "device", "cache_size"):
        assert WHAT[name].endswith(f"[default: {getattr(RunSettings(), name)}]")


def test_none_is_the_default_and_paths_are_text(tmp_path: Path) -> None:
    assert (
        RunSettings.of({}) == RunSettings.of({"backbone": None, "augment": None, "cache_size": None}) == RunSettings()
    )
    assert RunSettings.of({"runs": tmp_path, "prices": tmp_path / "p.toml"}).prices == str(tmp_path / "p.toml")
    given: GivenSettings = {"epochs": 3, "batch_size": 8, "augment": False}
    assert RunSettings.of(given).recipe == Recipe(epochs=3, batch_size=8, augment=False)
    assert RunSettings.of({}).recipe == Recipe()  # nothing given: the same recipe, and so the same runs, whoever asks


def test_what_is_given_goes_before_what_a_file_says() -> None:
    file = {"epochs": 4, "augment": False, "seeds": 2, "precision": "fp32"}
    assert over(file, {"epochs": 2, "augment": None}) == {"epochs": 2, "augment": False}


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown argument of train 'precison'"):
        train("builtin:tickets", method="majority", runs=tmp_path, precison="fp32")  # type: ignore[call-arg]
    assert not list(tmp_path.iterdir())
