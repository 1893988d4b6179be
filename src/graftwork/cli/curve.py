"""Learning curves: scores of each method by number of labels, and how many labels transfer saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from graftwork.cli.options import (
    Command,
    RunFlags,
    jobs_option,
    json_option,
    option,
    print_json,
    progress_bar,
    run_options,
    seed_option,
    task_from_flags,
    task_options,
    use_threads,
)
from graftwork.run.settings import over

if TYPE_CHECKING:
    from graftwork.compare.curve import Curves


@click.command("curve", cls=Command)
@task_options
@option(
    "--sizes",
    metavar="A,B,…",
    help="Training rows: 8/class, or 10%.  [default: 8/class,16/class,64/class,10%,100%; without classes shares]",
)
@option("--reference-sizes", metavar="A,B,…", help="Sizes for baselines and random: only, whatever --sizes says.")
@option(
    "--methods",
    metavar="METHOD,…",
    help="Methods; random:full is full on fresh weights.  [default: usual ones that fit]",
)
@option("--draws", type=int, help="Parts of the training split at every size.  [default: 5]")
@seed_option("the draws")
@jobs_option
@option("--out", metavar="DIR", help="Folder for curve.json and report.html.  [default: curves/TASK]")
@json_option("curve.json instead of the table")
@run_options
def command(
    data: str,
    sizes: str | None,
    reference_sizes: str | None,
    methods: str | None,
    draws: int | None,
    seed: int,
    jobs: int | None,
    out: str | None,
    as_json: bool,
    running: RunFlags,
    **flags: str | None,
) -> int:
    """Train methods on subsets of DATA's training split and score them on its whole test split.

    DATA is what graft compare takes: a file, a folder of splits or of class folders, a task file, builtin:tickets.

    A draw takes rows of every class in hash order; at each size every method gets the same rows. Choices are made on
    at most as many validation rows as there are training rows.

    When methods on pretrained weights run beside baselines and random:METHOD, the report says how many labels the
    latter need to reach the scores that transfer reaches with few. At --reference-sizes only the latter run.

    Runs that already exist cost nothing; an interrupted curve resumes. Exits 1 when no run finished.
    """
    task, settings = task_from_flags(data, flags)
    use_threads(running.threads)
    from graftwork.compare.curve import DRAWS, curve

    with progress_bar() as progress:
        found = curve(
            task,
            sizes=sizes,
            reference_sizes=reference_sizes,
            methods=methods,
            draws=DRAWS if draws is None else draws,
            seed=seed,
            jobs=jobs,
            out=out,
            progress=progress,
            **over(settings, running.given),
        )
    _show(found, as_json)
    return 0 if any(point["n_draws"] for point in found.content["points"]) else 1


def _show(found: Curves, as_json: bool) -> None:
    if as_json:
        print_json(found.content)
        return
    from rich.console import Console

    from graftwork.compare.curve_table import print_curve

    print_curve(found.content, Console())
    if found.reused:
        click.echo(f"{found.reused} of {found.reused + found.executed} runs were there already and cost nothing.")
    click.echo(f"Written: {found.folder / 'curve.json'}, {found.folder / 'report.html'}")
