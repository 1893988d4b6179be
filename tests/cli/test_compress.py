"""`graft compress` prints the table, and says by its exit code whether it wrote anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.cli.main import main
from graftwork.core.named_methods import parse_method
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.run.session import Session
from graftwork.run.train import train_in


@pytest.fixture(scope="module")
def module(kept_session: Callable[..., Session]) -> str:
    return str(train_in(kept_session(), parse_method("full"), Recipe(epochs=1), 0, silent).folder)


def test_the_table_is_printed(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = str(tmp_path / "small")
    assert main(["compress", module, small, "--allow", "100", "--for", "bytes", "--rungs", "merge,half"]) == 0
    out = capsys.readouterr().out
    assert "kept: no answer changes" in out and "Kept: merge, half." in out and f"Task module: {small}" in out
    assert main(["predict", small, "a warm film"]) == 0


def test_nothing_kept_is_exit_code_1(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", module, str(tmp_path / "small"), "--allow", "0", "--rungs", "half", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["module"] is None
    assert main(["compress", module, str(tmp_path / "small"), "--allow", "-1"]) == 2
    assert "0 or more" in capsys.readouterr().err
