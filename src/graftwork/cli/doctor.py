"""Check this machine: what it has, what will fail or be slow, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from graftwork.cli.options import Command, json_option, option, print_facts
from graftwork.config import DEFAULT_BACKBONE
from graftwork.errors import ConfigError

CLOSING = {"fails": "what will fail", "slow": "what will be slow", "note": "notes"}


@click.command("doctor", cls=Command)
@option("--backbone", default=DEFAULT_BACKBONE, show_default=True, metavar="BACKBONE", help="Backbone to check.")
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder where runs would be saved.")
@option("--cache", metavar="DIR", help="Cache folder.  [default: $GRAFTWORK_CACHE or ~/.cache/graftwork]")
@option(
    "--seconds", default=0.3, show_default=True, metavar="S", help="Duration of each speed measurement; 0 skips them."
)
@json_option("the report as JSON")
def command(backbone: str, runs: str, cache: str | None, seconds: float, as_json: bool) -> int:
    """Check this machine before a run: processor, memory, disks, libraries and their speed.

    Nothing is created or downloaded. The exit code is 1 if something will fail.
    """
    if not 0 <= seconds < 3600:
        raise ConfigError("--seconds must be between 0 and 3600", got=str(seconds), expected="0 … 3600")
    from graftwork.doctor.examine import doctor

    told = doctor(backbone=backbone, runs=runs, cache=cache, seconds=seconds)
    print_facts(told, report_lines(told), as_json)
    return 0 if told["well"] else 1


def report_lines(told: Mapping[str, Any]) -> list[str]:
    """Format the checks for the terminal: findings group by group, then the problems."""
    lines: list[str] = []
    group = ""
    for name, one in told["checks"].items():
        said = [finding["says"] for finding in one["findings"] if finding["level"] == "ok"]
        said = said or [finding["says"] for finding in one["findings"][:1]]
        if said and one["group"] != group:
            group = one["group"]
            lines += ["", group] if lines else [group]
        lines += [f"  {title:<14}{says}" for title, says in zip([name] + [""] * len(said), said, strict=False)]
    for level, title in CLOSING.items():
        listed = list(_advice(told, level))
        lines += ["", title, *listed] if listed else []
    return lines if not told["well"] else [*lines, "", "Nothing will fail."]


def _advice(told: Mapping[str, Any], level: str) -> Iterator[str]:
    from graftwork.doctor.examine import advice

    for one in advice(told["checks"], level):
        yield f"  {', '.join(one['checks'])}: {one['says']}{': ' if one['why'] else ''}{one['why']}"
        if one["do"]:
            yield f"    do: {one['do']}"
