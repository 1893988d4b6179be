"""Predict with a task module or a bank; inputs come from the command line or a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graftwork.cli.completion import paths, tasks_of_bank
from graftwork.cli.given_modules import is_bank, opened_modules
from graftwork.cli.in_bank import asking_in_bank
from graftwork.cli.options import (
    Command,
    abstaining_options,
    column_options,
    device_option,
    option,
    threads_option,
    use_threads,
)
from graftwork.core.media import MEDIA
from graftwork.core.progress_bar import progress_bar
from graftwork.errors import ConfigError, printable
from graftwork.units import percent, several

if TYPE_CHECKING:
    from graftwork.module.abstaining import Abstaining
    from graftwork.module.task_module import TaskModule


@click.command("predict", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("texts", nargs=-1, shell_complete=tasks_of_bank)
@option(
    "--also",
    metavar="MODULE",
    multiple=True,
    help="Further module, or task of the bank, for the same inputs. Repeatable.",
)
@option(
    "--file",
    "source",
    metavar="FILE",
    help="Input file: CSV, TSV or JSONL with texts, CoNLL or JSONL with words, or a list of image or sound files.",
)
@option("--out", metavar="FILE", help="Output file for --file, .jsonl, .csv or .tsv: one line per input.")
@option(
    "--keep", metavar="COL", multiple=True, help="Column of --file that the output repeats, such as an id. Repeatable."
)
@option(
    "--rejects",
    metavar="FILE",
    help="Write unreadable rows of --file to FILE with the reason, and continue. Predictions then "
    "have line numbers.  [default: stop at the first]",
)
@abstaining_options
@column_options
@device_option
@threads_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object per input, with all probabilities.")
def command(
    module: str,
    texts: tuple[str, ...],
    also: tuple[str, ...],
    source: str | None,
    out: str | None,
    keep: tuple[str, ...],
    rejects: str | None,
    device: str,
    threads: int | None,
    as_json: bool,
    columns: dict[str, str],
    abstain_below: float | None,
    target_precision: float | None,
) -> None:
    """Predict TEXTS with MODULE: a task module, a run's folder, or a bank.

    If MODULE is a bank, the first of TEXTS is the name of a task; TASK@2 is its version 2. For a task on images or
    sounds, TEXTS are files or folders. With -, texts are read from standard input, one per line.

    Modules on the same backbone share its forward passes. In the output, predictions of --also are prefixed with the
    name of their task.
    """
    given = {"--out": out, "--keep": keep, "--rejects": rejects}
    given |= {f"--{role.replace('_', '-')}": column for role, column in columns.items()}
    first = next((name for name, value in given.items() if value), None)
    if first and not source:
        raise ConfigError(f"{first} needs --file", do="graft predict MODULE --file FILE --out OUT")
    if as_json and out:
        raise ConfigError("--json cannot be used with --out", do="omit --json; the suffix of --out decides the format")
    in_bank = is_bank(module)
    if in_bank and not texts:
        raise ConfigError("a bank needs the name of a task", where=module, do=f'graft predict {module} TASK "a text"')
    tasks, texts = (texts[:1], texts[1:]) if in_bank else ((), texts)
    if texts == ("-",):
        texts = _lines_of_input()
    if in_bank and not texts and not source:
        what = f"no input for task {tasks[0]!r}"
        raise ConfigError(what, where=module, do=f"{asking_in_bank(module, tasks[0])}, or --file FILE --out OUT")
    if bool(texts) == bool(source):
        raise ConfigError("give either texts or --file", do='graft predict MODULE "a text", or --file FILE --out OUT')
    with progress_bar(first="opening the module"):
        use_threads(threads)
        opened = opened_modules(module, (*tasks, *also), device)
    from graftwork.module.abstaining import Abstaining

    abstaining = Abstaining(abstain_below, target_precision)
    if source:
        reading = (columns, Path(rejects) if rejects else None, abstaining, keep)
        _answer_file(opened, Path(source), Path(out) if out else None, *reading)
    else:
        _answer_texts(opened, texts, as_json, abstaining)


def _lines_of_input() -> tuple[str, ...]:
    """The lines of standard input. Raises `ConfigError` where there are none, or bytes that are not UTF-8."""
    try:
        lines = tuple(sys.stdin.buffer.read().decode("utf-8").splitlines())
    except UnicodeDecodeError as error:
        raise ConfigError("standard input is not UTF-8", got=str(error), do="graft predict MODULE - < FILE") from None
    if not lines:
        raise ConfigError("standard input is empty", expected="one text per line", do="graft predict MODULE - < FILE")
    return lines


def _answer_file(
    modules: list[TaskModule],
    source: Path,
    out: Path | None,
    columns: dict[str, str],
    rejects: Path | None,
    abstaining: Abstaining,
    keep: tuple[str, ...],
) -> None:
    from graftwork.module.predict_file import answer_file

    with progress_bar(shown=out is not None) as progress:
        done = answer_file(modules, source, out, click.echo, progress, columns, rejects, abstaining, keep)
    answers = several(done.rows, "answer")
    click.echo(f"{answers} in {out}" if out else answers, err=True)
    if done.rejected:
        click.echo(f"{several(done.rejected, 'row')} can't be read: {rejects}", err=True)
    _say_cut(modules, done.cut)
    _say_coverage(modules, done.unsure, done.rows, abstaining)


def _answer_texts(modules: list[TaskModule], texts: tuple[str, ...], as_json: bool, abstaining: Abstaining) -> None:
    from graftwork.module.abstaining import BEST_GUESS, unsure
    from graftwork.module.inputs import OF_ROLES
    from graftwork.module.predict_file import inputs_as_json, merge_answers, prefixes_of
    from graftwork.module.predict_many import answer_windows, check_roles
    from graftwork.registry import kinds

    check_roles(modules)
    prefixes, roles = prefixes_of(modules), modules[0].roles
    inputs = OF_ROLES[roles].arguments(texts)
    listed = roles[0] in MEDIA and len(inputs) > 1  # several files: each answer is prefixed with its file
    given, cut, withheld = iter(inputs), 0, [0] * len(modules)
    for window in answer_windows(modules, modules[0].examples(inputs), abstaining):
        cut += window.cut
        withheld = [known + sum(map(unsure, own)) for known, own in zip(withheld, window.answers, strict=True)]
        for example, *answers in zip(window.examples, *window.answers, strict=True):
            file = f"{next(given)}: " if listed else ""
            if as_json:
                click.echo(json.dumps(merge_answers(inputs_as_json(example), answers, prefixes), ensure_ascii=False))
                continue
            for module, prefix, answer in zip(modules, prefixes, answers, strict=True):
                sentence = (
                    f"unsure ({answer['probability']:.3f}); best guess: {answer[BEST_GUESS]}"
                    if unsure(answer)
                    else kinds.get(module.task.kind).sentence(answer)
                )
                click.echo(printable(f"  {prefix[:-1]}: {sentence}" if prefix else f"{file}{sentence}"))
    _say_cut(modules, cut)
    _say_coverage(modules, withheld, len(inputs), abstaining)


def _say_coverage(modules: list[TaskModule], withheld: list[int], rows: int, abstaining: Abstaining) -> None:
    for module, unsure in zip(modules, withheld, strict=True):
        threshold = abstaining.threshold(module.description)
        if threshold is not None:
            share = f"{rows - unsure:,} of {several(rows, 'input')} answered ({percent((rows - unsure) / rows)} %)"
            click.echo(f"{module.task.name}: {share}; unsure {threshold.sentence()}", err=True)


def _say_cut(modules: list[TaskModule], cut: int) -> None:
    if cut:
        longest = min(longest for module in modules if (longest := module.max_length) is not None)
        click.echo(f"{several(cut, 'input')} truncated to the backbone's {longest} tokens", err=True)
