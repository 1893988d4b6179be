"""Wrong arguments of public functions are told what is known, and where a setting belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftwork as gw
from graftwork.core.arguments import OF_TASKS, told_arguments
from graftwork.errors import ConfigError


@told_arguments
def given(
    path: str | Path, *, seeds: int = 5, share: float = 1.0, names: str | Sequence[str] | None = None
) -> list[Any]:
    """Return what was given."""
    return [path, seeds, share, names]


def test_values_of_numpy_become_those_of_python() -> None:
    found = given("a", seeds=np.int64(3), share=np.float32(0.5), names=np.array(["x", "y"]))  # type: ignore[arg-type]
    assert found == ["a", 3, 0.5, ["x", "y"]]
    assert type(found[1]) is int and type(found[2]) is float
    assert given(Path("a"), share=1, names=("x",)) == [Path("a"), 5, 1, ("x",)]


@pytest.mark.parametrize(
    ("places", "named", "what", "told"),
    [
        ((), {}, "given needs path", "path=…"),
        (("a", 5), {}, "given takes path by place", "seeds=…"),
        (("a",), {"path": "b"}, "path of given is given twice", "'b'"),
        (("a",), {"seds": 5}, "unknown argument of given 'seds'", "did you mean 'seeds'?"),
        (("a",), {"seeds": "5"}, "seeds is of another type", "a whole number"),
        (("a",), {"seeds": True}, "seeds is of another type", "True"),
        (("a",), {"seeds": 5.0}, "seeds is of another type", "5.0, a float"),
        (("a",), {"names": 5}, "names is of another type", "a string, a list of strings or None"),
        (("a",), {"names": [5]}, "names is of another type", "[5], a list"),
        ((np.zeros((2, 3)),), {}, "path is of another type", "a ndarray of shape (2, 3)"),
    ],
)
def test_wrong_arguments(places: tuple[Any, ...], named: dict[str, Any], what: str, told: str) -> None:
    with pytest.raises(ConfigError) as found:
        given(*places, **named)
    assert what in str(found.value) and told in str(found.value)
    assert found.value.do


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gw.train("x.csv", method="majority", threads=1), "OMP_NUM_THREADS"),  # type: ignore[call-arg]
        (lambda: gw.train("x.csv", method="majority", metrics=["f1"]), "gw.Task.from_data(data, metrics=…)"),  # type: ignore[call-arg]
        (lambda: gw.train("x.csv", method="majority", epoch=1), "did you mean 'epochs'?"),  # type: ignore[call-arg]
        (lambda: gw.train("x.csv"), "linear_probe"),  # type: ignore[call-arg]
        (lambda: gw.train("x.csv", method=None), "linear_probe"),  # type: ignore[arg-type]
        (lambda: gw.compare("x.csv", seeds=[0, 1]), "a whole number"),  # type: ignore[arg-type]
        (lambda: gw.compare("x.csv", methods=["lorra"]), "did you mean 'lora'?"),
        (lambda: gw.curve("x.csv", sizes=8), "a list of strings"),  # type: ignore[arg-type]
        (lambda: gw.climb("x.csv"), "5min"),  # type: ignore[call-arg]
        (lambda: gw.score(5, "x.csv"), "a TaskModule, a string or a path"),  # type: ignore[arg-type]
        (lambda: gw.data_report(5), "(texts, labels)"),
        (lambda: gw.compare_tasks("x.csv"), "a list"),
        (lambda: gw.predict_many(["x"], ["a"]), "gw.TaskModule.load"),  # type: ignore[list-item]
        (lambda: gw.TaskModule.load(5), "a path"),  # type: ignore[arg-type]
        (lambda: gw.Task.from_file("x.csv", label=5), "a string or None"),
        (lambda: gw.Task.from_file("x.csv", metrics=5), "a list of strings"),
        (lambda: gw.Task.from_file("x.csv", kind=5), "unknown kind '5'"),
    ],
)
def test_public_functions_say_what_was_wrong(call: Any, told: str) -> None:
    with pytest.raises(gw.GraftworkError) as found:
        call()
    assert told in str(found.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gw.score(gw.score, "x.csv"), "give run.module, board.chosen.module"),
        (lambda: gw.price(gw.score, 1e6), "give folders: board.folder"),
        (lambda: gw.price("x"), "predictions=1e6"),
        (lambda: gw.curve("builtin:tickets", sizes=[50]), r'sizes=\["10%", "8/class"\]'),
    ],
)
def test_other_types_are_told_what_to_give(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        call()


def test_the_settings_of_every_task_are_known() -> None:
    assert [item.name for item in fields(gw.Task)] == list(OF_TASKS)
