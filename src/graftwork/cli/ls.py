"""List runs, or what can be chosen: backbones, methods, metrics, …."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import one_of, parts_listed
from graftwork.cli.options import Command, json_option, option, print_facts
from graftwork.errors import ConfigError, UnknownName
from graftwork.units import metric_title, percent, show

if TYPE_CHECKING:
    from graftwork.registry import Registry


PARTS = (
    "backbones", "kinds", "methods", "metrics", "meters", "suites", "objectives", "tokenizers", "compressions",
    "exporters",
)  # fmt: skip
SORTS = ("runs", *PARTS, "builtin")


@click.command("ls", cls=Command)
@click.argument("what", default="runs", shell_complete=one_of(*SORTS))
@click.argument("name", required=False, shell_complete=parts_listed)
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of runs.")
@json_option("the list, or the part with its settings, as JSON")
def command(what: str, name: str | None, runs: str, as_json: bool) -> None:
    """List runs, or parts that can be chosen.

    WHAT is runs (the default), backbones, builtin (data sets), kinds (of tasks), methods, metrics, meters (of costs),
    suites (benchmarks), objectives, tokenizers, compressions or exporters. With the NAME of a method, an objective,
    a kind or a compression: list its settings with their defaults.
    """
    content: Any
    if name is not None:
        parts = _parts()
        if what not in parts or what == "backbones":
            raise ConfigError(f"{what} have no settings to list", got=name, do=f"graft ls {what}")
        content = _part(name, what, parts[what])
        lines = _part_lines(content, what)
    elif what == "runs":
        content = _runs(Path(runs))
        lines = [_run_line(run) for run in content] or [f"no runs in {runs}"]
    else:
        content = _named(what)
        width = max(len(one["name"]) for one in content)
        lines = [f"{one['name']:<{width}}  {one.get('summary', '')}".rstrip() for one in content]
    print_facts(content, lines, as_json)


def _parts() -> dict[str, Registry[Any]]:
    from graftwork import registry

    return {name: getattr(registry, name) for name in PARTS}


def _named(what: str) -> list[dict[str, str]]:
    """Return the names of this sort, with their summaries where they have any. Raises `UnknownName`."""
    if what == "backbones":
        from graftwork.pretrained.open_backbone import backbone_names

        return [{"name": name} for name in backbone_names()]
    if what == "builtin":
        from graftwork.core.task import builtin_names

        return [{"name": f"builtin:{name}"} for name in builtin_names()]
    parts = _parts()
    if what not in parts:
        raise UnknownName("list", what, SORTS)
    return [{"name": name, "summary": parts[what].summary(name)} for name in parts[what].names()]


def _part(name: str, what: str, parts: Registry[Any]) -> dict[str, Any]:
    """Return a part's summary and settings."""
    from graftwork.core.kind_settings import settings_of
    from graftwork.core.part_settings import described_settings

    keys = ("name", "default", "meaning")
    listed = [dict(zip(keys, setting, strict=True)) for setting in described_settings(name, parts)]
    if what == "kinds":
        listed = [
            dict(zip(keys, (one.name, one.unset, one.meaning), strict=True)) for one in settings_of(name).values()
        ]
    return {"name": name, "summary": parts.summary(name), "settings": listed}


def _part_lines(part: Mapping[str, Any], what: str) -> list[str]:
    """Format a part for the terminal, one line per setting."""
    settings = [(one["name"], str(one["default"]), one["meaning"]) for one in part["settings"]]
    lines = [f"{part['name']}  {part['summary']}".rstrip()]
    if not settings:
        return [*lines, "  no settings"]
    keys, defaults = (max(len(one[place]) for one in settings) for place in (0, 1))
    lines += [f"  {key:<{keys}}  {default:<{defaults}}  {meaning}".rstrip() for key, default, meaning in settings]
    if what == "kinds":
        return [*lines, f"flags of the data, such as --{settings[0][0].replace('_', '-')}, and keys of a task file"]
    return [*lines, f"written as {part['name']}:{settings[0][0]}={settings[0][1]}:…; these are the defaults"]


def _runs(root: Path) -> list[dict[str, Any]]:
    """Return what is listed of every run; `task` is None for a run without a module."""
    from graftwork.io.files import read_json
    from graftwork.run.store import RunStore

    found = []
    for run_id in RunStore(root).ids() if root.is_dir() else []:
        spec, result = read_json(root / run_id / "spec.json"), read_json(root / run_id / "result.json")
        module = root / run_id / "module" / "module.json"
        found.append(
            {
                "run": run_id,
                "task": read_json(module)["task"]["name"] if module.is_file() else None,
                "kind": spec["question"].get("kind"),
                "method": spec["method"]["name"],
                "seed": result["seed"],
                "status": result["status"],
                "scores": result["scores"],
                "positive": spec["question"].get("positive"),
                "train_seconds": result["costs"].get("train_seconds", {}).get("value"),
            }
        )
    return found


def _run_line(run: Mapping[str, Any]) -> str:
    """Format a run with its first score (a percentage; for a pre-training the plain value), or else its status."""
    pretraining = run["kind"] == "pretraining"
    shown = "{:.4g}".format if pretraining else percent
    task = run["task"] or ("pre-training" if pretraining else "–")
    score = next(
        (f"{metric_title(name, run['positive'])} {shown(value)}" for name, value in run["scores"].items()),
        run["status"],
    )
    seconds = show(run["train_seconds"], "s")
    return f"{run['run']}  {task:<20} {run['method']:<13} seed {run['seed']:<3} {score:<24} {seconds}"
