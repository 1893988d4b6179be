"""Make a task module smaller or faster, with a loss of score that is shown to be small."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, print_facts, seed_option
from graftwork.core.progress_bar import progress_bar
from graftwork.units import metric_title, percent, several, show


@click.command("compress", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("dir", shell_complete=paths)
@option(
    "--allow",
    type=float,
    default=0.5,
    show_default=True,
    metavar="POINTS",
    help="Largest loss on validation, in points of the headline metric, that must be shown not to be exceeded.",
)
@option(
    "--for",
    "aim",
    type=click.Choice(["speed", "bytes", "joules"]),
    default="speed",
    show_default=True,
    help="What is to improve.",
)
@option("--rungs", metavar="NAMES", help="Compressions to try, in this order, with commas.  [default: all]")
@option(
    "--runtime", metavar="NAME", help="Write the folder for this runtime, onnx, and measure it so.  [default: torch]"
)
@option("--data", metavar="FILE", help="New place of the training file, if it was moved.")
@option(
    "--texts",
    metavar="FILE",
    help="Further inputs without labels: the module answers them for a student, and their words are kept.",
)
@seed_option("what is drawn where a network is trained again")
@json_option("the table and the receipt as JSON")
def command(
    module: str,
    dir: str,
    allow: float,
    aim: str,
    rungs: str | None,
    runtime: str | None,
    data: str | None,
    texts: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Make MODULE smaller or faster, and write it to the new folder DIR, with a network of its own.

    Compressions are tried one on top of the other. Each is kept if it improves what is asked for, and if its loss on
    the validation rows is shown, with a certainty of 95 %, to be at most that allowed. The exit code is 1 if none is
    kept: then nothing is written. What will be tried, and about how long it trains, is said first.
    """
    from graftwork.ship.compress import compress

    with progress_bar(first="opening the module") as progress:
        found = compress(
            module,
            dir,
            allow=allow,
            aim=aim,
            rungs=rungs or (),
            runtime=runtime,
            data=data,
            texts=texts,
            seed=seed,
            plan=lambda tried: click.echo(plan_line(tried), err=True),
            progress=progress,
        )
    print_facts(found, compress_lines(found), as_json)
    return 0 if found["module"] else 1


def plan_line(rungs: Sequence[tuple[str, float | None]]) -> str:
    """Say what will be tried, and about how long that takes: `rungs` are names, and seconds of training or None."""
    told = [name if seconds is None else f"{name} (about {_roughly(seconds)})" for name, seconds in rungs]
    whole = sum(seconds or 0.0 for _, seconds in rungs)
    trains = f"about {_roughly(whole)} of training at most" if whole else "none is trained"
    return f"To try: {', '.join(told)}; {trains}. Choose with --rungs."


def _roughly(seconds: float) -> str:
    """Return a duration in whole minutes, or of ten seconds below one."""
    return f"{math.ceil(seconds / 10) * 10} s" if seconds <= 50 else f"{math.ceil(seconds / 60)} min"


def compress_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the table of rungs, and what came of it."""
    metric, original = metric_title(found["metric"], found["positive"]), found["original"]
    lines = [
        f"{found['task']} · {original['method']}, {show(original['bytes'], 'bytes')} with its backbone"
        f" · {several(found['rows'], 'row')} of validation, a loss of {found['allow']:g} points allowed",
        "",
        f"  {'rung':<28}{metric:<12}{'loss, at most':<16}{'speed':<9}{'bytes':<11}verdict",
    ]
    lines += [f"  {_row(one)}" for one in found["rungs"]]
    return [*lines, "", *_outcome(found, metric)]


def _row(one: Mapping[str, Any]) -> str:
    if "score" not in one:
        return f"{one['rung']:<28}{one['verdict']}"
    loss = "none" if one["exact"] else f"{100 * one['loss']:.1f}, {100 * one['loss_at_most']:.1f}"
    measured = f"{percent(one['score']):<12}{loss:<16}{one['speed_ratio']:<9.2f}{show(one['bytes'], 'bytes'):<11}"
    return f"{one['rung']:<28}{measured}{one['verdict']}"


def _too_few(rows: int, needed: int | None) -> str:
    """Say what so few rows of validation can't show, and what would help; `needed` rows would do, or no number."""
    from graftwork.ship.rung_measure import least_shown

    if needed is None:
        return "No number of rows can show that nothing at all is lost: allow more."
    least = math.ceil(1000 * least_shown(rows)) / 10
    what = f"{several(rows, 'row')} of validation can't show a loss below {least:.1f} points"
    return f"{what}: allow that much, or validate on {needed:,} rows."


def _outcome(found: Mapping[str, Any], metric: str) -> list[str]:
    """Say what was kept and written, or why nothing was."""
    price = f"The search took {show(found['price']['cpu_seconds'], 's')} of processor time."
    lines = []
    needed = found["rows_needed"]
    if needed is None or needed > found["rows"]:
        lines.append(_too_few(found["rows"], needed))
    if not found["module"]:
        return [*lines, f"Nothing is written: {found['reason']}. {price}"]
    if found["runtime"] != "torch" and not found["exported"]:
        lines.append(f"No rung of {found['runtime']} is kept: the folder is a module for torch.")
    test = found["test"]
    beside = f"{100 * abs(test['loss']):.1f} points {'more' if test['loss'] < 0 else 'less'} than the original"
    span = f"[{percent(test['low'])}, {percent(test['high'])}]"
    return [
        *lines,
        f"Kept: {', '.join(found['kept'])}. {price}",
        f"On test: {metric} {percent(test['score'])} {span}, {beside}; a loss of at most "
        f"{100 * test['loss_at_most']:.1f}.",
        f"Task module: {found['module']}, {show(found['bytes'], 'bytes')}, {found['speed_ratio']:.2f} times as fast",
    ]
