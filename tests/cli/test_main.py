"""`graft` itself: instant help, suggestions, exit codes, no traceback unless asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from graftwork import __version__
from graftwork.cli import main
from graftwork.errors import DataError
from graftwork.machine.signals import Terminated

COMMANDS = (
    "bank",
    "benchmark",
    "cache",
    "compare",
    "compress",
    "curve",
    "data",
    "doctor",
    "experience",
    "export",
    "ls",
    "nearest",
    "predict",
    "pretrain",
    "price",
    "receipt",
    "score",
    "serve",
    "shift",
    "show",
    "stream",
    "train",
    "vectors",
    "verify",
)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a command `fail`, or of another name, in the place of all commands; it raises what it is given."""

    def put(error: BaseException, name: str = "fail") -> None:
        @click.command()
        @click.option("--seeds", type=int)
        def fail(seeds: int | None) -> None:
            raise error

        monkeypatch.setattr(main, "group", lambda arguments: click.Group("graft", commands={name: fail}))

    return put


def test_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.partition("Decide:")[2].split())
    assert tuple(main.command_summaries()) == COMMANDS
    assert sorted(name for names in main.SECTIONS.values() for name in names) == sorted(COMMANDS)
    for name, summary in main.command_summaries().items():
        assert f"{name} {summary}" in shown
        assert summary


@pytest.mark.parametrize("arguments", [["-h"], ["predict", "-h"], ["bank", "ls", "-h"]])
def test_h_is_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(arguments) == 0
    assert "-h, --help" in capsys.readouterr().out


def test_options_stand_below_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["train", "--help"]) == 0
    shown = capsys.readouterr().out.partition("\nOptions:")[2]
    own, _, rest = shown.partition("\nData:")
    data, _, machine = rest.partition("\nRun and machine:")
    assert "--method" in own and "--label" in data and "--threads" in machine
    assert "DATA\n" not in own


def test_no_arguments_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 0
    assert "Usage: graft" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"graft {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([name, "--help"]) == 0
    assert f"Usage: graft {name}" in capsys.readouterr().out


def test_the_help_of_no_command_imports_anything_heavy() -> None:
    """Also where its flags are the settings of all kinds of task, which import what they compute with when they do."""
    code = (
        "import sys; from graftwork.cli.main import main;"
        f"assert not any(main([*name, '--help']) for name in {[[], *([name] for name in COMMANDS)]});"
        "heavy = {'torch', 'transformers', 'sklearn', 'scipy', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_help_is_instant() -> None:
    """0.1 s of processor time; the bound leaves room for a slower processor."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "graftwork", "--help"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.6


def test_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["verif", "x.csv"]) == 2
    assert "Did you mean 'verify'?" in capsys.readouterr().err


def test_unknown_option_suggests_the_nearest(failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    failing(AssertionError("never called"))
    assert main.main(["fail", "--sed", "3"]) == 2
    message = capsys.readouterr().err
    assert "'--seeds'" in message
    assert "graft fail --help" in message


def test_a_mistake_of_the_user_is_one_message(failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    failing(DataError("the file is empty", where="a.csv", do="give a file with rows"))
    assert main.main(["fail"]) == 2
    shown = capsys.readouterr()
    assert shown.err == "graft: a.csv: the file is empty\n  do:       give a file with rows\n"
    assert shown.out == ""


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_shows_the_traceback(
    failing: Callable[..., None], capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    failing(ZeroDivisionError("oh"))
    assert main.main(arguments) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_mistake_of_ours_says_how_to_see_more(
    failing: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(ZeroDivisionError("oh"))
    assert main.main(["fail"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("graft: internal error: ZeroDivisionError: oh")
    assert "--debug" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compare", "; finished runs are kept; the same command resumes"),
        ("train", "; finished runs are kept; the same command resumes"),
        ("predict", "; the file of --out is unchanged; that of --rejects is unchanged or complete"),
        ("ls", ""),
    ],
)
def test_interrupt_says_what_is_left(
    command: str, words: str, failing: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(KeyboardInterrupt(), command)
    assert main.main([command]) == 130
    assert capsys.readouterr().err.strip() == f"graft: stopped{words}"


def test_sigterm_ends_with_a_code_of_its_own(failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    failing(Terminated(), "train")
    assert main.main(["train"]) == 143
    assert capsys.readouterr().err.strip().startswith("graft: stopped; finished runs are kept")


def test_debug_after_a_bare_double_dash_is_data() -> None:
    assert main._without_debug(["predict", "m", "--debug", "--", "--debug"]) == ["predict", "m", "--", "--debug"]


def test_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "graftwork", "--help"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert done.stderr == b""


def test_a_terminal_without_the_character_is_no_failure() -> None:
    code = "import sys; from graftwork.cli import main as m; m.main(['--version']); print('–')"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"?"
