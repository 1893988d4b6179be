"""Commands work on a system that has none of Linux's locks, limits and files of /proc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = Path(__file__).parent / "without_linux"
BOARD = ("compare", "builtin:tickets", "--methods", "tfidf_svm,linear_probe", "--seeds", "2", "--jobs", "2")

pytestmark = pytest.mark.slow


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(WITHOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | {"PYTHONPATH": search}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environ, capture_output=True, text=True)


def graft(folder: Path, *words: str) -> str:
    run = ran(folder, "-m", "graftwork", *words)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_system_looks_as_one_without_linux(tmp_path: Path) -> None:
    code = "import os, sys, signal; print(sys.modules['fcntl'], hasattr(os, 'geteuid'), hasattr(signal, 'SIGHUP'))"
    assert ran(tmp_path, "-c", code).stdout.split() == ["None", "False", "False"]


def test_a_board_a_bank_and_a_prediction(tmp_path: Path) -> None:
    graft(tmp_path, *BOARD)
    board = json.loads((tmp_path / "boards/tickets/leaderboard.json").read_text())
    assert {row["status"] for row in board["rows"]} == {"ok"}
    graft(tmp_path, "train", "builtin:tickets", "--method", "linear_probe", "--bank", "shop.bank", "--task", "team")
    assert "label" in graft(tmp_path, "predict", "shop.bank", "team", "my parcel is late", "--json")


def test_the_doctor_finds_nothing_that_fails(tmp_path: Path) -> None:
    told = json.loads(graft(tmp_path, "doctor", "--json"))
    assert "the check failed" not in json.dumps(told)


def test_a_token_file_is_read_without_modes(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0123456789abcdef0123\n")
    code = "from pathlib import Path; from graftwork.serve.auth_token import read_token; read_token(Path('token'))"
    run = ran(tmp_path, "-c", code)
    assert run.returncode == 0, run.stderr
