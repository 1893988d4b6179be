"""Cases: each is run once, with our paths, and told right or wrong by its patterns."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def cases(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("cases")


@pytest.fixture
def told(
    cases: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[str]]]:
    """Run the script over scripts by case, with a table; return its code and lines."""

    def run(scripts: Mapping[str, str], table: str, *words: str) -> tuple[int, list[str]]:
        for name, script in scripts.items():
            (tmp_path / "cases" / name).mkdir(parents=True)
            (tmp_path / "cases" / name / "cmd").write_text(script)
        (tmp_path / "cases.toml").write_text(table)
        monkeypatch.setattr(cases, "TABLE", tmp_path / "cases.toml")
        monkeypatch.setattr(sys, "argv", ["cases.py", str(tmp_path / "cases"), *words])
        return cases.main(), capsys.readouterr().out.splitlines()

    return run


TABLE = """
["data/one"]
must = ['^exit \\d$', 'python']
must_not = ['nothing']
["data/two"]
must = ['b$']
"""


def test_right_and_wrong_ones(told: Callable[..., tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    scripts = {"data/01-one": 'echo "$PYTHON"; (exit 2); echo "exit $?"', "data/02-two": "echo a >&2"}
    code, lines = told(scripts, TABLE)
    assert code == 1
    assert lines[0].startswith("right  data/one, ") and lines[1].startswith("WRONG  data/two, ")
    assert lines[2:] == ["    lacks   b$", "    | a", "1 of 2 cases are right"]


def test_some_cases(told: Callable[..., tuple[int, list[str]]]) -> None:
    code, lines = told({"data/01-one": "exit 3", "data/02-two": "echo b"}, TABLE, "two")
    assert (code, lines[-1]) == (0, "1 of 1 cases are right")


def test_a_case_without_patterns_is_wrong(told: Callable[..., tuple[int, list[str]]]) -> None:
    code, lines = told({"data/03-three": "echo"}, TABLE)
    assert code == 1 and lines[1] == "    has no patterns in cases.toml"


def test_without_the_folder_there_is_nothing_to_do(told: Callable[..., tuple[int, list[str]]]) -> None:
    code, (line,) = told({}, TABLE)
    assert code == 0 and line.startswith("no cases at ")


@pytest.mark.parametrize(
    ("out", "expected", "wrong"),
    [
        ("a\nb 1\n", {"must": ["^b \\d$"]}, []),
        ("a\n", {"must": ["b"], "must_not": ["a"]}, ["lacks   b", "holds   a"]),
        ("graft: internal error", {}, ["holds   internal error"]),
        ('  File "own.py", line 3', {}, []),
    ],
)
def test_patterns(cases: ModuleType, out: str, expected: Mapping[str, Sequence[str]], wrong: list[str]) -> None:
    assert cases.wrong(out, expected) == wrong


def test_a_traceback_of_ours_is_always_wrong(cases: ModuleType) -> None:
    assert len(cases.wrong('Traceback …\n  File "/a/src/graftwork/core/task.py", line 3, in f', {})) == 1


def test_a_case_that_does_not_end_is_ended(cases: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cmd").write_text("echo begun; sleep 60 & wait")
    out = cases.printed(tmp_path, seconds=1.0)
    assert out == "begun\n\nstill running after 1 s\n" and cases.wrong(out, {}) == ["holds   still running after"]


def test_a_link_that_was_stored_as_a_file_is_one_again(cases: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    (folder / "deep").mkdir(parents=True)
    (folder / "long").write_text("content")
    (folder / "deep" / "link").write_text("../long")
    (folder / "deep" / "text").write_text("../elsewhere")
    (folder / "deep").chmod(0o555)
    found = cases.copied(folder, tmp_path / "copy")
    assert (found / "deep" / "link").is_symlink() and (found / "deep" / "link").read_text() == "content"
    assert (found / "deep" / "text").read_text() == "../elsewhere"
    assert not (folder / "deep" / "link").is_symlink()


def test_every_pattern_of_ours_is_one(cases: ModuleType) -> None:
    for name, expected in tomllib.loads(cases.TABLE.read_text()).items():
        assert name.count("/") == 1 and expected["must"] and expected.keys() <= {"must", "must_not"}
        for pattern in (*expected["must"], *expected.get("must_not", ())):
            re.compile(pattern, re.MULTILINE)
