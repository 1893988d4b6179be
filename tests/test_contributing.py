"""The method that CONTRIBUTING.md shows: it is registered, keeps the contract of methods and learns the tickets."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.registry import methods
from graftwork.testing import check_method

NAME = "shift_states"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the method, registered for one test."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / f"{NAME}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(NAME)
    yield NAME
    del methods._parts[NAME], sys.modules[NAME]


def test_the_method_shown_keeps_the_contract(shown: str) -> None:
    check_method(shown, of_kinds=("classification",))


def test_the_method_shown_learns_the_tickets(shown: str, tmp_path: Path) -> None:
    run = gw.train("builtin:tickets", method=shown, backbone="tiny_text", epochs=1, runs=tmp_path)
    assert run.result.status == "ok" and run.result.scores["accuracy"] > 0.172  # the majority class
