"""Completion in a shell: commands, options and the values that have names."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from graftwork.cli.main import COMPLETE, group, main
from graftwork.io.files import write_json
from graftwork.registry import kinds, methods, metrics

Graft = Callable[..., Any]
SOURCES = ("bash", "zsh", "fish")


def completed(typed: str) -> list[str]:
    """What is offered for the last word of `typed`: values, or `file` and `dir` where the shell completes paths."""
    before, _, last = typed.rpartition(" ")
    words = before.split()
    offered = BashComplete(group(words), {}, "graft", COMPLETE).get_completions(words[1:], last)
    return [item.value if item.type == "plain" else item.type for item in offered]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("graft compa", ["compare"]),
        ("graft compare --meth", ["--methods"]),
        ("graft bank rol", ["rollback"]),
        ("graft bank add --ta", ["--task"]),
        ("graft train x.csv --method ada", ["adapter", "adapterhub"]),
        ("graft train x.csv --kind multi", ["multilabel"]),
        ("graft train x.csv --precision ", ["auto", "bf16", "fp32"]),
        ("graft train x.csv --device cu", ["cuda"]),
        ("graft train ", ["file"]),
        ("graft train x.csv --test te", ["file"]),
        ("graft train x.csv --runs r", ["dir"]),
        ("graft compare x.csv --methods majority,bitf", ["majority,bitfit"]),
        ("graft ls metr", ["metrics"]),
        ("graft ls objectives mask", ["masked"]),
        ("graft ls runs x", []),
        ("graft benchmark gl", ["glue"]),
        ("graft cache cl", ["clear"]),
        ("graft train x.csv --seed ", []),
    ],
)
def test_words_are_completed(typed: str, found: list[str]) -> None:
    assert completed(typed) == found


def test_names_of_parts_are_completed_whole() -> None:
    assert completed("graft train x.csv --method ") == methods.names()
    assert completed("graft train x.csv --kind ") == kinds.names()
    assert completed("graft train x.csv --metrics ") == metrics.names()
    assert set(completed("graft bank ")) >= {"create", "add", "ls", "rollback", "export-task"}


def test_runs_and_tasks_of_a_bank_are_completed(graft: Graft) -> None:
    for run in ("abc1", "abd2"):
        write_json(Path("runs") / run / "result.json", {})
    write_json(Path("b") / "bank.json", {"tasks": {"tickets": {}, "mails": {}}})
    assert completed("graft show ab") == ["abc1", "abd2"] and completed("graft verify abc") == ["abc1"]
    assert completed("graft show x") == ["file"] and completed("graft show --runs other a") == ["file"]
    assert completed("graft bank show b ti") == completed("graft score b ti") == ["tickets"]
    assert completed("graft score no_bank ti") == ["file"]
    (Path("b") / "bank.json").write_text("[]")
    assert completed("graft bank show b ti") == ["file"]


@pytest.mark.parametrize("shell", SOURCES)
def test_the_help_says_the_line_that_sets_up_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert f"{COMPLETE}={shell}_source graft" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shell", "index", "line"),
    [
        ("bash", "2", "plain,--methods"),
        pytest.param("zsh", "2", "--methods", marks=pytest.mark.slow),
        pytest.param("fish", "--meth", "--methods", marks=pytest.mark.slow),
    ],
)
def test_each_shell_is_answered_in_its_own_words_without_heavy_imports(shell: str, index: str, line: str) -> None:
    """Fish says the word at the cursor in the place of its index."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr));"
        "from graftwork.cli.main import main; main()"
    )
    words = {"COMP_WORDS": "graft compare --meth", "COMP_CWORD": index, COMPLETE: f"{shell}_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True)
    assert any(line in told for told in done.stdout.splitlines())
    assert not {"torch", "transformers", "sklearn", "scipy", "numpy", "rich"} & set(done.stderr.split())


def test_bash_completes_by_that_line(tmp_path: Path) -> None:
    graft = tmp_path / "graft"
    graft.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m graftwork "$@"\n')
    graft.chmod(0o755)
    script = (
        f'eval "$({COMPLETE}=bash_source graft)"; COMP_WORDS=(graft bank ro); COMP_CWORD=2;'
        '_graft_completion graft; echo "${COMPREPLY[@]}"'
    )
    surroundings = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=surroundings, capture_output=True, text=True)
    assert done.stdout.split() == ["rollback"], done.stderr
