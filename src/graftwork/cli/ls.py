"""List runs, or the parts that can be chosen: backbones, methods, metrics, …."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.options import Command
from graftwork.errors import ConfigError, UnknownName, printable
from graftwork.units import percent, show

if TYPE_CHECKING:
    from graftwork.registry import Registry


@click.command("ls", cls=Command)
@click.argument("what", default="runs")
@click.argument("name", required=False)
@click.option("--runs", default="runs", show_default=True, metavar="DIR", help="Where runs are kept.")
def command(what: str, name: str | None, runs: str) -> None:
    """WHAT is runs (the default), backbones or builtin; or kinds, methods, metrics, meters, suites, objectives or
    tokenizers, each listed with a one-sentence description.

    With the NAME of a method, an objective or a kind: its settings, each with its default and its meaning.
    """
    from graftwork import registry

    folders = ("backbones", "kinds", "methods", "metrics", "meters", "suites", "objectives", "tokenizers")
    parts = {name: getattr(registry, name) for name in folders}
    if name is not None:
        if what not in parts or what == "backbones":
            raise ConfigError(f"{what} are listed without a name", got=name, do=f"graft ls {what}")
        click.echo(printable("\n".join(_part(name, what, parts[what]))))
    elif what == "backbones":
        from graftwork.pretrained.open_backbone import backbone_names

        click.echo("\n".join(backbone_names()))
    elif what in parts:
        width = max(map(len, parts[what].names()))
        lines = [f"{name:<{width}}  {parts[what].summary(name)}".rstrip() for name in parts[what].names()]
        click.echo(printable("\n".join(lines)))
    elif what == "builtin":
        from graftwork.core.task import builtin_names

        click.echo("\n".join(f"builtin:{name}" for name in builtin_names()))
    elif what == "runs":
        click.echo(printable("\n".join(_runs(Path(runs)))))
    else:
        raise UnknownName("thing to list", what, ["runs", *parts, "builtin"])


def _part(name: str, what: str, parts: Registry[Any]) -> list[str]:
    """Return the description of a part and its settings, one line each."""
    from graftwork.core.kind_settings import settings_of
    from graftwork.core.part_settings import described_settings

    settings = [(key, str(default), meaning) for key, default, meaning in described_settings(name, parts)]
    if what == "kinds":
        settings = [(one.name, one.unset, one.meaning) for one in settings_of(name).values()]
    lines = [f"{name}  {parts.summary(name)}".rstrip()]
    if not settings:
        return [*lines, "  nothing can be set"]
    keys, defaults = (max(len(one[place]) for one in settings) for place in (0, 1))
    lines += [f"  {key:<{keys}}  {default:<{defaults}}  {meaning}".rstrip() for key, default, meaning in settings]
    if what == "kinds":
        return [*lines, f"flags of the data, such as --{settings[0][0].replace('_', '-')}, and keys of a task file"]
    return [*lines, f"written {name}:{settings[0][0]}={settings[0][1]}:…; these are the defaults"]


def _without_module(spec: dict[str, Any]) -> str:
    return "pre-training" if spec["question"].get("kind") == "pretraining" else "–"


def _score(spec: dict[str, Any], result: dict[str, Any]) -> str:
    """Format a run's first score (a percentage; for a pre-training the plain value), or its status if it has none."""
    shown = "{:.4g}".format if spec["question"].get("kind") == "pretraining" else percent
    return next((f"{name} {shown(value)}" for name, value in result["scores"].items()), result["status"])


def _runs(root: Path) -> list[str]:
    from graftwork.io.files import read_json
    from graftwork.run.store import RunStore

    if not root.is_dir():
        return [f"no runs in {root}"]
    lines = []
    for run_id in RunStore(root).ids():
        spec, result = read_json(root / run_id / "spec.json"), read_json(root / run_id / "result.json")
        module = root / run_id / "module" / "module.json"
        task = read_json(module)["task"]["name"] if module.is_file() else _without_module(spec)
        seconds = show(result["costs"].get("train_seconds", {}).get("value"), "s")
        score = _score(spec, result)
        lines.append(
            f"{run_id}  {task:<20} {spec['method']['name']:<13} seed {result['seed']:<3} {score:<24} {seconds}"
        )
    return lines or [f"no runs in {root}"]
