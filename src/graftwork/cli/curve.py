"""Plot learning curves: the score of each method by number of training rows."""

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
    run_options,
    seed_option,
    task_from_flags,
    task_options,
    use_threads,
)
from graftwork.core.progress_bar import progress_bar
from graftwork.run.settings import over

if TYPE_CHECKING:
    from graftwork.compare.curve import Curves


@click.command("curve", cls=Command)
@task_options
@option(
    "--sizes",
    metavar="A,B,…",
    help="Numbers of training rows: 8/class or 10%.  [default: 8/class,16/class,64/class,10%,100%; "
    "without classes only shares]",
)
@option("--reference-sizes", metavar="A,B,…", help="Further sizes at which only baselines and random:METHOD run.")
@option(
    "--methods",
    metavar="METHOD,…",
    help="Methods; random:full is full on random weights.  [default: the usual ones that apply]",
)
@option("--draws", type=int, help="Draws at each size.  [default: 5]")
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
    """Train methods on subsets of DATA's training split, and score them on the whole test split.

    DATA is as for graft compare: a file, a folder of splits or of class folders, a task file, builtin:tickets.

    A draw is one such subset. It has rows of every class, and at each size all methods train on the same draws. At most
    as many validation rows as training rows are used.

    With methods on pretrained weights beside baselines and random:METHOD, the report says how many training rows the
    latter need to reach the scores of the former.

    Finished runs are reused, and an interrupted curve resumes. The exit code is 1 if no run finished.
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
        click.echo(f"{found.reused} of {found.reused + found.executed} runs existed already and were reused.")
    click.echo(f"Written: {found.folder / 'curve.json'}, {found.folder / 'report.html'}")
