"""Shell completion of values: files, names of parts, runs, tasks of a bank. Imports nothing that is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from graftwork import registry
from graftwork.errors import GraftworkError
from graftwork.io.files import read_json

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
PARTS: Mapping[str, registry.Registry[Any]] = {  # metavar -> registry of the parts that are its values
    "METHOD": registry.methods,
    "KIND": registry.kinds,
    "METRIC": registry.metrics,
    "OBJECTIVE": registry.objectives,
    "TOKENIZER": registry.tokenizers,
    "EXPORTER": registry.exporters,
}
PATHS = {  # metavar -> what the shell completes
    "FILE": "file",
    "PATH": "file",
    "BACKBONE": "file",
    "MODULE": "file",
    "DIR": "dir",
}
LIST = ",…"  # ends the metavar of values that are separated by commas


def by_metavar(metavar: str | None, incomplete: str) -> list[CompletionItem]:
    """Complete a value by the name that `--help` gives it: FILE, DIR, METHOD, `METRIC,…`, `auto|bf16|fp32`."""
    metavar = metavar or ""
    name = metavar.removesuffix(LIST)
    if metavar in PATHS:
        return [CompletionItem(incomplete, type=PATHS[metavar])]
    known = PARTS[name].names() if name in PARTS else name.split("|") if "|" in name else []
    before, comma, last = incomplete.rpartition(",") if metavar.endswith(LIST) else ("", "", incomplete)
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _begun(known, last)]


def one_of(*words: str) -> Completer:
    """Return a completer of these words."""
    return lambda ctx, param, incomplete: _begun(words, incomplete)


def paths(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete files and folders."""
    return [CompletionItem(incomplete, type="file")]


def suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a suite."""
    return _begun(registry.suites.names(), incomplete)


def parts_listed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the NAME of `graft ls WHAT NAME`."""
    parts = getattr(registry, str(ctx.params.get("what")), None)
    return _begun(parts.names(), incomplete) if isinstance(parts, registry.Registry) else []


def runs_kept(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the ids of the runs in the folder of `--runs`; where none begins like this, files and folders."""
    results = Path(ctx.params.get("runs") or "runs").glob("*/result.json")
    return _begun(sorted(path.parent.name for path in results), incomplete) or paths(ctx, param, incomplete)


def tasks_of_bank(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of the tasks in BANK; without a bank, or with a damaged one, files and folders."""
    bank = ctx.params.get("bank") or ctx.params.get("module")
    try:
        exported = Path(str(bank)) / "graftwork_bank.json"
        told = read_json(exported)["export"] if exported.is_file() else read_json(Path(str(bank)) / "bank.json")
        tasks = sorted(told["tasks"])
    except (GraftworkError, KeyError, TypeError):
        tasks = []
    return _begun(tasks, incomplete) or paths(ctx, param, incomplete)


def _begun(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
