"""Compare every method on one task: scores with their spread, baselines, price tags."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from graftwork.cli.options import (
    RunFlags,
    progress_bar,
    run_options,
    split_words,
    task_from_flags,
    task_options,
    use_threads,
)

if TYPE_CHECKING:
    from graftwork.compare.leaderboard import Leaderboard


@click.command("compare")
@task_options
@click.option("--methods", metavar="A,B,…", help="Methods to run, e.g. full,adapter:size=32.  [default: all that fit]")
@click.option("--seeds", type=int, help="Runs per method.  [default: 5]")
@click.option("--exhaustive", is_flag=True, help="No race: every method in full, at its own learning rate.")
@click.option("--out", metavar="DIR", help="Folder for leaderboard.json and report.html.  [default: boards/TASK]")
@click.option("--jobs", type=int, help="Runs side by side, sharing the threads.  [default: one thread each]")
@click.option("--json", "as_json", is_flag=True, help="Print leaderboard.json instead of the table.")
@run_options
def command(
    data: str,
    methods: str | None,
    seeds: int | None,
    exhaustive: bool,
    out: str | None,
    jobs: int | None,
    as_json: bool,
    running: RunFlags,
    **flags: str | None,
) -> int:
    """Run methods x seeds on DATA and say what is worth its price.

    DATA is a CSV, TSV, JSONL, CoNLL or Parquet file, an export of Label Studio or doccano, a folder of brat or of
    class folders with images or sounds, hub:NAME, a task file (TOML), or builtin:tickets; docs/data.md tells them all.

    Methods trained by gradient race: short trials choose their learning rates, and only the better half on validation
    goes on; --exhaustive runs them all in full.

    Runs that are there already cost nothing; an interrupted comparison goes on where it was. Exits 1 when no method
    finished.
    """
    task, settings = task_from_flags(data, flags)
    chosen = split_words(methods) if methods is not None else settings.get("methods")
    from graftwork.compare.leaderboard import SEEDS, compare

    use_threads(running.threads)
    with progress_bar() as progress:
        board = compare(
            task,
            methods=chosen,
            seeds=seeds if seeds is not None else settings.get("seeds", SEEDS),
            exhaustive=exhaustive or settings.get("exhaustive", False),
            out=out or settings.get("out"),
            jobs=jobs if jobs is not None else settings.get("jobs"),
            progress=progress,
            **running.over(settings),
        )
    _show(board, as_json)
    return 0 if any(row["status"] == "ok" for row in board.rows) else 1


def _show(board: Leaderboard, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(board.content, indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    from graftwork.compare.table import print_table

    print_table(dict(board.content), Console())
    if board.reused:
        click.echo(f"{board.reused} of {board.reused + board.executed} runs were there already and cost nothing.")
    assert board.folder is not None
    click.echo(f"Written: {board.folder / 'leaderboard.json'}, {board.folder / 'report.html'}")
