"""List what there is: runs, or the parts that can be chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from graftwork.errors import UnknownName, printable
from graftwork.units import show


@click.command("ls")
@click.argument("what", default="runs")
@click.option("--runs", default="runs", show_default=True, metavar="DIR", help="Where runs are kept.")
def command(what: str, runs: str) -> None:
    """WHAT is runs (the default) or builtin, or backbones, kinds, methods, metrics, meters, suites, objectives or
    tokenizers.
    """
    from graftwork import registry

    folders = ("backbones", "kinds", "methods", "metrics", "meters", "suites", "objectives", "tokenizers")
    parts = {name: getattr(registry, name) for name in folders}
    if what == "backbones":
        from graftwork.core.opening import backbone_names

        click.echo("\n".join(backbone_names()))
    elif what in parts:
        click.echo("\n".join(parts[what].names()))
    elif what == "builtin":
        from graftwork.core.task import builtin_names

        click.echo("\n".join(f"builtin:{name}" for name in builtin_names()))
    elif what == "runs":
        click.echo(printable("\n".join(_runs(Path(runs)))))
    else:
        raise UnknownName("thing to list", what, ["runs", *parts, "builtin"])


def _without_module(spec: dict[str, Any]) -> str:
    return "pre-training" if spec["question"].get("kind") == "pretraining" else "–"


def _runs(root: Path) -> list[str]:
    from graftwork.files import read_json
    from graftwork.run.store import RunStore

    if not root.is_dir():
        return [f"no runs in {root}"]
    lines = []
    for run_id in RunStore(root).ids():
        spec, result = read_json(root / run_id / "spec.json"), read_json(root / run_id / "result.json")
        module = root / run_id / "module" / "module.json"
        task = read_json(module)["task"]["name"] if module.is_file() else _without_module(spec)
        score = next((f"{name} {value:.4f}" for name, value in result["scores"].items()), result["status"])
        score = "trial" if "share" in spec["recipe"] and result["status"] == "ok" else score
        seconds = show(result["costs"].get("train_seconds", {}).get("value"), "s")
        lines.append(
            f"{run_id}  {task:<20} {spec['method']['name']:<13} seed {result['seed']:<3} {score:<24} {seconds}"
        )
    return lines or [f"no runs in {root}"]
