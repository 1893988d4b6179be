"""Price a method at scale: training, storage and a number of predictions, in time, energy, CO2e and money."""

from __future__ import annotations

import math
from pathlib import Path

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, prices_option, print_facts
from graftwork.cli.verify import named_folder
from graftwork.errors import ConfigError


@click.command("price", cls=Command)
@click.argument("source", nargs=-1, required=True, metavar="SOURCE...", shell_complete=paths)
@option("--predictions", required=True, metavar="N", help="Number of predictions, as 1e9: in all, or with --per.")
@option("--per", type=click.Choice(("day", "month")), help="N is the number of each day or month.")
@option("--years", type=float, default=1.0, show_default=True, metavar="N", help="How long the module is in use.")
@prices_option
@option("--hardware", metavar="NAME", help="A machine of the price list, [hardware.NAME].  [default: that measured]")
@option("--pretraining", metavar="RUN", help="A pre-training that the tasks share.")
@option("--tasks", type=int, default=1, show_default=True, metavar="N", help="Tasks that share the pre-training.")
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of runs.")
@option("--report", metavar="FILE.html", help="Write a page with charts to FILE.html.")
@json_option("the costs and crossings as JSON")
def command(
    source: tuple[str, ...],
    predictions: str,
    per: str | None,
    years: float,
    prices: str | None,
    hardware: str | None,
    pretraining: str | None,
    tasks: int,
    runs: str,
    report: str | None,
    as_json: bool,
) -> None:
    """Print what N predictions cost in all: training, storage and predictions, for each SOURCE: a board with all its
    methods, a task module, or a run. It also says from which number of predictions one is cheaper than another.

    Every cost has a band by how it is known. Money and CO2e need a price list (--prices); without one they are blank.
    """
    from graftwork.compare.price_lines import price_lines
    from graftwork.ship.total_cost import price

    content = price(
        [named_folder(one, runs, "board, module or run") for one in source],
        _count(predictions),
        per=per,
        years=years,
        prices=prices,
        hardware=hardware,
        pretraining=None if pretraining is None else named_folder(pretraining, runs, "pre-training"),
        tasks=tasks,
    )
    if report is not None:
        from graftwork.compare.price_page import render_price_page
        from graftwork.io.files import write_text

        write_text(Path(report), render_price_page(content))
    print_facts(content, price_lines(content), as_json)


def _count(words: str) -> float:
    """Parse a number of predictions: `1e9`, `3_000_000`, `1,000`."""
    try:
        count = float(words.replace(",", ""))
    except ValueError:
        count = math.nan
    if not 0 <= count < math.inf:
        raise ConfigError("not a number of predictions", got=repr(words), expected="a number such as 1e9 or 3000000")
    return count
