"""Compare methods on one or several tasks: scores with intervals, baselines, costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import (
    Command,
    RunFlags,
    exhaustive_option,
    jobs_option,
    json_option,
    option,
    print_json,
    run_options,
    task_flags,
    task_from_flags,
    use_threads,
)
from graftwork.compare.live import watching
from graftwork.core.progress_bar import progress_bar
from graftwork.errors import ConfigError
from graftwork.io.files import read_json
from graftwork.run.settings import over

if TYPE_CHECKING:
    from graftwork.compare.compare_tasks import TasksBoard
    from graftwork.compare.leaderboard_display import Leaderboard


@click.command("compare", cls=Command)
@click.argument("data", nargs=-1, required=True, shell_complete=paths)
@task_flags
@option(
    "--methods",
    metavar="METHOD,…",
    help="Methods with their settings, e.g. full,adapter:size=32.  [default: the usual ones that apply]",
)
@option("--no-transfer", is_flag=True, help="Also train the named methods, or else full, from random weights.")
@option("--seeds", type=int, help="Largest number of runs per method.  [default: 5]")
@option(
    "--worth",
    type=float,
    metavar="POINTS",
    help="Choose a more expensive method only if it is better by this many points; 0: ignore cost.  [default: 0.5]",
)
@option(
    "--vary",
    metavar="A,B,…",
    help="What differs between seeds: init, order, augmentation; templates, shots. Everything else is as with seed 0.  "
    "[default: all]",
)
@exhaustive_option
@option(
    "--ship",
    is_flag=True,
    help="Also compress the chosen module and those on the frontier, and say which module to ship.",
)
@option("--no-examples", is_flag=True, help="Leave the texts of the test rows, and their answers, out of the report.")
@option("--against", metavar="METHOD", help="With several tasks: the reference method of all ratios.  [default: full]")
@option(
    "--out",
    metavar="DIR",
    help="Folder for leaderboard.json and report.html.  [default: boards/TASK; with several tasks boards/tasks]",
)
@jobs_option
@option(
    "--verbose",
    is_flag=True,
    help="With one task: also print pairwise verdicts, the cost of the search, notes and facts about the data.",
)
@json_option("leaderboard.json (with several tasks tasks.json) instead of the table")
@run_options
def command(
    data: tuple[str, ...],
    methods: str | None,
    no_transfer: bool,
    seeds: int | None,
    vary: str | None,
    worth: float | None,
    exhaustive: bool,
    ship: bool,
    no_examples: bool,
    against: str | None,
    out: str | None,
    jobs: int | None,
    verbose: bool,
    as_json: bool,
    running: RunFlags,
    **flags: str | None,
) -> int:
    """Train several methods with several seeds on DATA, and report which method is worth its cost.

    DATA is one of: a CSV, TSV, JSON, JSONL, CoNLL or Parquet file; an export of Label Studio or doccano; a folder with
    train.tsv, dev.tsv and test.tsv; a folder of brat files; a folder with one subfolder of images or sounds per class;
    hub:NAME; a task file (TOML); builtin:tickets. The page docs/reference/data-files.md describes them all. Several
    DATA give one board each, and one that summarises them: docs/how-to/several-tasks.md.

    Baselines run first. Then methods and seeds are added as long as a further run can change the choice. The choice is
    the cheapest method that is expected to score at most --worth points below the best one. The report also says how
    much a wrong choice would cost.

    Finished runs are reused, and an interrupted comparison resumes. The exit code is 1 if no method finished (with
    several tasks: on no task).
    """
    given = {"methods": methods, "seeds": seeds, "jobs": jobs, "worth": worth}
    given |= {"exhaustive": exhaustive or None, "vary": vary, "no_transfer": no_transfer, "ship": ship}
    given |= {"examples": not no_examples}
    asked = [task_from_flags(name, flags) for name in data]
    if len(asked) > 1:
        if flags.get("rejects") is not None:
            raise ConfigError(
                "--rejects is for one task: several tasks would overwrite the same file",
                do='name a file in each task file: rejects = "bad.jsonl"',
            )
        with progress_bar() as progress:
            use_threads(running.threads)
            from graftwork.compare.compare_tasks import compare_each

            calls = [(task, _settings(said, given, running)) for task, said in asked]
            over = compare_each(calls, against=against, out=out, progress=progress)
        _show_tasks(over, as_json)
        return 0 if over.content["counted"] else 1
    if against is not None:
        raise ConfigError("--against is for several tasks", do="name two or more data files or task files")
    with watching(shown=not as_json) as watch:
        use_threads(running.threads)
        from graftwork.compare.leaderboard import compare

        task, settings = asked[0][0], _settings(asked[0][1], given, running)
        board = compare(task, **{**settings, "out": out or settings["out"]}, watch=watch)
    _show(board, as_json, verbose)
    return 0 if any(row["status"] == "ok" for row in board.rows) else 1


def _settings(said: Mapping[str, Any], given: Mapping[str, Any], running: RunFlags) -> dict[str, Any]:
    """Return the arguments of `compare`: flags take precedence over the task file, and that over the defaults."""
    from graftwork.compare.leaderboard import SEEDS
    from graftwork.decision.choice import WORTH

    chosen: dict[str, Any] = dict.fromkeys(("methods", "vary", "out", "jobs")) | {"seeds": SEEDS, "exhaustive": False}
    chosen |= {"worth": 100 * WORTH}
    chosen |= {key: said[key] for key in chosen if key in said}
    return chosen | {key: value for key, value in given.items() if value is not None} | over(said, running.given)


def _show(board: Leaderboard, as_json: bool, verbose: bool) -> None:
    if as_json:
        print_json(board.content)
        return
    from rich.console import Console

    from graftwork.compare.leaderboard_table import print_table
    from graftwork.compare.majority_floor import MAJORITY
    from graftwork.module.inputs import asking

    print_table(dict(board.content), Console(), verbose)
    if board.reused:
        click.echo(f"{board.reused} of {board.reused + board.executed} runs existed already and were reused.")
    assert board.folder is not None
    click.echo(f"Written: {board.folder / 'leaderboard.json'}, {board.folder / 'report.html'}")
    shipped = board.content.get("shipped") or {}
    row = board.chosen
    if row is None or row.method == MAJORITY:
        return
    if shipped.get("module"):
        module = Path(shipped["module"])
        told = asking(read_json(module / "module.json")["roles"], module)
        click.echo(f"Ship it:  {told}  ({shipped['chosen']})")
    if row.command is not None:
        which = "one of its runs" if row.average is None else "the mean of its runs"
        click.echo(f"Use it:  {row.command}  ({row.method}, {which})")


def _show_tasks(over: TasksBoard, as_json: bool) -> None:
    if as_json:
        print_json(over.content)
        return
    from rich.console import Console

    from graftwork.compare.tasks_table import print_tasks

    print_tasks(over.content, Console())
    reused, executed = (sum(getattr(board, name) for board in over.boards.values()) for name in ("reused", "executed"))
    if reused:
        click.echo(f"{reused} of {reused + executed} runs existed already and were reused.")
    click.echo(f"Written: {over.folder / 'tasks.json'}, {over.folder / 'tasks.html'}, and a board for each task")
