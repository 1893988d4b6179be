"""Print results/ as the tables of the README: `python benchmarks/robust/table.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"
PARTS = {"kills": "Killed at any point", "full_disk": "Full disks", "hostile": "Hostile files"}
Result = Mapping[str, Any]


def rows_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def number(value: Any) -> str:
    """Format a value; a list is counted, and a missing value is a dash."""
    if value is None:
        return "–"
    if isinstance(value, list):
        return number(len(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def limits(result: Result) -> list[Sequence[str]]:
    """Return a row per bar: its subject, the bar, the measurement."""
    bar, measured = result.get("bar"), result.get("measured")
    if not isinstance(bar, Mapping):
        return [["bar", number(bar), result["status"]]]
    found = measured if isinstance(measured, Mapping) else {}
    return [[name.replace("_", " "), number(most), number(_of_bar(name, found))] for name, most in bar.items()]


def _of_bar(name: str, found: Result) -> Any:
    """Return the measurement under the bar's name, or without `_at_least`, `_at_most` and its first words."""
    plain = name.removesuffix("_at_least").removesuffix("_at_most")
    near = (key for key in found if plain.endswith(f"_{key}"))
    return found[name] if name in found else found.get(plain, found.get(next(near, "")))


def counts(result: Result) -> str:
    """Format the other counts: whole numbers without a bar."""
    bar, measured = result.get("bar"), result.get("measured")
    barred = bar if isinstance(bar, Mapping) else {}
    found = measured if isinstance(measured, Mapping) else {}
    told = [
        f"{name.replace('_', ' ')} {number(value)}"
        for name, value in found.items()
        if name not in barred and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return ", ".join(told)


def _origin(result: Result) -> str:
    commit = result.get("commit") or {}
    known = commit.get("hash") if isinstance(commit, Mapping) else commit
    told = f"Commit {str(known)[:8]}" if known else "No commit known"
    time = result.get("environment", {}).get("time")
    return f"{told}, {time[:10]}." if time else f"{told}."


def table() -> str:
    """Format all results: first whether each part passes, then part by part."""
    results = {name: read_json(RESULTS / f"{name}.json") for name in PARTS if (RESULTS / f"{name}.json").is_file()}
    parts = [rows_of(["part", "status"], [[PARTS[name], found["status"]] for name, found in results.items()])]
    for name, found in results.items():
        lines = [f"### {PARTS[name]}", found["question"], rows_of(["", "bar", "measured"], limits(found))]
        also = counts(found)
        lines += [f"Also: {also}."] if also else []
        parts.append("\n\n".join([*lines, _origin(found)]))
    return "\n\n".join(parts) if results else ""


if __name__ == "__main__":
    print(table())
