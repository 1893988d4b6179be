"""Train tasks one after another into a bank, and check that earlier ones stay unchanged."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.in_bank import asking_in_bank
from graftwork.cli.options import (
    Command,
    RunFlags,
    json_option,
    option,
    print_json,
    run_options,
    seed_option,
    use_threads,
)
from graftwork.core.progress_bar import progress_bar
from graftwork.errors import printable
from graftwork.units import metric_title, percent, several, show


@click.command("stream", cls=Command)
@click.argument("tasks", nargs=-1, required=True, shell_complete=paths)
@option("--bank", metavar="DIR", help="Bank, created if it does not exist. Not used by full-sequential.")
@option(
    "--method", default="adapter", show_default=True, metavar="METHOD", help="Method for all tasks, or full-sequential."
)
@seed_option("initialisation and data order")
@option("--learning-rate", type=float, help="Peak learning rate.  [default: that of the method]")
@option("--strict", is_flag=True, help="Stop at the first task that fails.")
@option("--out", metavar="DIR", help="Folder for stream.json.  [default: the folder that contains the bank]")
@json_option("stream.json instead of the table")
@run_options
def command(
    tasks: tuple[str, ...],
    bank: str | None,
    method: str,
    seed: int,
    learning_rate: float | None,
    strict: bool,
    out: str | None,
    as_json: bool,
    running: RunFlags,
) -> int:
    """Train TASKS (task files or data files) one after another as graft train does, and add each to the bank.

    After each task, the self-tests of all other tasks in the bank are recomputed. Their logits must be bit-identical to
    the stored ones, and their files unchanged; otherwise the stream stops and names the difference.

    A task that fails (bad data) is reported at the end, and the exit code is then 1. The other tasks are trained unless
    --strict is given. Repeating the command resumes with the missing tasks.

    --method full-sequential is a reference for catastrophic forgetting: it fine-tunes one network on all tasks in
    order, scores the earlier tasks again after each, and adds nothing to a bank.
    """
    use_threads(running.threads)
    from graftwork.bank.stream import stream

    table = StreamTable(contrast=method.startswith("full-sequential"), quiet=as_json)
    with progress_bar() as progress:
        done = stream(
            tasks, bank, method=method, seed=seed, learning_rate=learning_rate, strict=strict, out=out,
            told=table.row, progress=progress, **running.given,
        )  # fmt: skip
    if as_json:
        print_json(done.content)
    else:
        _end(done.content, bank)
        click.echo(f"Written: {done.path}")
    return 1 if done.failed else 0


class StreamTable:
    """A table printed row by row, under a matching header."""

    def __init__(self, contrast: bool, quiet: bool):
        self.contrast, self.quiet, self.number = contrast, quiet, 0

    def row(self, row: Mapping[str, Any]) -> None:
        """Print a row, and the header before the first."""
        if self.quiet:
            return
        self.number += 1
        if self.number == 1:
            click.echo(CONTRAST_HEADER if self.contrast else HEADER)
        start = f"{self.number:>3}  {row['task']:<23} "
        if "failed" in row:
            told = f"failed: {row['failed'].splitlines()[0]}"
        else:
            told = _sequential(row) if self.contrast else _added(row)
        click.echo(printable(start + told + ("  (reused)" if row.get("reused") else "")))


_START = f"{'':>3}  {'task':<24}{'score [95 % over examples]':<31}{'training':>11}"
HEADER = f"{_START}{'adding':>9}{'size':>9}  self-tests of the others"
CONTRAST_HEADER = f"{_START}{'average':>9}{'backward transfer':>19}{'forgetting':>12}"


def _scored(row: Mapping[str, Any]) -> str:
    score, seconds = row["score"], row["seconds"]
    shown = metric_title(row["metric"], row.get("positive"))
    shown += f" {percent(score['score'])} [{percent(score['low'])}, {percent(score['high'])}]"
    return f"{shown:<31}{show(seconds['train'], 's'):>11}"


def _added(row: Mapping[str, Any]) -> str:
    count = row["earlier"]["compared"]
    others = f"all {count} bit-identical" if count else "none yet"
    return f"{_scored(row)}{show(row['seconds']['add'], 's'):>9}{show(row['bytes'], 'bytes'):>9}  {others}"


def _sequential(row: Mapping[str, Any]) -> str:
    figures = row["figures"]
    backward, forgetting = (
        "–" if figures[name] is None else f"{figures[name]:+.3f}" for name in ("backward_transfer", "forgetting")
    )
    return f"{_scored(row)}{figures['average']:>9.3f}{backward:>19}{forgetting:>12}"


def _end(content: Mapping[str, Any], bank: str | None) -> None:
    """Print which tasks failed, the bank's size and how to use it."""
    if content["failed"]:
        click.echo(f"\nFailed: {len(content['failed'])}")
        for name, message in content["failed"].items():
            told = message if message.startswith(name) else f"{name}: {message}"
            click.echo(printable(textwrap.indent(told, "  ")))
    if "matrix" in content:
        click.echo("No task was added to a bank. Training on later tasks has changed the predictions for earlier ones.")
    elif content["tasks"]:
        assert bank is not None
        from graftwork.bank.bank_folder import BankFolder

        held = BankFolder(Path(bank)).state().tasks
        rows = [row for row in content["tasks"] if row["task"] in held]  # the others were removed or renamed
        size = sum(row["bytes"] for row in rows)
        click.echo(f"Bank: {bank}, {several(len(rows), 'task')} of this stream, {show(size, 'bytes')}")
        if rows:
            click.echo(f"Use it:  {asking_in_bank(bank, rows[-1]['task'])}")
