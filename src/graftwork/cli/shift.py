"""Measure domain shift: how much new texts differ from a module's training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

    found = shift(opened, source, reference=reference, columns=columns, rows=rows, furthest=furthest)
    print_facts(found, shift_lines(found), as_json)


def shift_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the result for the terminal: the verdict, then the measures it is based on."""
    from graftwork.evaluate.domain_shift import furthest_lines

    rows = found["rows"]
    lines = [*found["verdict"], ""]
    lines.append(f"  {'new texts':<24}{rows['new']:,}, of which {rows['new_compared']:,} were compared")
    if found["reference"] is not None:
        lines.append(f"  {'training texts':<24}{rows['trained_on']:,}, in {found['reference']}")
        lines.append(f"  {'new and in training':<24}{rows['new_trained_on']:,}")
    lines += [f"  {name:<24}{text}" for name, text in _measures(found).items()]
    test = found.get("two_sample") or {}
    if test.get("furthest"):
        lines += ["", "new texts that differ most from the training data, with the ratio of densities (new / training)"]
        lines += [f"  {line}" for line in furthest_lines(test)]
    return lines


def _measures(found: Mapping[str, Any]) -> dict[str, str]:
    told: dict[str, str] = {}
    sure, lengths, words, answers = (found.get(name) for name in ("confidence", "lengths", "words", "answers"))
    if sure:
        before = f", of held-out texts {sure['held_out']['mean']:.3f}" if sure["held_out"] else ""
        told["confidence"] = f"{sure['new']['mean']:.3f}{before}"
    if answers and answers["held_out"]:
        names = dict.fromkeys([*answers["new"], *answers["held_out"]])
        old, new = answers["held_out"], answers["new"]
        ordered = sorted(names, key=lambda name: -abs(new.get(name, 0.0) - old.get(name, 0.0)))[:4]
        told["answers"] = ", ".join(
            f"{name} {new.get(name, 0.0):.3g} (was {old.get(name, 0.0):.3g})" for name in ordered
        )
    for unit in ("words", "tokens"):
        if words and unit in words.get("new", {}):
            before = f", of held-out texts {words['held_out'][unit]:.1%}" if "held_out" in words else ""
            told[f"{unit} never seen"] = f"{words['new'][unit]:.1%}{before}"
    if words and words["most_frequent"]:
        told["most frequent of them"] = ", ".join(f"{one['word']} {one['count']:,}" for one in words["most_frequent"])
    if lengths:
        before = f", before {lengths['before']['mean']:.1f}" if lengths["before"] else ""
        cut = f"; {lengths['cut']:,} are cut" if lengths["cut"] else ""
        told["words of a text"] = f"{lengths['new']['mean']:.1f}{before}{cut}"
    return told
