"""Train one method, or find the best one within a budget, and save a task module."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from graftwork.cli.in_bank import PlaceInBank, place_in_bank
from graftwork.cli.options import (
    Command,
    RunFlags,
    json_option,
    option,
    print_json,
    run_options,
    seed_option,
    task_from_flags,
    task_options,
    use_threads,
)
from graftwork.core.kind_settings import HEEDED
from graftwork.core.meter import Stopwatch
from graftwork.core.progress_bar import progress_bar
from graftwork.core.task import Task
from graftwork.errors import ConfigError, printable
from graftwork.run.settings import RunSettings, over


@click.command("train", cls=Command)
@task_options
@option("--method", metavar="METHOD", help="Method to train, e.g. adapter or lora:rank=16.")
@option(
    "--budget",
    metavar="AMOUNT",
    help="Instead of --method: find the best method within 90s, 5min, 1h, 20kJ, 3Wh or 0.02EUR.",
)
@option(
    "--worth",
    type=float,
    metavar="POINTS",
    help="With --budget: what the whole budget is worth, POINTS/10 of score (at most 0.05 points). A run is made only "
    "if it is expected to gain more than its share of that.  [default: 0.5]",
)
@seed_option("initialisation and data order")
@option("--learning-rate", type=float, help="With --method: peak learning rate.  [default: that of the method]")
@option(
    "--out", metavar="DIR", help="With --budget: folder for ladder.json, the list of runs.  [default: ladders/TASK]"
)
@option("--bank", metavar="DIR", help="Add the task module to this bank, which is created if it does not exist.")
@option("--task", "called", metavar="NAME", help="Name of the task in the bank.  [default: name of DATA]")
@option("--profile", is_flag=True, help="Print how long each phase of the run took.")
@json_option("the result (with --budget ladder.json) as JSON")
@run_options
def command(
    data: str,
    method: str | None,
    budget: str | None,
    worth: float | None,
    seed: int,
    learning_rate: float | None,
    out: str | None,
    bank: str | None,
    called: str | None,
    profile: bool,
    as_json: bool,
    running: RunFlags,
    **flags: str | None,
) -> None:
    """Train one method on DATA, or find the best method within a budget.

    DATA is as for graft compare: a file, a folder of splits or of class folders, a task file, builtin:tickets.

    With --method: train once, and print the scores, the costs and the path of the task module.

    With --budget: baselines run first. Then each next run is the one with the largest expected gain for its time:
    another method, or another seed. Then the weights of one method's runs are averaged, and other learning rates
    tried. The time of a run is estimated on a few steps before it is made. The search ends with the budget, or when no
    further run is worth its time. After Ctrl-C the best module so far is kept.
    """
    watch = Stopwatch()  # started before heavy imports: a budget includes their time
    _check(method, budget, learning_rate, out, worth)
    task, settings = task_from_flags(data, flags)
    use_threads(running.threads)
    given = over(settings, running.given)
    place = place_in_bank(bank, called, task, given.get("backbone"), RunSettings.of(given).precision, method)
    shared = {**given, "seed": seed, "backbone": place.backbone, "precision": place.precision}
    if budget is not None:
        found = shared if worth is None else shared | {"worth": worth}
        _climb(task, budget, out, found, place, watch, as_json, profile)
    elif method is not None:
        _train(task, method, learning_rate, shared, place, as_json, profile)


def _check(
    method: str | None, budget: str | None, learning_rate: float | None, out: str | None, worth: float | None
) -> None:
    """Check the combination of flags. Raises `ConfigError`."""
    if (method is None) == (budget is None):
        raise ConfigError(
            "neither --method nor --budget" if method is None else "--method and --budget exclude each other",
            expected="one of them",
            do="give --method to train that method, or --budget to find the best one",
        )
    listed = (
        ("--learning-rate", learning_rate, "--budget"),
        ("--out", out, "--method"),
        ("--worth", worth, "--method"),
    )
    for flag, value, other in listed:
        if value is not None and (budget if other == "--budget" else method) is not None:
            raise ConfigError(f"{flag} cannot be used with {other}", do=f"omit {flag}")


def _train(
    task: Task,
    method: str,
    learning_rate: float | None,
    shared: dict[str, Any],
    place: PlaceInBank,
    as_json: bool,
    profile: bool,
) -> None:
    with progress_bar() as progress:
        from graftwork.run.train import train

        run = train(task, method=method, learning_rate=learning_rate, progress=progress, **shared)
    banked = place.add(run.folder / "module")
    if as_json:
        told = {"reused": run.reused, "warnings": run.warnings, "unused": run.unused}
        told |= {"positive": run.positive["label"] if run.positive else None}
        found = {"module": str(run.folder / "module")} | told | banked.as_json
        print_json(asdict(run.result) | found)
        return
    from graftwork.cli.show import profile_lines, run_lines

    lines = run_lines(run.folder, run.result) + (profile_lines(run.folder) if profile else []) + _about(run.warnings)
    lines += [f"f1 is of {run.positive['label']!r}, {run.positive['chosen']}."] if run.positive else []
    click.echo(printable("\n".join(lines)))
    for name in run.unused:
        what = "is not trained by a loss of examples" if name in HEEDED else "does not use a training recipe"
        click.echo(f"{method} {what}: {name} has no effect.")
    if run.reused:
        click.echo("This run existed already and was reused.")
    click.echo("\n".join([f"Task module: {run.folder / 'module'}", *banked.lines]))


def _climb(
    task: Task,
    budget: str,
    out: str | None,
    shared: dict[str, Any],
    place: PlaceInBank,
    watch: Stopwatch,
    as_json: bool,
    profile: bool,
) -> None:
    with progress_bar() as progress:
        from graftwork.budget.ladder import climb

        ladder = climb(task, budget, out=out, progress=progress, watch=watch, **shared)
    module = ladder.run.folder / "module"
    banked = place.add(module)
    if as_json:
        print_json({**ladder.content, **banked.as_json})
        return
    from graftwork.budget.ladder_lines import ladder_lines
    from graftwork.cli.show import profile_lines

    lines = ladder_lines(ladder.content) + (profile_lines(ladder.run.folder) if profile else [])
    lines += _about(ladder.run.warnings)
    click.echo(printable("\n".join(lines)))
    click.echo("\n".join([f"Written: {ladder.folder / 'ladder.json'}", f"Task module: {module}", *banked.lines]))


def _about(warnings: tuple[str, ...]) -> list[str]:
    return ["about the data", *(f"  {warning}" for warning in warnings)] if warnings else []
