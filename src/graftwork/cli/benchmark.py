"""Compare methods on a published benchmark such as GLUE, next to published scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import paths, suites
from graftwork.cli.options import (
    Command,
    RunFlags,
    exhaustive_option,
    jobs_option,
    json_option,
    option,
    print_json,
    run_options,
    use_threads,
)
from graftwork.core.progress_bar import progress_bar

if TYPE_CHECKING:
    from graftwork.benchmark.run_suite import Benchmark


@click.command("benchmark", cls=Command)
@click.argument("suite", shell_complete=suites)
@click.argument("dir", shell_complete=paths)
@option("--tasks", metavar="A,B,…", help="Tasks, by their names in the suite.  [default: all whose files are in DIR]")
@option(
    "--methods",
    metavar="METHOD,…",
    help="Methods; the majority baseline always runs too.  [default: the usual ones that apply]",
)
@option("--seeds", type=int, default=5, show_default=True, help="Runs per method.")
@option("--limit", type=int, metavar="ROWS", help="Read at most this many rows of each file, for a quick test.")
@exhaustive_option
@option(
    "--out",
    metavar="DIR",
    help="Folder for benchmark.json, the boards and the submission files.  [default: boards/SUITE]",
)
@jobs_option
@json_option("benchmark.json instead of the table")
@run_options
def command(suite: str, dir: str, as_json: bool, running: RunFlags, **flags: Any) -> int:
    """Compare methods on every task of SUITE, from its official files in DIR.

    SUITE is glue, superglue, squad or flowers; graft ls suites lists them. DIR holds the unpacked download.

    The labels of official test files are not public. Scores are therefore computed on the dev files, and choices are
    made on a validation split of train. Test predictions for submission come from the method that is best on
    validation.

    Each task is a comparison as by graft compare. Finished runs are reused.
    """
    from graftwork.benchmark.run_suite import benchmark

    use_threads(running.threads)
    with progress_bar() as progress:
        done = benchmark(suite, dir, progress=progress, **flags, **running.given)
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
