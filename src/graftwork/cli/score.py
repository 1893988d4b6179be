"""Score task modules on a labelled file, with confidence intervals."""

from __future__ import annotations

from typing import Any

import click

from graftwork.cli.completion import paths, tasks_of_bank
from graftwork.cli.given_modules import opened_modules, task_and_file
from graftwork.cli.options import (
    Command,
    abstaining_options,
    column_options,
    device_option,
    json_option,
    option,
    print_facts,
    reading_options,
    threads_option,
    use_threads,
)
from graftwork.core.progress_bar import progress_bar
from graftwork.units import several


@click.command("score", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("file", nargs=-1, required=True, metavar="[TASK] FILE", shell_complete=tasks_of_bank)
@option(
    "--also",
    metavar="MODULE",
    multiple=True,
    help="Further module, or task of the bank, to score on the same rows. Repeatable.",
)
@column_options
@option(
    "--label",
    metavar="COL",
    help="Column of the target.  [default: as in training, else label; for tagging tags or upos]",
)
@reading_options
@option(
    "--rejects",
    metavar="FILE",
    help="Write unreadable rows to FILE with the reason, and score the others.  [default: stop at the first]",
)
@abstaining_options
@device_option
@threads_option
@json_option("the result as JSON")
def command(
    module: str,
    file: tuple[str, ...],
    also: tuple[str, ...],
    label: str | None,
    rejects: str | None,
    device: str,
    threads: int | None,
    as_json: bool,
    columns: dict[str, str],
    abstain_below: float | None,
    target_precision: float | None,
    **of_kind: Any,
) -> None:
    """Score MODULE on the labelled rows of FILE, by every metric of its task, with 95 % confidence intervals over
    examples.

    MODULE is a task module, a run's folder, or a bank; with a bank, TASK is the name of a task in it. Each score is
    printed beside the score of the majority class (or the most frequent text) on the same rows and the module's
    score on its own test split.
    """
    task, source = task_and_file(module, file, "score")
    use_threads(threads)
    opened = opened_modules(module, (*task, *also), device)
    from graftwork.evaluate.score import score
    from graftwork.evaluate.score_lines import score_lines
    from graftwork.module.abstaining import Abstaining

    abstaining = Abstaining(abstain_below, target_precision)
    named = columns | {"label": label} | of_kind
    with progress_bar() as progress:
        found = score(
            opened[0], source, also=opened[1:], columns=named, rejects=rejects, abstaining=abstaining, progress=progress
        )
    print_facts(found, score_lines(found), as_json)
    if found["rows"]["rejected"] and not as_json:
        click.echo(f"{several(found['rows']['rejected'], 'row')} can't be read: {rejects}", err=True)
