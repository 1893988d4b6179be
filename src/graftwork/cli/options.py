"""Flags shared by several commands, and the progress bar."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from graftwork.cli.completion import by_metavar, paths
from graftwork.core.kind_settings import KindSetting, kind_settings
from graftwork.core.task import Task, read_task_file
from graftwork.errors import ConfigError, printable
from graftwork.io.files import finite
from graftwork.registry import kinds
from graftwork.run.settings import TOLD_BY_FILES, WHAT, GivenSettings, RunSettings

F = TypeVar("F", bound=Callable[..., Any])
_COLUMNS = (  # role, metavar and help of the columns of a file to predict on
    ("text", "COL", "Column of the text.  [default: that of the training file, text or sentence]"),
    ("text_a", "COL", "Column of the first text of a pair.  [default: that of the training file, or text_a]"),
    ("text_b", "COL", "Column of the second text of a pair.  [default: that of the training file, or text_b]"),
    ("choices", "A,B,…", "Columns of the answer choices, or one column of lists.  [default: found by name]"),
    ("image", "COL", "Column of images.  [default: that of the training file, image or img]"),
    ("sound", "COL", "Column of sounds.  [default: that of the training file, sound or audio]"),
)
_TASK_COLUMNS = (  # the same of a file to train on
    ("text", "COL", "Column of the text, or of its words.  [default: text, sentence, tokens]"),
    ("text_a", "COL", "Column of the first text of a pair.  [default: text_a]"),
    ("text_b", "COL", "Column of the second text of a pair.  [default: text_b]"),
    ("image", "COL", "Column of images, or of paths from the data file.  [default: image or img]"),
    ("sound", "COL", "Column of sounds, or of paths from the data file.  [default: sound or audio]"),
)


class Option(click.Option):
    """An option that is below `heading` in `--help`; a shell completes its value by its metavar."""

    heading = "Options"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what the value may be."""
        return super().shell_complete(ctx, incomplete) or by_metavar(self.metavar, incomplete)


option = functools.partial(click.option, cls=Option)


def _setting(name: str, flag: str = "", **sort: Any) -> Callable[[F], F]:
    """Return the flag of a setting of `run/settings.py`. Its default is None if a task file may set it."""
    default = None if name in TOLD_BY_FILES else getattr(RunSettings(), name)
    return option(flag or f"--{name.replace('_', '-')}", default=default, help=WHAT[name], **sort)


def seed_option(decides: str) -> Callable[[F], F]:
    """Return the option `--seed`; its help says what it is the seed of."""
    return option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=f"Random seed of {decides}.")


def json_option(prints: str) -> Callable[[F], F]:
    """Return the option `--json` as the argument `as_json`; its help says what the JSON document is."""
    return option("--json", "as_json", is_flag=True, help=f"Print {prints}.")


def print_json(content: Any) -> None:
    """Print one JSON document to stdout; NaN and infinity become null."""
    click.echo(json.dumps(finite(content), indent=1, ensure_ascii=False))


def print_facts(content: Any, lines: Sequence[str], as_json: bool) -> None:
    """Print `content` as JSON, or else the lines that say the same."""
    if as_json:
        print_json(content)
    else:
        click.echo(printable("\n".join(lines)))


runs_option = _setting("runs", metavar="DIR")
precision_option = _setting("precision", metavar="auto|bf16|fp32")
device_option = _setting("device", metavar="auto|cpu|cuda")
prices_option = _setting("prices", metavar="FILE")
threads_option = option("--threads", type=int, help="CPU threads.  [default: all cores]")
exhaustive_option = option(
    "--exhaustive", is_flag=True, help="Run every method with every seed, as for a paper. Do not stop early."
)
jobs_option = option(
    "--jobs",
    type=int,
    help="Runs at the same time; each gets an equal share of the threads.  [default: one per thread "
    "and 4 GB of memory, at most 8; 1 on a GPU]",
)


@dataclass(frozen=True)
class RunFlags:
    """The values of the flags of `run_options`."""

    given: GivenSettings  # keyword arguments of the functions that make runs
    threads: int | None  # threads of the process


def task_options(function: F) -> F:
    """Add DATA and the flags that describe a task."""
    return _apply(task_flags(function), (click.argument("data", shell_complete=paths),))


def task_flags(function: F) -> F:
    """Add the flags that describe a task: the keys of a task file, the settings of the kinds among them."""
    *names, last = kinds.names()
    flags = (
        *_column_flags(_TASK_COLUMNS),
        option(
            "--label",
            "--target",
            metavar="COL",
            help="Column of the target, or A,B,… of a column per label or reference.  [default: label; for tagging "
            "tags or upos; for generation target, summary and the like]",
        ),
        option(
            "--kind",
            metavar="KIND",
            help=f"Kind of task: {', '.join(names)} or {last}. It is never guessed.  [default: {Task.kind}]",
        ),
        *(_kind_flag(setting) for setting in kind_settings().values()),
        option(
            "--metrics",
            metavar="METRIC,…",
            help="Metrics; choices are made by the first.  [default: those of the kind]",
        ),
        option(
            "--drop-leaks",
            is_flag=True,
            default=None,
            help="Remove training rows that also occur, exactly or nearly, in validation or test.",
        ),
        option(
            "--rejects",
            metavar="FILE",
            help="Write unreadable rows to FILE with the reason, and use the others.  [default: stop at the first]",
        ),
        option(
            "--validation", metavar="FILE", help="File of validation rows.  [default: split off train by content hash]"
        ),
        option("--test", metavar="FILE", help="File of test rows.  [default: split off train by content hash]"),
        option("--split-seed", type=int, metavar="N", help="Split the rows differently.  [default: 0]"),
    )
    return _apply(function, flags, "Data")


def reading_options(function: F) -> F:
    """Add the flags of those settings of kinds that decide how rows are read, but for columns."""
    columns = [role for role, _, _ in _COLUMNS]
    listed = [one for one in kind_settings().values() if not one.in_question and one.name not in columns]
    return _apply(function, tuple(_kind_flag(one, "as in training") for one in listed), "Data")


def _kind_flag(setting: KindSetting, default: str = "") -> Callable[[Any], Any]:
    """Return the flag of a setting that only some kinds have; `default` says what holds without it."""
    flag = f"--{setting.name.replace('_', '-')}"
    meaning = f"Of {' and '.join(setting.users)}: {setting.meaning}."
    if setting.type is bool:
        return option(flag, is_flag=True, default=None, help=meaning)
    metavars = {list: "A,B,…", str: "TEXT", int: "N", float: "N", dict: "FILE"}
    sort = str if setting.type in (list, dict) else setting.type
    metavar = "|".join([*setting.choices, *["FILE"] * (setting.type is dict)]) or metavars[setting.type]
    return option(flag, type=sort, metavar=metavar, help=f"{meaning}  [default: {default or setting.unset}]")


def column_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the column flags of a file to predict on; the command gets `columns`, role -> name, of the flags given."""

    @wraps(function)
    def command(**flags: Any) -> Any:
        named = {role: flags.pop(role) for role, _, _ in _COLUMNS}
        return function(columns={role: name for role, name in named.items() if name is not None}, **flags)

    return _apply(command, _column_flags(_COLUMNS), "Data")


def abstaining_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that withhold unsure answers; the command gets `abstain_below` and `target_precision`."""
    flags = (
        option(
            "--abstain-below",
            type=float,
            metavar="P",
            help="Withhold answers whose probability is below P, 0 to 1; the best guess is given beside.",
        ),
        option(
            "--target-precision",
            type=float,
            metavar="P",
            help="Withhold answers so that a share P of the others is right, e.g. 0.95: the threshold is chosen on "
            "validation.",
        ),
    )
    return _apply(function, flags)


def _column_flags(columns: Sequence[tuple[str, str, str]]) -> tuple[Callable[[Any], Any], ...]:
    return tuple(option(f"--{role.replace('_', '-')}", metavar=sort, help=told) for role, sort, told in columns)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags for how runs are computed and where they are kept; the command gets them as `running: RunFlags`."""

    @wraps(function)
    def command(**flags: Any) -> Any:
        given = cast(GivenSettings, {name: flags.pop(name) for name in GivenSettings.__annotations__})
        return function(running=RunFlags(given, flags.pop("threads")), **flags)

    flags = (
        _setting("backbone", metavar="BACKBONE"),
        _setting("epochs", type=int),
        _setting("batch_size", type=int, metavar="N"),
        _setting("augment", "--augment/--no-augment"),
        runs_option,
        precision_option,
        device_option,
        threads_option,
        _setting("cache", metavar="DIR"),
        _setting("cache_size", metavar="SIZE"),
        _setting("max_memory", metavar="SIZE"),
        prices_option,
    )
    return _apply(command, flags, "Run and machine")


def _apply(function: F, flags: tuple[Callable[[Any], Any], ...], heading: str = "") -> F:
    """Decorate with every flag; in `--help` those with a heading are below it."""
    for flag in reversed(flags):
        function = flag(function)
        if heading:
            function.__click_params__[-1].heading = heading  # type: ignore[attr-defined]
    return function


class Command(click.Command):
    """A command whose `--help` lists options below headings: its own, then those of the data and of the machine."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those without a heading first."""
        found: dict[str, list[tuple[str, str]]] = {Option.heading: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                heading = parameter.heading if isinstance(parameter, Option) else Option.heading
                found.setdefault(heading, []).append(record)
        for heading in sorted(found, key=lambda name: name != Option.heading):
            with formatter.section(heading):
                formatter.write_dl(found[heading])


def task_from_flags(data: str, flags: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
    """Return the task (flags take precedence over the task file) and the file's settings of the comparison."""
    settings = read_task_file(Task.find(data))[1] if data.endswith(".toml") else {}
    return Task.from_file(data, **flags), settings


def use_threads(threads: int | None) -> None:
    """Set the number of threads; call it before any tensor is computed. Raises `ConfigError` for a number below 1."""
    if threads is None:
        return
    if threads < 1:
        raise ConfigError("--threads must be at least 1", got=str(threads))
    import torch

    from graftwork.machine.environment import usable_cores

    torch.set_num_threads(threads)
    cores = usable_cores()
    if cores is not None and threads > cores:
        click.echo(f"graft: {threads} threads on {cores} cores are slower than the default", err=True)
