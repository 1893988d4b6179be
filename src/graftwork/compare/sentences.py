"""A board in sentences: the verdicts and the price of the search; and the table cells that its pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.compare.leaderboard_data import ENOUGH_RUNS
from graftwork.compare.majority_floor import MAJORITY
from graftwork.compare.statistics import FEWEST_RUNS, NEGLIGIBLE
from graftwork.compare.stochastic_order import CLEAR
from graftwork.core.meter import GRADES, meaning_of
from graftwork.units import OF_ONE_CLASS, metric_title, percent, several, show

Board = Mapping[str, Any]
PRICE_TAG = (  # order of the costs on pages; costs of other packages' meters come last
    "train_seconds", "train_cpu_seconds", "total_seconds", "trained_parameters", "stored_parameters", "stored_bytes",
    "train_flops", "padding_flops", "predict_flops", "peak_memory_bytes", "peak_accelerator_bytes", "energy_joules",
    "co2e_grams", "money", "predict_latency_seconds", "predict_per_second",
)  # fmt: skip
_TOO_FEW_ROWS = "too few rows of the test split"
OF_A_SEARCH = {"wall_seconds": "time", "cpu_seconds": "processor time"}


def few_runs(board: Board) -> int | None:
    """Return the fewest runs of a scored row, failed ones included, if these are too few to rank; else None."""
    made = [row["n_seeds"] + row.get("n_failed", 0) for row in scored(board)]
    return min(made) if made and min(made) < ENOUGH_RUNS else None


def verdicts(board: Board) -> list[str]:
    """Return a sentence for every method against the best one, then for every method against the majority class."""
    rows = scored(board)
    if len(rows) < 2:
        return []
    best = rows[0]["method"]
    against_best = [pair for pair in board["differences"] if best in (pair["a"], pair["b"])]
    rest = [pair for pair in board["differences"] if MAJORITY in (pair["a"], pair["b"]) and pair not in against_best]
    lines = [sentence(pair) for pair in against_best]
    methods = [row["method"] for row in rows if row["method"] != MAJORITY]
    if len(rest) > 1 and all(verdict(board, method, MAJORITY) == "better" for method in methods):
        closest = min(rest, key=lambda pair: pair["delta"])
        return [*lines, f"every other method is better than majority too; the closest: {sentence(closest)}"]
    return lines + [sentence(pair) for pair in rest]


def verdict(board: Board, a: str, b: str) -> str | None:
    """Return the board's verdict on `a` against `b`; None if it does not compare them."""
    for pair in board["differences"]:
        if (pair["a"], pair["b"]) == (a, b):
            return str(pair["verdict"])
        if (pair["a"], pair["b"]) == (b, a):
            return {"better": "worse", "worse": "better"}.get(pair["verdict"], "cannot tell")
    return None


def sentence(pair: Mapping[str, Any]) -> str:
    """Return `full is better than lora by 0.8 [0.2, 1.5]`, or that it can't be told; with notes on failed runs and on
    a disagreement of almost stochastic order."""
    return "; ".join([_verdict(pair), *_failed(pair), *_other_opinion(pair)])


def _verdict(pair: Mapping[str, Any]) -> str:
    a, b = (pair["a"], pair["b"]) if pair["verdict"] != "worse" else (pair["b"], pair["a"])
    sign = -1 if pair["verdict"] == "worse" else 1
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    if pair["verdict"] != "cannot tell":
        return f"{a} is better than {b} by {percent(sign * pair['delta'])} [{percent(low)}, {percent(high)}]"
    start = f"{a} and {b}: cannot tell; "
    least = pair["smallest_detectable"]
    if least is None and pair["p"] is None:
        return start + (_TOO_FEW_ROWS if _enough_runs(pair) else "too few runs to know the spread over seeds")
    if least is None:
        alike = max(-pair["low"], pair["high"]) < NEGLIGIBLE
        return start + ("they score the same on any of these rows" if alike else _TOO_FEW_ROWS)
    more = abs(pair["delta"]) > least  # significant for this pair alone, but not after correction
    corrected = f"; {percent(abs(pair['delta']))} is not enough after correction for all pairs" if more else ""
    return (
        f"{start}the smallest difference these runs could have shown for this pair alone is {percent(least)}{corrected}"
    )


def _enough_runs(pair: Mapping[str, Any]) -> bool:
    """Return whether both rows of the pair have enough runs to know their spread."""
    return bool(min(pair.get("runs", (0,))) >= FEWEST_RUNS)


def _failed(pair: Mapping[str, Any]) -> list[str]:
    counts = zip((pair["a"], pair["b"]), pair.get("failed", (0, 0)), strict=True)
    told = [f"{count} of {method}" for method, count in counts if count]
    return [f"failed runs count as the majority class ({' and '.join(told)})"] if told else []


def _other_opinion(pair: Mapping[str, Any]) -> list[str]:
    """Return a note if almost stochastic order, which considers the runs alone, disagrees with the verdict."""
    order = pair.get("aso")
    if not order:
        return []
    told = f"(almost stochastic order, ε {order['epsilon_min']:.2f})"
    if pair["verdict"] == "cannot tell":
        clear = order["epsilon_min"] < CLEAR
        return [f"on these very examples the runs of {order['of']} are the better ones {told}"] if clear else []
    return [f"its runs alone do not show it {told}"] if order["epsilon_min"] >= 0.5 else []


def search_line(board: Board) -> str:
    """Return a line on the real cost of the whole comparison, with shared work counted once."""
    prices = {name: price for name, price in board["search_costs"].items() if price["value"] is not None}
    apart = prices.pop("separate_total_seconds", None)
    if not prices:
        return ""
    beside = board["environment"].get("runs_at_once", 1)
    told = f", {beside} at a time" if beside > 1 else ""
    line = f"Its runs{told}, shared work counted once: " + ", ".join(map(_spent, prices, prices.values()))
    return line + (f"; its runs one by one, nothing shared: {show(apart['value'], apart['unit'])}" if apart else "")


def _spent(name: str, price: Mapping[str, Any]) -> str:
    if price["unit"] == "runs":
        return several(round(price["value"]), "run")
    return f"{cost_name(name)} {show(price['value'], price['unit'])}"


def warnings(board: Board) -> list[str]:
    """Return the data report's warnings as text."""
    found = board["data_report"].get("warnings", [])
    return [str(item) for item in found] if isinstance(found, list | tuple) else [str(found)]


def title_of(board: Board, metric: str) -> str:
    """Return a metric's name, with the positive class if it scores one class only."""
    return metric_title(metric, board["task"].get("positive"))


def class_line(board: Board) -> str:
    """Return the positive class of f1, and how it was chosen; "" without f1, and for older boards."""
    told = board["data_report"].get("positive")
    shown = any(metric in row["scores"] for row in board["rows"] for metric in OF_ONE_CLASS)
    return f"f1 is of {told['label']!r}, {told['chosen']}" if told and shown else ""


def scored(board: Board) -> list[Mapping[str, Any]]:
    """Return the rows that have a score, best first."""
    return [row for row in board["rows"] if board["headline_metric"] in row["scores"]]


def points(row: Mapping[str, Any], metric: str) -> str:
    """Return `96.1 ± 0.3 [94.6, 97.4]`: mean, sd over seeds if there are several, 95 % interval."""
    if metric not in row["scores"]:
        return "–"
    score = row["scores"][metric]
    spread = f" ± {percent(score['sd'])}" if row["n_seeds"] > 1 else ""
    return f"{percent(score['mean'])}{spread} [{percent(score['low'])}, {percent(score['high'])}]"


def cost(row: Mapping[str, Any], name: str) -> str:
    """Format a cost for people; `–` if it isn't known."""
    price = row["costs"].get(name)
    return "–" if price is None else show(price["value"], price["unit"])


def cost_name(name: str) -> str:
    """Return the title of a cost, without the unit, which its value has: `train time` for `train_seconds`."""
    return OF_A_SEARCH.get(name) or meaning_of(name).title or name.replace("_", " ")


def price_tag(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every cost of these rows, in the order of a price tag."""
    found = dict.fromkeys(name for row in rows for name in row["costs"])
    return [name for name in PRICE_TAG if name in found] + [name for name in found if name not in PRICE_TAG]


def grades(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the grades that occur in these rows, the most reliable first."""
    found = {price["grade"] for row in rows for price in row["costs"].values()}
    return [grade for grade in GRADES if grade in found] + sorted(found - set(GRADES))
