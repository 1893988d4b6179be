"""Train one method on one task and keep its task module."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from graftwork.cli.options import progress_bar, run_options, task_from_flags, task_options, use_threads
from graftwork.errors import printable
from graftwork.files import finite


@click.command("train")
@task_options
@click.option("--method", required=True, metavar="NAME", help="The method, e.g. adapter or lora:rank=16.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides initialisation and data order.")
@click.option("--learning-rate", type=float, help="Peak of the schedule.  [default: the method's]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@run_options
def command(
    data: str,
    method: str,
    seed: int,
    learning_rate: float | None,
    as_json: bool,
    backbone: str | None,
    epochs: int | None,
    runs: str,
    precision: str,
    threads: int | None,
    prices: str | None,
    **flags: str | None,
) -> None:
    """Fit METHOD to DATA once; prints the scores, the price tag and where the task module stands."""
    task, settings = task_from_flags(data, flags)
    use_threads(threads)
    from graftwork.run.train import train

    with progress_bar() as progress:
        run = train(
            task,
            method=method,
            backbone=backbone or settings.get("backbone", "minilm"),
            seed=seed,
            epochs=epochs if epochs is not None else settings.get("epochs"),
            learning_rate=learning_rate,
            runs=runs,
            precision=precision,
            prices=prices,
            progress=progress,
        )
    if as_json:
        found = {"module": str(run.folder / "module"), "reused": run.reused, "warnings": run.warnings}
        click.echo(json.dumps(finite(asdict(run.result) | found), indent=1, ensure_ascii=False))
        return
    from graftwork.cli.show import run_lines

    lines = run_lines(run.folder)
    if run.warnings:
        lines += ["about the data", *(f"  {warning}" for warning in run.warnings)]
    click.echo(printable("\n".join(lines)))
    if run.reused:
        click.echo("This run was there already and cost nothing.")
    click.echo(f'Task module: {run.folder / "module"}\nUse it:      graft predict {run.folder / "module"} "…"')
