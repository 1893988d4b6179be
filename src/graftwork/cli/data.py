"""Report problems in a data set before training: duplicates, leaks, conflicts, rare classes."""

from __future__ import annotations

from pathlib import Path

import click

from graftwork.cli.options import Command, json_option, option, print_facts, task_from_flags, task_options


@click.command("data", cls=Command)
@task_options
@option(
    "--backbone",
    metavar="BACKBONE",
    help="Count lengths in tokens of this backbone, and texts that it would truncate.  [default: words]",
)
@option("--html", metavar="FILE", help="Write the report as a web page.")
@json_option("the whole report as JSON")
def command(data: str, backbone: str | None, html: str | None, as_json: bool, **flags: str | None) -> None:
    """Describe DATA and its splits, and report problems that make scores misleading.

    DATA, a file or a folder of splits, and the data options are those of graft compare. Nothing is trained or changed.
    """
    task, _ = task_from_flags(data, flags)
    from graftwork.run.data_report import data_report
    from graftwork.run.data_report_lines import report_lines

    found = data_report(task, backbone=backbone)
    if html is not None:
        from graftwork.compare.leaderboard_report import write_data_report

        write_data_report(found, Path(html))
    print_facts(found, [*report_lines(found), *([] if html is None else [f"Written: {html}"])], as_json)
