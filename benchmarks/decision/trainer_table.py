"""Print the results of `beside_trainer.py` as Markdown: each data set, the means, and wins and losses."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy.stats import t as student

from graftwork.units import show

LEVEL = 0.95
NOTHING = "Not measured yet."

Row = Mapping[str, Any]
Scores = dict[str, dict[str, Row]]  # data set -> system -> its row


def tables(content: Mapping[str, Any], ours: str) -> str:
    """Format the means of every budget, then wins and losses, then each data set."""
    rows = content["rows"]
    budgets = sorted({row["budget_seconds"] for row in rows})
    parts = [of_budget([row for row in rows if row["budget_seconds"] == budget], budget, ours) for budget in budgets]
    return "\n\n".join(parts) or NOTHING


def of_budget(rows: Sequence[Row], budget: float, ours: str) -> str:
    """Format the part of one budget. Means and differences are over the data sets where every system has a score."""
    systems = sorted({row["system"] for row in rows}, key=lambda name: (name != ours, name))
    sets: Scores = {}
    for row in rows:
        sets.setdefault(row["set"], {})[row["system"]] = row
    whole = {name: own for name, own in sets.items() if all(scored(own.get(system)) for system in systems)}
    lines = [f"### {show(budget, 's')} a set", "", *means(rows, whole, systems), ""]
    others = [system for system in systems if system != ours]
    if ours in systems and others and whole:
        pairs = [(own[ours]["accuracy"], {other: own[other]["accuracy"] for other in others}) for own in whole.values()]
        lines += [f"- {against(f'`{other}`', [(own, found[other]) for own, found in pairs])}" for other in others]
        if len(others) > 1:
            lines.append(
                f"- {against('the better of the others', [(own, max(found.values())) for own, found in pairs])}"
            )
        lines.append("")
    return "\n".join([*lines, *each(sets, systems), *failures(rows)]).rstrip()


def scored(row: Row | None) -> bool:
    """Return whether the row has a score."""
    return row is not None and row["status"] == "ok"


def means(rows: Sequence[Row], whole: Scores, systems: Sequence[str]) -> list[str]:
    """Format a line per system."""
    table = [["system", "sets", "mean accuracy", "mean of the budget used", "budget overrun"]]
    for system in systems:
        own = [row for row in rows if row["system"] == system]
        accuracies = [found[system]["accuracy"] for found in whole.values()]
        used = f"{100 * statistics.fmean(row['share'] for row in own):.0f} %"
        overrun = sum(row["overrun"] for row in own)
        mean = f"{100 * statistics.fmean(accuracies):.1f}" if accuracies else ""
        table.append([f"`{system}`", str(len(accuracies)), mean, used, f"{overrun} of {len(own)}"])
    return markdown(table)


def against(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Format on how many sets ours is better, and the mean difference with a Student's t interval over the sets."""
    gains = [100 * (own - other) for own, other in pairs]
    above, equal = sum(gain > 0 for gain in gains), sum(gain == 0 for gain in gains)
    said = f"graft is above {name} on {above} of {len(gains)} sets{f', equal on {equal}' if equal else ''}; "
    mean = statistics.fmean(gains)
    if len(gains) < 2:
        return f"{said}{mean:+.1f} points"
    half = student.ppf((1 + LEVEL) / 2, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    return (
        f"{said}{mean:+.1f} points on average ({mean - half:+.1f} to {mean + half:+.1f}, 95 % by Student's t over sets)"
    )


def each(sets: Scores, systems: Sequence[str]) -> list[str]:
    """Format a line per data set: accuracy and choice of every system."""
    table = [["set", "rows", "classes", "words", *(f"`{system}`" for system in systems), "chosen by ours"]]
    for name, own in sets.items():
        any_row = next(iter(own.values()))
        facts = [f"{any_row['rows']['train']:,}", str(any_row["classes"]), f"{any_row['words']:.0f}"]
        shown = [cell(own.get(system)) for system in systems]
        chosen = own.get(systems[0], {}).get("chosen", "")
        table.append([name, *facts, *shown, f"`{chosen}`" if chosen else ""])
    return markdown(table)


def cell(row: Row | None) -> str:
    """Format accuracy in per cent, with a star if the budget was overrun."""
    if row is None:
        return ""
    return f"{100 * row['accuracy']:.1f}{'*' if row['overrun'] else ''}" if scored(row) else "failed"


def failures(rows: Iterable[Row]) -> list[str]:
    """Format the failures, one line each."""
    failed = [row for row in rows if not scored(row)]
    told = [f"- {row['set']}, `{row['system']}`: {row['error'].strip().splitlines()[-1]}" for row in failed]
    return ["", *told] if told else []


def markdown(table: Sequence[Sequence[str]]) -> list[str]:
    """Format a Markdown table; the first row is the header."""
    header, *rows = ["| " + " | ".join(cells) + " |" for cells in table]
    return [header, "| " + " | ".join("---" for _ in table[0]) + " |", *rows]
