"""Compare methods on a published suite: reads its official files, prints one table with published figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from graftwork.cli.completion import paths, suites
from graftwork.cli.options import (
    Command,
    RunFlags,
    jobs_option,
    json_option,
    option,
    print_json,
    progress_bar,
    run_options,
    use_threads,
)

if TYPE_CHECKING:
    from graftwork.benchmark.run_suite import Benchmark


@click.command("benchmark", cls=Command)
@click.argument("suite", shell_complete=suites)
@click.argument("dir", shell_complete=paths)
@option("--tasks", metavar="A,B,…", help="Tasks as the suite calls them.  [default: all whose files are there]")
@option("--methods", metavar="METHOD,…", help="Methods to run; majority always does.  [default: all that fit]")
@option("--seeds", type=int, default=5, show_default=True, help="Runs per method.")
@option("--limit", type=int, metavar="ROWS", help="At most so many rows of each file, for a first look.")
@option(
    "--exhaustive",
    is_flag=True,
    help="Every method with every seed, as a paper needs it.",
)
@option("--out", metavar="DIR", help="Folder for benchmark.json, boards, submission.  [default: boards/SUITE]")
@jobs_option
@json_option("benchmark.json instead of the table")
@run_options
def command(
    suite: str,
    dir: str,
    tasks: str | None,
    methods: str | None,
    seeds: int,
    limit: int | None,
    exhaustive: bool,
    out: str | None,
    jobs: int | None,
    as_json: bool,
    running: RunFlags,
) -> int:
    """Run methods x seeds on every task of SUITE, whose official files are in DIR.

    SUITE is glue, superglue, squad or flowers; graft ls suites lists them. DIR holds the official files, as their
    download unpacks.

    The labels of official test files are hidden: scores are computed on the dev files, and choices are made on a
    validation split drawn from train. Submission files are predicted by the method that is best on validation.

    Every task is a separate comparison, as by graft compare: runs that already exist cost nothing.
    """
    from graftwork.benchmark.run_suite import benchmark

    use_threads(running.threads)
    with progress_bar() as progress:
        done = benchmark(
            suite,
            dir,
            tasks=tasks,
            methods=methods,
            seeds=seeds,
            limit=limit,
            exhaustive=exhaustive,
            out=out,
            jobs=jobs,
            progress=progress,
            **running.given,
        )
    _show(done, as_json)
    return 0 if done.content["chosen"] else 1


def _show(done: Benchmark, as_json: bool) -> None:
    if as_json:
        print_json(done.content)
        return
    from rich.console import Console

    from graftwork.benchmark.suite_table import print_benchmark

    print_benchmark(done.content, Console())
    click.echo(f"Written: {done.folder / 'benchmark.json'}")
