"""Manage a bank of task modules on one backbone: add, list, check, diff, roll back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import paths, tasks_of_bank
from graftwork.cli.exchange import export_task, import_task, version_of
from graftwork.cli.in_bank import add_to_bank
from graftwork.cli.options import json_option, option, print_facts, print_json
from graftwork.compare.plain_table import table
from graftwork.errors import GraftworkError, IncompatibleModule, printable
from graftwork.registry import kinds
from graftwork.units import metric_title, percent, several, show

if TYPE_CHECKING:
    from graftwork.bank.bank_folder import BankFolder
    from graftwork.bank.integrity import BankFinding
    from graftwork.bank.task_version import TaskEntry


@click.group("bank")
def command() -> None:
    """Manage a bank: a folder of named task modules on one frozen backbone.

    Each change is atomic. Older versions of a task are kept.
    """


@command.command("create")
@click.argument("bank", shell_complete=paths)
@option("--backbone", metavar="BACKBONE", help="Backbone: minilm, hf:FOLDER, ….  [default: that of the first task]")
@option(
    "--precision",
    default="auto",
    metavar="auto|bf16|fp32",
    help="Precision of the backbone.  [default: that of the first task]",
)
@json_option("bank.json")
def create(bank: str, backbone: str | None, precision: str, as_json: bool) -> None:
    """Create an empty bank in the folder BANK."""
    from graftwork.bank.bank import Bank

    made = Bank.create(bank, backbone=backbone, precision=precision)
    if as_json:
        print_json({"bank": str(made.path)} | asdict(_folder(bank).state()))
        return
    named = f"backbone {made.card.id}, revision {made.card.revision[:16]}" if made.card else "no backbone yet"
    click.echo(f"created {made.path}, {named}\nAdd tasks:   graft bank add {shlex.quote(str(made.path))} MODULE")


@command.command("add")
@click.argument("bank", shell_complete=paths)
@click.argument("module", shell_complete=paths)
@option("--task", metavar="NAME", help="Name of the task in the bank.  [default: that of the module's task]")
@option("--board", metavar="DIR", help="Store the leaderboard of this comparison with the task.")
@json_option("the task and its version as JSON")
def add(bank: str, module: str, task: str | None, board: str | None, as_json: bool) -> None:
    """Add MODULE, a task module or a run's folder, to BANK.

    If the bank has a task of that name, this is its next version. The copy is tested before it is used.
    """
    from graftwork.bank.bank import Bank

    done = add_to_bank(Bank.open(bank), Path(module), task, Path(board) if board else None)
    print_facts(done.as_json, done.lines, as_json)


@command.command("remove")
@click.argument("bank", shell_complete=paths)
@click.argument("task", shell_complete=tasks_of_bank)
@json_option("the removed task as JSON")
def remove(bank: str, task: str, as_json: bool) -> None:
    """Remove TASK and all its versions from BANK. The ledger, which lists all changes, keeps its name."""
    _folder(bank).remove(task)
    print_facts({"bank": bank, "removed": task}, [f"removed {task} from {bank}"], as_json)


@command.command("rename")
@click.argument("bank", shell_complete=paths)
@click.argument("task", shell_complete=tasks_of_bank)
@click.argument("name")
@json_option("the old and the new name as JSON")
def rename(bank: str, task: str, name: str, as_json: bool) -> None:
    """Rename TASK of BANK to NAME."""
    _folder(bank).rename(task, name)
    print_facts({"bank": bank, "renamed": task, "to": name}, [f"renamed {task} to {name}"], as_json)


@command.command("rollback")
@click.argument("bank", shell_complete=paths)
@click.argument("task", shell_complete=tasks_of_bank)
@option("--to", type=int, metavar="N", help="Version to use.  [default: the previous one]")
@json_option("the task and its version as JSON")
def rollback(bank: str, task: str, to: int | None, as_json: bool) -> None:
    """Make an older version of TASK the current one. Newer versions are kept."""
    from graftwork.bank.bank import Bank

    opened = Bank.open(bank)
    before = opened.tasks[task].version if task in opened.tasks else None
    entry = opened.rollback(task, to)
    print_facts(
        {"bank": bank} | _as_json(entry) | {"before": before},
        [f"{task}: version {entry.version} is the current one now; version {before} is kept"],
        as_json,
    )


@command.command("ls")
@click.argument("bank", shell_complete=paths)
@json_option("the tasks as JSON")
def ls(bank: str, as_json: bool) -> None:
    """List the tasks of BANK: version, kind, method, score, parameters, bytes."""
    folder = _folder(bank)
    state = folder.state()
    listed, rows, problems = [], [], []
    for name, placed in sorted(state.tasks.items()):
        try:
            entry = folder.entry(name, state=state)
            listed.append(_as_json(entry))
            rows.append(_row(entry))
        except GraftworkError as error:  # the other tasks are still listed
            listed.append({"name": name, "version": placed.version, "problem": error.message})
            rows.append((name, str(placed.version), "damaged", "–", "–", "–", show(placed.bytes, "bytes")))
            problems += [error.message, ""]
    if as_json:
        print_json(listed)
        return
    header = ("task", "version", "kind", "method", "test", "trained", "bytes")
    columns = list(zip(header, *rows, strict=True))
    lines = [*table(columns, left=(0, 2, 3, 4), ruled=()), "", *problems] if rows else []
    total = show(sum(placed.bytes for placed in state.tasks.values()), "bytes")
    lines.append(f"{several(len(rows), 'task')}, {total}, in {bank}")
    click.echo(printable("\n".join(lines)))


@command.command("show")
@click.argument("bank", shell_complete=paths)
@click.argument("task", required=False, shell_complete=tasks_of_bank)
@json_option("bank.json (with TASK its module.json)")
def show_command(bank: str, task: str | None, as_json: bool) -> None:
    """Show BANK, or one TASK of it. TASK@2 is version 2."""
    folder = _folder(bank)
    if task is None:
        lines = _bank_lines(folder)
        content: Any = {"bank": bank} | asdict(folder.state())
    else:
        entry = _entry(folder, task)
        content = _as_json(entry) | {"module": entry.description, "versions": folder.versions(entry.name)}
        lines = _task_lines(entry, folder.versions(entry.name))
    print_facts(content, lines, as_json)


@command.command("check")
@click.argument("bank", shell_complete=paths)
@json_option("the result for each version as JSON")
def check(bank: str, as_json: bool) -> None:
    """Check BANK: its ledger, the hash of every file and the self-test of every version.

    The self-test compares logits, or the probabilities of texts, with those that were stored with the version. The
    exit code is 2 if anything differs.
    """
    from graftwork.bank.bank import Bank

    found, opened = [], Bank.open(bank)
    for finding in opened.examine():
        found.append(finding)
        if not as_json:
            click.echo(printable(_finding_line(finding, opened.tasks.get(finding.task))))
    if as_json:
        print_json([asdict(finding) for finding in found])
    bad = sum(bool(finding.problem) for finding in found)
    if bad:
        raise IncompatibleModule(
            f"{bad} of {len(found)} parts of this bank are damaged",
            where=bank,
            do="repair each as printed, go back to an older version (graft bank rollback), or remove the task",
        )
    if not as_json:
        click.echo(f"no damage: the ledger and {several(len(found) - 1, 'version')} are intact")


@command.command("diff")
@click.argument("first", shell_complete=paths)
@click.argument("second", shell_complete=paths)
@click.argument("third", required=False)
@json_option("the differences as JSON")
def diff(first: str, second: str, third: str | None, as_json: bool) -> None:
    """Show the differences between two banks (FIRST SECOND), or between two tasks of one bank (FIRST is the bank,
    SECOND and THIRD are tasks or versions: TASK@2).

    TASK without a version is its current one.
    """
    from graftwork.bank.version_difference import of_banks, of_tasks

    if third is None:
        content = of_banks(_folder(first), _folder(second))
        lines = _bank_difference_lines(content)
    else:
        folder = _folder(first)
        content = of_tasks(_entry(folder, second), _entry(folder, third))
        lines = [_difference_line(name, pair) for name, pair in content.items()]
    print_facts(content, lines or ["no difference"], as_json)


command.add_command(export_task)
command.add_command(import_task)
for _part in command.commands.values():  # show the whole summary in the list of commands; click would truncate it
    _part.short_help = " ".join(str(_part.help).partition("\n\n")[0].split())


def _folder(bank: str) -> BankFolder:
    from graftwork.bank.bank_folder import BankFolder

    return BankFolder(Path(bank))


def _entry(folder: BankFolder, words: str) -> TaskEntry:
    """Return the entry of `tickets` (the current version) or `tickets@2`."""
    return folder.entry(*version_of(words))


def _as_json(entry: TaskEntry) -> dict[str, Any]:
    """Return the entry as JSON, without the full description."""
    return entry.as_json() | {"inputs": entry.description["roles"], "added": entry.added, "digest": entry.digest}


def _row(entry: TaskEntry) -> tuple[str, ...]:
    told = entry.description
    titled = {metric_title(name, told["task"].get("positive")): value for name, value in told["scores"].items()}
    score = next((f"{name} {percent(value)}" for name, value in titled.items()), "–")
    trained = show(told.get("trained_parameters"), "parameters")
    kind, method = told["task"]["kind"], told["method"]["name"]
    return entry.name, str(entry.version), kind, method, score, trained, show(entry.bytes, "bytes")


def _bank_lines(folder: BankFolder) -> list[str]:
    state = folder.state()
    backbone = state.backbone
    changes = folder.ledger(state).changes
    named = f"{backbone['id']}, revision {backbone['revision'][:16]}" if backbone else "that of the first task"
    size = show(sum(placed.bytes for placed in state.tasks.values()), "bytes")
    return [
        f"bank       {folder.root}",
        f"backbone   {named}{f', in {state.precision}' if state.precision else ''}",
        f"tasks      {len(state.tasks):,}, {size}: {', '.join(sorted(state.tasks)[:12])}".rstrip(": "),
        f"ledger     {several(len(changes), 'change')}, the last at {changes[-1].time}",
    ]


def _task_lines(entry: TaskEntry, versions: Sequence[int]) -> list[str]:
    from graftwork.cli.show import module_lines

    kept = ", ".join(map(str, versions))
    return [
        f"in bank    {entry.name}, version {entry.version} of {kept}, added {entry.added}",
        f"board      {'leaderboard.json of its comparison' if entry.has_board else 'none'}",
        *module_lines(entry.folder),
    ]


def _finding_line(finding: BankFinding, entry: TaskEntry | None) -> str:
    from graftwork.core.kind import OwnOutputs

    own = entry is not None and isinstance(kinds.get(entry.description["task"]["kind"]), OwnOutputs)
    numbers = "outputs" if own else "logits"
    what = f"{finding.task}@{finding.version}" if finding.task else "ledger"
    if finding.problem:
        return f"{what:<24}  FAILS: {finding.problem}"
    if finding.difference is None:
        return f"{what:<24}  intact"
    apart = f"{numbers} differ by at most {finding.difference:.2g}"
    return f"{what:<24}  {apart if finding.difference else f'bit-identical {numbers}'}"


def _bank_difference_lines(content: Mapping[str, Any]) -> list[str]:
    lines = [_difference_line(name, content[name]) for name in ("backbone", "precision") if name in content]
    lines += [f"- {name}   only in the first" for name in content["removed"]]
    lines += [f"+ {name}   only in the second" for name in content["added"]]
    for name, differing in content["changed"].items():
        lines += [f"~ {name}", *(f"  {_difference_line(aspect, pair)}" for aspect, pair in differing.items())]
    return lines


def _difference_line(aspect: str, pair: Sequence[Any]) -> str:
    one, other = pair
    if aspect in ("labels", "inputs"):
        gone, come = [item for item in one if item not in other], [item for item in other if item not in one]
        said = [f"{sign} {', '.join(items)}" for sign, items in (("-", gone), ("+", come)) if items]
        return f"{aspect:<20}{'; '.join(said) or 'in another order'}"
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        told = ", ".join(f"{key} {_value(aspect, one.get(key))} → {_value(aspect, other.get(key))}" for key in keys)
        return f"{aspect:<20}{told}"
    return f"{aspect:<20}{_value(aspect, one)} → {_value(aspect, other)}"


def _value(aspect: str, value: Any) -> str:
    if aspect in ("bytes", "trained_parameters"):
        return show(value, "bytes" if aspect == "bytes" else "parameters")
    if aspect == "scores" and value is not None:
        return percent(value)
    return "–" if value is None else str(value)[:16] if aspect in ("delta", "files") else str(value)
