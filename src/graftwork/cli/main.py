"""`graft`: finds the requested command, runs it, and turns every failure into a message and an exit code."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from graftwork import __version__
from graftwork.documents import document
from graftwork.errors import GraftworkError, printable
from graftwork.io.files import OF_THE_DISK, storage_error
from graftwork.machine.signals import Terminated, ending_cleanly

_HELP = """Compare ways to adapt a pretrained model to your labelled data, and find the one that is worth its cost.

\b
graft compare tickets.csv                    compare methods: scores and costs
graft train tickets.csv --method adapter     train one method
graft train tickets.csv --budget 5min        find the best method within five minutes
graft predict MODULE "my card is lost"       predict with a trained task module
"""
_EPILOG = f"""\b
The documentation, pages of Markdown: {document("index.md")}

\b
Terms:
  backbone     a pretrained network, as minilm or hf:FOLDER
  method       a way to adapt a backbone (adapter, lora, full fine-tuning, …), or a baseline
  run          one training with one method and one seed, saved in runs/ID
  task module  what a run has trained and saved: all that is needed to predict, except the backbone
  board        the results of a comparison: leaderboard.json and report.html
  bank         a folder of task modules on the same backbone

\b
Completion with TAB: add the line for your shell to its start-up file.
  ~/.bashrc:                    eval "$(_GRAFT_COMPLETE=bash_source graft)"
  ~/.zshrc:                     eval "$(_GRAFT_COMPLETE=zsh_source graft)"
  ~/.config/fish/config.fish:   _GRAFT_COMPLETE=fish_source graft | source
"""
COMPLETE = "_GRAFT_COMPLETE"  # click's variable: set while a shell asks for completions
SECTIONS = {
    "Decide": ("compare", "train", "curve", "price", "benchmark", "experience"),
    "Use": ("predict", "score", "shift", "serve", "export", "bank", "stream", "compress"),
    "Check": ("data", "ls", "show", "verify", "receipt", "cache", "doctor"),
    "Pre-train": ("pretrain", "vectors", "nearest"),
}
_KEPT = "finished runs are kept; the same command resumes"
_STOPPED = {
    "bank": "the bank is unchanged",
    "benchmark": _KEPT,
    "compare": _KEPT,
    "compress": "nothing is written",
    "curve": _KEPT,
    "pretrain": "the last checkpoint is kept; the same command resumes from it",
    "stream": "trained tasks are kept; the same command resumes with the others",
    "train": _KEPT,
    "predict": "the file of --out is unchanged; that of --rejects is unchanged or complete",
}  # command -> what is kept after Ctrl-C
_OF_A_PATH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)  # errors caused by a path that the user gave


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: done. 2: an error the user can fix, reported in one message. 130: stopped by Ctrl-C, 143: by SIGTERM. 1: an
    internal error, a comparison in which no method finished, a stream in which a task could not be learnt, a run that
    `graft verify` found different, or a machine on which `graft doctor` says something will fail.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    rest = _without_debug(given)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # do not fail on a terminal that cannot print "–"
    try:
        with ending_cleanly():
            return _run(rest)
    except Exception as error:
        if len(rest) < len(given):
            traceback.print_exc()
        return _fail(error, rest)
    except KeyboardInterrupt as interrupt:
        return _stopped(rest, interrupt)


def _run(arguments: list[str]) -> int:
    typed = os.environ.get("COMP_WORDS", "").split() if COMPLETE in os.environ else arguments
    code = group(typed).main(arguments or ["--help"], prog_name="graft", standalone_mode=False)
    sys.stdout.flush()  # here, where a closed pipe can still be caught
    return code if isinstance(code, int) else 0


def group(arguments: Sequence[str]) -> click.Group:
    """Return all commands. Only those named in `arguments` are imported; the others have a summary only."""
    commands = [
        _load(name) if name in arguments else click.Command(name, short_help=summary)
        for name, summary in command_summaries().items()
    ]
    options: list[click.Parameter] = [
        click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")
    ]
    settings = {"help_option_names": ["-h", "--help"]}
    whole = Graft("graft", commands=commands, params=options, help=_HELP, epilog=_EPILOG, context_settings=settings)
    return click.version_option(__version__, message="graft %(version)s")(whole)


class Graft(click.Group):
    """The commands, by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each purpose."""
        wide = max(map(len, self.commands))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{wide}}", self.commands[name].get_short_help_str(300)) for name in names])


@functools.cache
def command_summaries() -> dict[str, str]:
    """Return name -> first line of each file in this folder that defines `command`, without importing or parsing it."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))}
    return {
        name: text.removeprefix('"""').partition("\n")[0].removesuffix('"""')
        for name, text in texts.items()
        if "\ndef command(" in text
    }


def _load(name: str) -> click.Command:
    command = importlib.import_module(f"graftwork.cli.{name}").command
    assert isinstance(command, click.Command), f"cli/{name}.py has no `command`"
    return command


def _without_debug(arguments: list[str]) -> list[str]:
    """Return the arguments without `--debug`, which may appear anywhere before a bare `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [argument for argument in arguments[:end] if argument != "--debug"] + arguments[end:]


def _stopped(arguments: Sequence[str], cause: BaseException | None) -> int:
    command = next((word for word in arguments if not word.startswith("-")), "")
    code = 143 if isinstance(cause, Terminated) else 130
    return _say(f"stopped; {_STOPPED[command]}" if command in _STOPPED else "stopped", code)


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    """Print what `error` means to the user and return the exit code."""
    if isinstance(error, click.Abort):
        return _stopped(arguments, error.__cause__)
    if isinstance(error, GraftworkError):
        return _say(error.message, 2)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        return 0
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        path = context.command_path if context else "graft"
        return _say(f"{error.format_message()}\n  do:       see {path} --help", 2)
    if isinstance(error, BrokenPipeError):
        _close_output()
        return 1
    if isinstance(error, OSError) and (error.errno in OF_THE_DISK or (error.filename and error.errno in _OF_A_PATH)):
        if error.filename is None:
            _close_output()
        return _say(storage_error(error, str(error.filename or "standard output")).message, 2)
    return _say(f"internal error: {type(error).__name__}: {error}; run again with --debug for the traceback", 1)


def _close_output() -> None:
    """Redirect stdout to the null device, so that Python does not fail again at exit when it flushes the buffer."""
    with contextlib.suppress(OSError, ValueError):  # stdout may have no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, code: int) -> int:
    click.echo(f"graft: {printable(message)}", err=True)
    return code
