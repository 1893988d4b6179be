"""Show a run or a task module: its task, method, scores and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import runs_kept
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.cli.verify import named_folder
from graftwork.errors import ConfigError, StorageError, printable
from graftwork.io.files import read_json
from graftwork.units import named_scores, several, show

if TYPE_CHECKING:
    from graftwork.core.run import RunResult


@click.command("show", cls=Command)
@click.argument("what", shell_complete=runs_kept)
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of runs.")
@option("--profile", is_flag=True, help="Also print how long each phase of the run took.")
@json_option("spec.json and result.json (of a module module.json) as one JSON object")
def command(what: str, runs: str, profile: bool, as_json: bool) -> None:
    """Show WHAT: a run (its id, a prefix of it, or its folder) or the folder of a task module."""
    folder = named_folder(what, runs, "run or module")
    is_run = (folder / "result.json").is_file()
    if not is_run and not (folder / "module.json").is_file():
        bank, exported = ((folder / name).is_file() for name in ("bank.json", "graftwork.json"))
        raise StorageError(
            "neither a run nor a task module",
            where=str(folder),
            expected="result.json or module.json",
            do=f"graft bank show {folder}" if bank else "see README.md in this exported folder" if exported else "",
        )
    if profile and not is_run:
        raise ConfigError(
            "--profile is for a run, and this is a task module", where=str(folder), do="name the run's folder"
        )
    if as_json:
        names = ("spec.json", "result.json") if is_run else ("module.json",)
        content: dict[str, Any] = {}
        for name in names:
            content |= read_json(folder / name)
        print_json(content)
        return
    lines = run_lines(folder) if is_run else module_lines(folder)
    click.echo(printable("\n".join(lines + (profile_lines(folder) if is_run and profile else []))))


def profile_lines(folder: Path) -> list[str]:
    """Format the phases of a run with their seconds and shares, and their sum beside the run's wall time."""
    result = read_json(folder / "result.json")
    seconds, wall = result.get("profile", {}), result["spent"]["wall_seconds"]
    if not seconds:
        of_text = _is_pretraining(read_json(folder / "spec.json"))
        why = "this is a pre-training" if of_text else "the run is older than this record"
        return ["where the time went", f"  not recorded: {why}"]
    rows = {**seconds, "in all": sum(seconds.values())}
    return [f"where the time went, of {show(wall, 's')}"] + [
        f"  {name:<11}{show(value, 's'):>9}" + (f"{100 * value / wall:>7.1f} %" if wall else "")
        for name, value in rows.items()
    ]


def run_lines(folder: Path, found: RunResult | None = None) -> list[str]:
    """Format a run for the terminal; `found` replaces the stored result, e.g. one priced by another price list."""
    spec = read_json(folder / "spec.json")
    result = read_json(folder / "result.json") if found is None else asdict(found)
    if _is_pretraining(spec):
        return pretraining_lines(folder)
    positive = spec["question"].get("positive")
    method = spec["method"]
    recipe = spec["recipe"] or {}
    if recipe.get("learning_rate") is not None:
        method = method | {"learning_rate": recipe["learning_rate"]}  # the run's rate, not the method's default
    settings = ", ".join(f"{key} {value}" for key, value in method.items() if key not in ("name", "version"))
    lines = [f"run        {result['id']}  ({result['status']})", *_task_lines(folder / "module" / "module.json")]
    lines.append(f"method     {method['name']}{f' ({settings})' if settings else ''}, seed {result['seed']}")
    if "template" in result["facts"]:
        lines.append(f"prompt     {_prompt(result['facts'])}")
    if result["error"]:
        lines.append(f"error      {result['error']}")
    if "epochs" in recipe:
        lines.append(
            f"recipe     {several(recipe['epochs'], 'epoch')} of {recipe['batch_size']} rows a step, "
            f"{recipe['steps']} steps{_part(recipe)}"
        )
    if result["validation"]:
        lines.append(f"validation {named_scores(result['validation'], positive=positive)}")
    if result["scores"]:
        told = named_scores(result["scores"], result.get("interval"), positive=positive)
        lines.append(f"test       {told}{_of_one(result)}")
    lines.append("price tag")
    return [*lines, *cost_lines(result["costs"]), *_prices_lines(result)]


def _prompt(facts: Mapping[str, Any]) -> str:
    """Describe the prompt of a run: its template, its shots, and its length."""
    lost = facts["shots_dropped"]
    dropped = f" ({lost} more did not fit into the context)" if lost else ""
    return (
        f"template {facts['template']['name']!r}, {several(len(facts['shots']), 'shot')}{dropped}; "
        f"{facts['prompt_tokens']:,.0f} tokens, of which {facts['tokens_read_once']:,} are read once for all examples"
    )


def _is_pretraining(spec: Mapping[str, Any]) -> bool:
    return bool(spec["question"].get("kind") == "pretraining")


def _of_one(result: dict[str, Any]) -> str:
    """Return a note on the interval; empty for older runs that stored none."""
    return "  (one run; in brackets 95 % over other examples)" if result.get("interval") else ""


def _task_lines(module: Path) -> list[str]:
    """Format a run's task, rows and backbone; empty for a run without a module."""
    if not module.is_file():
        return []
    found = read_json(module)
    task, backbone, rows = found["task"], found["backbone"], found.get("data", {}).get("rows", {})
    labels = f", {len(task['labels'])} labels" if task["labels"] else ""
    told = "; ".join(f"{name} {count:,}" for name, count in rows.items())
    lines = [f"task       {task['name']} ({task['kind']}{labels})"]
    lines += [f"rows       {told}"] if told else []
    return lines + ([f"backbone   {backbone['id']}"] if backbone else [])


def pretraining_lines(folder: Path, found: RunResult | None = None) -> list[str]:
    """Format a pre-training for the terminal; `found` replaces the stored result."""
    spec = read_json(folder / "spec.json")
    result = read_json(folder / "result.json") if found is None else asdict(found)
    method, facts, costs = spec["method"], result["facts"], result["costs"]
    options = ", ".join(f"{key} {value}" for key, value in method.items() if key not in ("name", "version", "size"))
    lines = [f"run        {result['id']}  ({result['status']})"]
    lines.append(f"objective  {method['name']}{f' ({options})' if options else ''}, seed {result['seed']}")
    text = facts["text"]["train"]
    lines.append(
        f"text       {text['documents']:,} documents, {text['tokens']:,} tokens, {show(text['bytes'], 'bytes')}"
    )
    if "steps" in facts:
        lines.append(
            f"trained    {facts['steps']:,} steps, {facts['tokens_seen']:,} tokens, {facts['passes']:.3g} passes"
        )
    for split, after in facts.get("after", {}).items():
        before = facts["before"][split]
        lines.append(
            f"{split:<11}perplexity {before['perplexity']:.4g} before, {after['perplexity']:.4g} after; "
            f"{after['bits_per_byte']:.4f} bits per byte"
        )
    if "after" not in facts:
        lines += [f"validation {name} {value:.4f}" for name, value in result["scores"].items()]
    lines += [f"stopped    {facts['stopped']}"] if "stopped" in facts else []
    lines += [f"note       {note}" for note in facts.get("notes", [])]
    lines.append("price tag")
    told = {name: cost for name, cost in costs.items() if not name.startswith("predict_")}  # those are of a task
    return [*lines, *cost_lines(told), *_prices_lines(result), *_shared_lines(costs)]


def _shared_lines(costs: dict[str, Any]) -> list[str]:
    """Format the cost of a pre-training per task, amortised over several numbers of tasks."""
    from graftwork.ship.amortised_cost import COUNTS, amortise

    lines: list[str] = []
    for tasks in COUNTS[1:]:
        named = {
            name: show(cost["value"], cost["unit"])
            for name, cost in amortise(costs, tasks).items()
            if cost["value"] is not None
        }
        words = ", ".join(named[name] for name in ("total_seconds", "energy_joules", "money") if name in named)
        lines.append(f"for each of {tasks:,} tasks {words}")
    return lines


def _part(recipe: dict[str, Any]) -> str:
    return f", {100 * recipe['part']:g} % of a whole run" if "part" in recipe else ""


def module_lines(folder: Path) -> list[str]:
    """Format a task module for the terminal."""
    from graftwork.module.module_display import direction_of

    module = read_json(folder / "module.json")
    task, backbone = module["task"], module["backbone"]
    answers = f", {len(task['labels'])} labels: {', '.join(task['labels'][:12])}" if task["labels"] else ""
    test = f"{named_scores(module['scores'], positive=task.get('positive'))}  (one run: {module['run']})"
    if "imported" in module:
        test = f"unknown: imported from {module['imported']['format']}"
    return [
        f"module     {folder}",
        f"task       {task['name']} ({task['kind']}{answers}{direction_of(task)})",
        f"inputs     {', '.join(module['roles'])}",
        f"backbone   {backbone['id'] + ', revision ' + backbone['revision'][:16] if backbone else 'none'}",
        f"method     {module['method']['name']}",
        f"test       {test}",
        "price tag" if module.get("costs") else "price tag  unknown",
        *cost_lines(module.get("costs", {})),
    ]


def cost_lines(costs: dict[str, Any]) -> list[str]:
    """Format a price tag, one cost per line; those that are unknown share the last."""
    known = {name: cost for name, cost in costs.items() if cost["value"] is not None}
    lines = [f"  {name:<26}{show(cost['value'], cost['unit']):>14}   {cost['grade']}" for name, cost in known.items()]
    unknown = [name for name in costs if name not in known]
    return [*lines, f"  unknown: {', '.join(unknown)}"] if unknown else lines


def _prices_lines(result: dict[str, Any]) -> list[str]:
    """Return the line with the price list behind money and CO2e, if there was one."""
    prices = result.get("environment", {}).get("prices")
    return [f"prices     {prices}"] if prices else []
