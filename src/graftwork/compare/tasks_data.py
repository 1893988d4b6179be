"""A board over several tasks from their boards: mean, mean rank, ratios, differences, costs.

Only methods with a score on every counted task are summarised, so that all means are over the same tasks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from graftwork.compare.advice import advice
from graftwork.compare.leaderboard_data import ENOUGH_RUNS
from graftwork.compare.sentences import few_runs, title_of, verdict
from graftwork.compare.statistics import DECIMALS, LEVEL, Spread, holm
from graftwork.core.meter import meaning_of
from graftwork.units import percent

FORMAT = 1
FEWEST_TASKS = 3  # with fewer, no statement about other tasks is made
AGAINST = "full"  # default reference of the ratios
BY_TASK = ("status", "scores", "counted", "failed", "costs")  # keys of a row by task; costs by cost, then by task
SUMMED = ("mean", "mean_rank", "geometric_mean")  # summaries over all tasks, as keys of a row

Board = Mapping[str, Any]  # the content of a `leaderboard.json`
Scores = NDArray[np.float64]


def over_tasks(boards: Mapping[str, Board], failed: Mapping[str, str], against: str | None = None) -> dict[str, Any]:
    """Return the content of `tasks.json`, without paths, from the board of each task and the errors of failed tasks.

    A board in which no method finished also counts as failed. It is a file format: keys are only ever added.
    """
    empty = {name: "no method finished" for name, board in boards.items() if not _means(board)}
    failed, counted = {**failed, **empty}, [name for name in boards if name not in empty]
    rows = _rows({name: boards[name] for name in counted})
    whole = [row for row in rows if counted and len(row["scores"]) == len(counted)]
    table = np.array([[row["counted"][name] for name in counted] for row in whole], np.float64)  # (M, T)
    reference = _reference([row["method"] for row in whole], table, against)
    _sum_up(whole, table, reference)
    rows.sort(key=lambda row: (row["mean"] is None, -(row["mean"] or 0.0), -len(row["scores"]), row["method"]))
    winners = {key: _winners(whole, key) for key in SUMMED}
    return {
        "format": FORMAT,
        "tasks": [*(_task(name, boards[name]) for name in counted), *(_lost(name, failed[name]) for name in failed)],
        "counted": counted,
        "against": reference,
        "rows": rows,
        "winners": winners,
        "differences": _differences([row["method"] for row in whole], table, [boards[name] for name in counted]),
        "search_costs": _added(boards),
        "notes": _notes(boards, counted, failed, rows, winners, against, reference),
    }


def _means(board: Board) -> dict[str, float]:
    """Return the mean over all runs of every method with a score; failed runs count as the majority class."""
    metric = board["headline_metric"]
    return {row["method"]: _mean(row, metric) for row in board["rows"] if metric in row["scores"]}


def _mean(row: Mapping[str, Any], metric: str) -> float:
    counted = row.get("counted")  # boards of older versions have none
    return round(float(row["scores"][metric]["mean"] if counted is None else counted), DECIMALS)


def _rows(boards: Mapping[str, Board]) -> list[dict[str, Any]]:
    """Return a row per method on any board, without summaries."""
    found: dict[str, dict[str, Any]] = {}
    for name, board in boards.items():
        metric, means = board["headline_metric"], _means(board)
        for row in board["rows"]:
            blank: dict[str, Any] = {"best_on": [], **{key: {} for key in BY_TASK}, **dict.fromkeys(SUMMED)}
            entry = found.setdefault(row["method"], {"method": row["method"]} | blank)
            entry["status"][name] = row["status"]
            if metric not in row["scores"]:
                continue
            entry["scores"][name] = row["scores"][metric] | {"n_seeds": row["n_seeds"]}
            entry["counted"][name] = means[row["method"]]
            entry["failed"] |= {name: row["n_failed"]} if row.get("n_failed") else {}
            entry["best_on"] += [name] if means[row["method"]] == max(means.values()) else []
            for cost, told in row["costs"].items():
                if meaning_of(cost).summed and told["value"] is not None:
                    price = entry["costs"].setdefault(cost, {"unit": told["unit"], "by_task": {}})
                    price["by_task"][name] = told["value"]
    for entry in found.values():
        for price in entry["costs"].values():
            price["sum"] = sum(price["by_task"].values())
    return list(found.values())


def _reference(methods: Sequence[str], table: Scores, against: str | None) -> str | None:
    """Return the reference of the ratios: the named method, else `full`, else the one with the highest mean."""
    for name in (against, AGAINST):
        if name in methods:
            return name
    return methods[int(table.mean(axis=1).argmax())] if len(methods) else None


def _sum_up(rows: Sequence[dict[str, Any]], table: Scores, reference: str | None) -> None:
    """Fill in the mean, the mean rank (1 is best, ties are averaged) and the geometric mean of ratios to the
    reference."""
    if not rows:
        return
    ranks = rankdata(-table, axis=0).mean(axis=1)
    base = table[[row["method"] for row in rows].index(reference or "")]
    for row, scores, rank in zip(rows, table, ranks, strict=True):
        row["mean"], row["mean_rank"] = round(float(scores.mean()), DECIMALS), float(rank)
        if min(scores.min(), base.min()) > 0:
            row["geometric_mean"] = round(float(np.exp(np.log(scores / base).mean())), DECIMALS)


def _winners(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Return the best methods by a summary; several if they are equal."""
    known = {row["method"]: row[key] for row in rows if row[key] is not None}
    best = (min if key == "mean_rank" else max)(known.values(), default=None)
    return [method for method, value in known.items() if value == best]


def _differences(methods: Sequence[str], table: Scores, boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Return the difference of every pair of summarised methods, the higher mean as `a`."""
    order = np.argsort(-table.mean(axis=1), kind="stable").tolist() if len(methods) else []
    pairs = [
        _difference(methods[i], methods[j], table[i] - table[j], boards) for i, j in itertools.combinations(order, 2)
    ]
    corrected = iter(holm([pair["p"] for pair in pairs if pair["p"] is not None]))
    for pair in pairs:
        pair["p_holm"] = None if pair["p"] is None else next(corrected)
        told = pair["p_holm"] is not None and pair["p_holm"] < LEVEL
        pair["verdict"] = "cannot tell" if not told else "better" if pair["delta"] > 0 else "worse"
    return pairs


def _difference(a: str, b: str, deltas: Scores, boards: Sequence[Board]) -> dict[str, Any]:
    """Return `a` minus `b` with two intervals.

    One is over tasks like these, by Student's t. The other is on these tasks, over seeds and examples: tasks are
    independent, so the squares of their half-widths add up; it is unknown if a board has too few runs to know the
    spread over seeds.
    """
    tasks, delta = len(deltas), float(deltas.mean())
    own = [next(pair for pair in board["differences"] if {pair["a"], pair["b"]} == {a, b}) for board in boards]
    blank = dict.fromkeys(("low", "high", "p", "low_here", "high_here"))
    found: dict[str, Any] = {"a": a, "b": b, "delta": delta, **blank}
    if all(pair["p"] is not None for pair in own):
        here = math.sqrt(sum(((pair["high"] - pair["low"]) / 2) ** 2 for pair in own)) / tasks
        found |= {"low_here": delta - here, "high_here": delta + here}
    if tasks >= FEWEST_TASKS:
        spread = Spread(float(deltas.std(ddof=1)) / math.sqrt(tasks), tasks - 1.0)
        reach = spread.quantile * spread.error
        found |= {"low": delta - reach, "high": delta + reach, "p": spread.p_value(delta)}
    verdicts = [verdict(board, a, b) for board in boards]
    return found | {
        "tasks_above": int((deltas > 0).sum()),
        "tasks_below": int((deltas < 0).sum()),
        "tasks_better": verdicts.count("better"),
        "tasks_worse": verdicts.count("worse"),
    }


def _task(name: str, board: Board) -> dict[str, Any]:
    best = max(_means(board).items(), key=lambda item: item[1])
    return {
        "name": name,
        "status": "ok",
        "error": "",
        "metric": board["headline_metric"],
        "positive": board["task"].get("positive"),
        "kind": board["task"].get("kind"),
        "rows": dict(board["task"].get("rows", {})),
        "backbone": board["backbone"]["id"] if board["backbone"] else None,
        "best": {"method": best[0], "mean": best[1]},
        "chosen": (board.get("decision") or {}).get("chosen"),
        "few_runs": few_runs(board),
        "answer": " ".join(advice(board)),
    }


def _lost(name: str, why: str) -> dict[str, Any]:
    return {"name": name, "status": "failed", "error": why}


def _added(boards: Mapping[str, Board]) -> dict[str, Any]:
    """Return the real cost of all comparisons: the sum over boards, in each of which shared work counts once."""
    total: dict[str, Any] = {}
    for board in boards.values():
        for name, cost in board["search_costs"].items():
            if cost["value"] is not None:
                entry = total.setdefault(name, cost | {"value": 0.0})
                entry["value"] += cost["value"]
    return total


def _notes(
    boards: Mapping[str, Board],
    counted: Sequence[str],
    failed: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    winners: Mapping[str, Sequence[str]],
    against: str | None,
    reference: str | None,
) -> list[str]:
    """Return the caveats on the summary."""
    notes = [f"{name} failed: {why.splitlines()[0]}" for name, why in failed.items()]
    if failed:
        notes.append(f"Every summary is over {len(counted)} of {len(counted) + len(failed)} tasks.")
    few = [found for name in counted if (found := few_runs(boards[name])) is not None]
    if few:
        notes.append(
            f"Not enough runs on {len(few)} of {len(counted)} tasks: {min(few)} of a method, where {ENOUGH_RUNS} show "
            "a ranking and 10 support a claim."
        )
    lacking = [row for row in rows if row["mean"] is None]
    if lacking:
        told = "; ".join(f"{row['method']} {_lacks(row, len(counted))}" for row in lacking)
        notes.append(f"Left out of the means, because a score is missing on some task: {told}.")
    failing = [f"{row['method']} on {', '.join(row['failed'])}" for row in rows if row["failed"]]
    if failing:
        told = "; ".join(failing)
        notes.append(f"Runs failed ({told}): in summaries and verdicts each counts as the majority class's answers.")
    if lacking:
        notes.append("A search leaves out what can't change its choice; --exhaustive runs every method on every task.")
    if len({tuple(names) for names in winners.values() if names}) > 1:
        named = {"mean": "mean", "mean_rank": "mean rank", "geometric_mean": f"ratio to {reference}"}
        told = ", ".join(f"by {named[key]} {' and '.join(names)}" for key, names in winners.items() if names)
        notes.append(f"The summaries disagree on who is first: {told}.")
    metrics = dict.fromkeys(title_of(boards[name], boards[name]["headline_metric"]) for name in counted)
    if len(metrics) > 1:
        notes.append(f"The mean adds up different metrics ({', '.join(metrics)}); ranks and ratios do not.")
    if any(row["mean"] is not None and row["geometric_mean"] is None for row in rows):
        notes.append("A method with a score of 0 or below on some task has no ratio, and none is to such a method.")
    if against is not None and against != reference:
        notes.append(f"{against} has no score on every task: ratios are to {reference}.")
    backbones = dict.fromkeys(boards[name]["backbone"]["id"] for name in counted if boards[name]["backbone"])
    if len(backbones) > 1:
        notes.append(f"The tasks ran on different backbones: {', '.join(backbones)}.")
    if 0 < len(counted) < FEWEST_TASKS:
        notes.append(
            f"With fewer than {FEWEST_TASKS} tasks nothing can be said about other tasks: there is no verdict."
        )
    return notes


def _lacks(row: Mapping[str, Any], tasks: int) -> str:
    """Return `(2 of 3, mean there 81.2)`."""
    means = [score["mean"] for score in row["scores"].values()]
    return f"({len(means)} of {tasks}" + (f", mean there {percent(sum(means) / len(means))})" if means else ")")
