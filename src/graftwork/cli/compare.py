"""Compare all methods on one or several tasks: scores with their spread, baselines, price tags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.live import watching
from graftwork.cli.options import (
    Command,
    RunFlags,
    jobs_option,
    progress_bar,
    run_options,
    task_flags,
    task_from_flags,
    use_threads,
)
from graftwork.errors import ConfigError
from graftwork.io.files import read_json
from graftwork.run.settings import over

if TYPE_CHECKING:
    from graftwork.compare.compare_tasks import TasksBoard
    from graftwork.compare.leaderboard import Leaderboard


@click.command("compare", cls=Command)
@click.argument("data", nargs=-1, required=True)
@task_flags
@click.option("--methods", metavar="A,B,…", help="Methods to run, e.g. full,adapter:size=32.  [default: all that fit]")
@click.option("--no-transfer", is_flag=True, help="Methods on random weights too: those named, else full.")
@click.option("--seeds", type=int, help="Runs of a method, at most.  [default: 5]")
@click.option(
    "--worth",
    type=float,
    metavar="POINTS",
    help="By how many points a dearer method must be better; 0: the best at any price.  [default: 0.5]",
)
@click.option(
    "--vary",
    metavar="A,B,…",
    help="What seeds draw anew: init, order, augmentation; the rest as by seed 0.  [default: all]",
)
@click.option(
    "--exhaustive",
    is_flag=True,
    help="Every method with every seed, as a paper needs it.",
)
@click.option("--against", metavar="METHOD", help="Of several tasks: what ratios are to.  [default: full]")
@click.option(
    "--out",
    metavar="DIR",
    help="Folder for leaderboard.json and report.html.  [default: boards/TASK; of several boards/tasks]",
)
@jobs_option
@click.option("--verbose", is_flag=True, help="Verdicts, the price of the search, notes and what is in the data too.")
@click.option("--json", "as_json", is_flag=True, help="Print leaderboard.json, or tasks.json, instead of the table.")
@run_options
def command(
    data: tuple[str, ...],
    methods: str | None,
    no_transfer: bool,
    seeds: int | None,
    vary: str | None,
    worth: float | None,
    exhaustive: bool,
    against: str | None,
    out: str | None,
    jobs: int | None,
    verbose: bool,
    as_json: bool,
    running: RunFlags,
    **flags: str | None,
) -> int:
    """Run methods x seeds on DATA and report which method is worth its price.

    DATA is a CSV, TSV, JSONL, CoNLL or Parquet file, an export of Label Studio or doccano, a folder of splits
    (train.tsv, dev.tsv, test.tsv), of brat, or of class folders with images or sounds, hub:NAME, a task file (TOML), or
    builtin:tickets; docs/reference/data-files.md describes them all. With several DATA, each gets its own board, and
    one more board summarises them: docs/how-to/several-tasks.md.

    Baselines run first; then methods and seeds are added for as long as one can still change the choice. The choice is
    the cheapest method that is expected to be at most --worth points below the best; the cost of a wrong choice is
    reported too.

    Runs that already exist cost nothing; an interrupted comparison resumes. Exits 1 when no method finished (with
    several tasks: on none of them).
    """
    given = {"methods": methods, "seeds": seeds, "jobs": jobs, "worth": worth}
    given |= {"exhaustive": exhaustive or None, "vary": vary}
    asked = [task_from_flags(name, flags) for name in data]
    if len(asked) > 1:
        if flags.get("rejects") is not None:
            raise ConfigError(
                "--rejects is for one task: those of several would overwrite one another",
                do='name a file in each task file: rejects = "bad.jsonl"',
            )
        with progress_bar() as progress:
            use_threads(running.threads)
            from graftwork.compare.compare_tasks import compare_each

            calls = [(task, _settings(said, given, running) | {"no_transfer": no_transfer}) for task, said in asked]
            over = compare_each(calls, against=against, out=out, progress=progress)
        _show_tasks(over, as_json)
        return 0 if over.content["counted"] else 1
    if against is not None:
        raise ConfigError("--against is for several tasks", do="name two data files or task files, or more")
    with watching(shown=not as_json) as watch:
        use_threads(running.threads)
        from graftwork.compare.leaderboard import compare

        task, settings = asked[0][0], _settings(asked[0][1], given, running) | {"no_transfer": no_transfer}
        board = compare(task, **{**settings, "out": out or settings["out"]}, watch=watch)
    _show(board, as_json, verbose, running.given.get("runs") or "runs")
    return 0 if any(row["status"] == "ok" for row in board.rows) else 1


def _settings(said: Mapping[str, Any], given: Mapping[str, Any], running: RunFlags) -> dict[str, Any]:
    """Return the arguments of `compare`: flags take precedence over the task file, and that over the defaults."""
    from graftwork.compare.leaderboard import SEEDS
    from graftwork.decision.choice import WORTH

    chosen: dict[str, Any] = dict.fromkeys(("methods", "vary", "out", "jobs")) | {"seeds": SEEDS, "exhaustive": False}
    chosen |= {"worth": 100 * WORTH}
    chosen |= {key: said[key] for key in chosen if key in said}
    return chosen | {key: value for key, value in given.items() if value is not None} | over(said, running.given)


def _show(board: Leaderboard, as_json: bool, verbose: bool, runs: str | Path) -> None:
    if as_json:
        click.echo(json.dumps(board.content, indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    from graftwork.compare.advice import chosen_row
    from graftwork.compare.leaderboard_table import print_table
    from graftwork.compare.majority_floor import MAJORITY
    from graftwork.module.inputs import asking

    print_table(dict(board.content), Console(), verbose)
    if board.reused:
        click.echo(f"{board.reused} of {board.reused + board.executed} runs were there already and cost nothing.")
    assert board.folder is not None
    click.echo(f"Written: {board.folder / 'leaderboard.json'}, {board.folder / 'report.html'}")
    row = chosen_row(board.content)
    if row is None or row["method"] == MAJORITY:
        return
    modules = [module for run in row["runs"] if (module := Path(runs) / run / "module").is_dir()]  # none if it failed
    if modules:
        command = asking(read_json(modules[0] / "module.json")["roles"], modules[0])
        click.echo(f"Use it:  {command}  ({row['method']}, one of its runs)")


def _show_tasks(over: TasksBoard, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(over.content, indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    from graftwork.compare.tasks_table import print_tasks

    print_tasks(over.content, Console())
    reused, executed = (sum(getattr(board, name) for board in over.boards.values()) for name in ("reused", "executed"))
    if reused:
        click.echo(f"{reused} of {reused + executed} runs were there already and cost nothing.")
    click.echo(f"Written: {over.folder / 'tasks.json'}, {over.folder / 'tasks.html'}, and a board for each task")
