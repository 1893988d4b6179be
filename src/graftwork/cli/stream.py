"""Train tasks one after another into a bank, and check that none of the earlier ones changes."""

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
    progress_bar,
    run_options,
    seed_option,
    use_threads,
)
from graftwork.errors import printable
from graftwork.units import percent, show


@click.command("stream", cls=Command)
@click.argument("tasks", nargs=-1, required=True, shell_complete=paths)
@option("--bank", metavar="DIR", help="The bank; made where it is not there. Not needed by full-sequential.")
@option("--method", default="adapter", show_default=True, metavar="METHOD", help="Of all tasks; or full-sequential.")
@seed_option("initialisation and data order")
@option("--learning-rate", type=float, help="Peak of the schedule.  [default: the method's]")
@option("--strict", is_flag=True, help="Stop at the first task that can't be learnt.")
@option("--out", metavar="DIR", help="Folder for stream.json.  [default: where the bank stands]")
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
    """Train TASKS (task files, or data files) in order, each as graft train does, and add them to the bank by name.

    After each task the self-tests of all others in the bank are recomputed: their logits must be bit-identical to
    those when they were added, and their files must be unchanged. Otherwise the stream stops and says which differs.

    A task that can't be learnt (bad data) is reported at the end and does not stop the others, unless --strict; the
    exit code is then 1. Repeating the same command resumes with the missing tasks.

    --method full-sequential fine-tunes one network on one task after another and scores the earlier tasks again after
    each: the forgetting that a bank avoids. It adds no task to the bank.
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
        click.echo(printable(start + told + ("  (there already)" if row.get("reused") else "")))


_START = f"{'':>3}  {'task':<24}{'score [95 % over examples]':<31}{'training':>11}"
HEADER = f"{_START}{'adding':>9}{'size':>9}  self-tests of the others"
CONTRAST_HEADER = f"{_START}{'average':>9}{'backward transfer':>19}{'forgetting':>12}"


def _scored(row: Mapping[str, Any]) -> str:
    score, seconds = row["score"], row["seconds"]
    shown = f"{row['metric']} {percent(score['score'])} [{percent(score['low'])}, {percent(score['high'])}]"
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
        click.echo(f"\nNot learnt: {len(content['failed'])}")
        for name, message in content["failed"].items():
            told = message if message.startswith(name) else f"{name}: {message}"
            click.echo(printable(textwrap.indent(told, "  ")))
    if "matrix" in content:
        click.echo("No task is in a bank: this network answers only the last one as it did when it was learnt.")
    elif content["tasks"]:
        assert bank is not None
        from graftwork.bank.bank_folder import BankFolder

        held = BankFolder(Path(bank)).state().tasks
        rows = [row for row in content["tasks"] if row["task"] in held]  # the others were removed or renamed
        size = sum(row["bytes"] for row in rows)
        click.echo(f"Bank: {bank}, {len(rows)} tasks of this stream, {show(size, 'bytes')}")
        if rows:
            click.echo(f"Use it:  {asking_in_bank(bank, rows[-1]['task'])}")
