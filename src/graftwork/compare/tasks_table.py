"""The board over several tasks as plain text: at most 100 columns, split into blocks of tasks if necessary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from graftwork.compare.plain_table import WIDTH, print_lines, side_by_side, table, titled_list, width_of
from graftwork.compare.sentences import cost_name
from graftwork.units import percent, several, show

TASK = 16  # characters of a task's name in its column header, at most
Content = Mapping[str, Any]
Row = Mapping[str, Any]


def print_tasks(content: Content, console: Console) -> None:
    """Print the summary, the scores on each task, the verdicts, the notes, and the total cost."""
    width = width_of(console)
    lines = [_title(content)]
    for block in (summary_lines(content), *score_blocks(content, width)):
        lines += ["", *block]
    for heading, items in sections(content):
        lines += titled_list(heading, items, width)
    print_lines(lines, console)


def _title(content: Content) -> str:
    counted, all_tasks = len(content["counted"]), len(content["tasks"])
    of = f"{counted} of " if counted < all_tasks else ""
    few = ": not enough runs" if _few(content) else ""
    return f"{content['name']} · {of}{several(all_tasks, 'task')}, points{few}"


def _few(content: Content) -> bool:
    return any(task.get("few_runs") is not None for task in content["tasks"])


def headings(content: Content) -> list[str]:
    """Return the headings of the summary's columns."""
    return ["method", "tasks", "mean", "mean rank", f"ratio to {content['against']}", "first on", "stored", "training"]


def summary_cells(row: Row) -> list[str]:
    """Return a method's row of the summary, in the order of `headings`."""
    ratio = row["geometric_mean"]
    return [
        row["method"],
        str(len(row["scores"])),
        "–" if row["mean"] is None else percent(row["mean"]),
        "–" if row["mean_rank"] is None else f"{row['mean_rank']:.2f}",
        "–" if ratio is None else f"{ratio:.3f}",
        str(len(row["best_on"])),
        price(row, "stored_bytes"),
        price(row, "train_seconds"),
    ]


def price(row: Row, cost: str, task: str | None = None) -> str:
    """Return a method's cost on one task, or its sum over all tasks with a score."""
    found = row["costs"].get(cost)
    value = None if found is None else found["sum"] if task is None else found["by_task"].get(task)
    return "–" if value is None else show(value, found["unit"])


def score(row: Row, task: str) -> str:
    """Return `81.2 ± 0.3`, or the method's status on the task."""
    if task in row["scores"]:
        found = row["scores"][task]
        return percent(found["mean"]) + (f" ± {percent(found['sd'])}" if found["n_seeds"] > 1 else "")
    return str(row["status"].get(task, "–")).replace("_", " ")


def summary_lines(content: Content) -> list[str]:
    """Return a header, a rule, and a line per method."""
    return table(list(zip(headings(content), *map(summary_cells, content["rows"]), strict=True)))


def score_blocks(content: Content, width: int = WIDTH) -> Iterator[list[str]]:
    """Return tables of the scores on every task, each with as many tasks side by side as fit the width."""
    rows, names = content["rows"], [row["method"] for row in content["rows"]]
    columns = [["method", *names]]
    for task in content["counted"]:
        head = task if len(task) <= TASK else f"{task[: TASK - 1]}…"
        columns.append([head, *(score(row, task) for row in rows)])
    return side_by_side(columns, width)


def sections(content: Content) -> list[tuple[str, list[str]]]:
    """Return the titled sections below the tables."""
    return [
        ("Verdicts (not enough runs)" if _few(content) else "Verdicts", verdicts(content)),
        ("Enough", enough_lines(content)),
        ("Notes", list(content["notes"])),
        ("Price of it all", [line] if (line := spent_line(content)) else []),
    ]


def verdicts(content: Content) -> list[str]:
    """Return a sentence for every method against the one with the highest mean, then against the reference."""
    first = next((row["method"] for row in content["rows"] if row["mean"] is not None), None)
    listed = [pair for pair in content["differences"] if first in (pair["a"], pair["b"])]
    listed += [p for p in content["differences"] if content["against"] in (p["a"], p["b"]) and p not in listed]
    return [sentence(pair) for pair in listed]


def sentence(pair: Mapping[str, Any]) -> str:
    """Return `full over lora: 0.8, cannot tell (corrected for all pairs); of this pair alone over such tasks
    [0.2, 1.5], on these …`."""
    over, here = (
        "unknown" if pair[low] is None else f"[{percent(pair[low])}, {percent(pair[high])}]"
        for low, high in (("low", "high"), ("low_here", "high_here"))
    )
    shown = f"shown on {pair['tasks_better']} and {pair['tasks_worse']}"
    above = f"above on {pair['tasks_above']} and below on {pair['tasks_below']} tasks"
    verdict = pair["verdict"] + ("" if pair["low"] is None else " (corrected for all pairs)")
    return (
        f"{pair['a']} over {pair['b']}: {percent(pair['delta'])}, {verdict}; of this pair alone over such tasks "
        f"{over}, on these {here}; {above}, {shown}"
    )


def enough_lines(content: Content) -> list[str]:
    """Return a line for each method that was chosen, with its tasks."""
    found: dict[str, list[str]] = {}
    for task in content["tasks"]:
        if task["status"] == "ok" and task["chosen"] is not None:
            found.setdefault(task["chosen"], []).append(task["name"])
    return sorted(f"Use {method} on {len(tasks)}: {', '.join(tasks)}" for method, tasks in found.items())


def spent_line(content: Content) -> str:
    """Return a line on the real cost of all comparisons together."""
    prices = content["search_costs"]
    told = [
        f"{cost_name(name)} {show(found['value'], found['unit'])}"
        for name, found in prices.items()
        if name not in ("runs", "separate_total_seconds")
    ]
    if "runs" in prices:
        told.insert(0, f"{prices['runs']['value']:,.0f} runs")
    apart = prices.get("separate_total_seconds")
    if not told:
        return ""
    line = "All boards, shared work counted once: " + ", ".join(told)
    return line + (f"; one by one, nothing shared: {show(apart['value'], apart['unit'])}" if apart else "")
