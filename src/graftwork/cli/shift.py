"""Measure domain shift: how much new texts differ from a module's training data."""

from __future__ import annotations

import click

from graftwork.cli.completion import paths, tasks_of_bank
from graftwork.cli.given_modules import opened_modules, task_and_file
from graftwork.cli.options import (
    Command,
    column_options,
    device_option,
    json_option,
    option,
    print_facts,
    threads_option,
    use_threads,
)


@click.command("shift", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("file", nargs=-1, required=True, metavar="[TASK] FILE", shell_complete=tasks_of_bank)
@option("--reference", metavar="FILE", help="Compare with these texts instead.  [default: the training data]")
@option(
    "--rows", default=2000, show_default=True, metavar="N", help="Largest number of texts to compare from each side."
)
@option("--furthest", default=5, show_default=True, metavar="N", help="Number of new texts to print that differ most.")
@column_options
@device_option
@threads_option
@json_option("the result as JSON")
def command(
    module: str,
    file: tuple[str, ...],
    reference: str | None,
    rows: int,
    furthest: int,
    device: str,
    threads: int | None,
    as_json: bool,
    columns: dict[str, str],
) -> None:
    """Measure how much the texts in FILE differ from the training data of MODULE. FILE needs no labels.

    MODULE is a task module, a run's folder, or a bank; with a bank, TASK is the name of a task in it.
    """
    use_threads(threads)
    task, source = task_and_file(module, file, "shift")
    (opened,) = opened_modules(module, task, device)
    from graftwork.evaluate.domain_shift import shift
    from graftwork.evaluate.shift_lines import shift_lines

    found = shift(opened, source, reference=reference, columns=columns, rows=rows, furthest=furthest)
    print_facts(found, shift_lines(found), as_json)
