"""A price at scale in words: the answer in at most six lines, then the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.compare.plain_table import WIDTH, side_by_side, titled_list
from graftwork.core.meter import GRADES
from graftwork.documents import document
from graftwork.units import duration, percent, show, with_prefix

Content = Mapping[str, Any]
WAY_NAMES: Mapping[str, str] = {"in_batches": "in full batches", "one_at_a_time": "one at a time"}
TITLES: Mapping[str, str] = {"seconds": "time", "energy": "energy", "co2e": "CO2e", "money": "money"}
CROSSINGS_LISTED = 12  # below the tables
_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def price_lines(content: Content) -> list[str]:
    """Return the answer, a table for each way to predict, the crossings (numbers of predictions from which another row
    is the cheaper one), and what was left out."""
    lines = answer_lines(content)
    for way, name in WAY_NAMES.items():
        lines += ["", f"{number(content['predictions'])} predictions {name}"]
        for block in side_by_side(table_columns(content, way), WIDTH):
            lines += [*block, ""]
        lines.pop()
    for way, name in WAY_NAMES.items():
        crossings = crossing_sentences(content, way)
        lines += titled_list(f"Where they cross, {name}", crossings[:CROSSINGS_LISTED], WIDTH)
        if len(crossings) > CROSSINGS_LISTED:
            lines.append(f"  and {len(crossings) - CROSSINGS_LISTED} more: see --json or --report")
    lines += titled_list("Left out", [f"{one['name']}: {one['reason']}" for one in content["left_out"]], WIDTH)
    return [*lines, *titled_list("How to read it", legend(content), WIDTH)]


def answer_lines(content: Content) -> list[str]:
    """Return the answer in at most six lines."""
    lines = [_cheapest(content, way) for way in WAY_NAMES]
    if told := _choice(content):
        lines.append(told)
    lines += [*_different_tasks(content), *_nearest(content)][: 5 - len(lines)]
    return [*lines, *_unpriced(content)]


def number(value: float) -> str:
    """Format a number of predictions: `3.1 million`, `45,000`, `12`."""
    for factor, word in _LARGE:
        if value >= factor:
            return f"{value / factor:,.3g} {word}" if value < 1e15 else f"{value:.3g}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def sentence(one: Mapping[str, Any]) -> str:
    """Return `above 3.1 million predictions adapter is the cheaper one (than full)`, and where the bands overlap."""
    if one["at"] is None:
        told = f"{one['below']} is cheaper than {one['above']} for any number of predictions"
    elif one["at"] == 0:
        told = f"{one['above']} is the cheaper one (than {one['below']}) from the first prediction on"
    else:
        told = f"above {number(one['at'])} predictions {one['above']} is the cheaper one (than {one['below']})"
    if one["open_from"] is None:
        return told
    if one["open_to"] is None:
        start = f"from {number(one['open_from'])} on" if one["open_from"] else "for any number"
        return f"{told}; {start} the bands overlap"
    return f"{told}; from {number(one['open_from'])} to {number(one['open_to'])} the bands overlap"


def crossing_sentences(content: Content, way: str) -> list[str]:
    """Return a sentence for each pair of rows that cross, by money or time, the earliest first."""
    found = _crossings(content, way)
    return [sentence(one) for one in sorted(found, key=lambda one: float(one["at"]))]


def table_columns(content: Content, way: str) -> list[list[str]]:
    """Return the table of one way to predict as columns, each with its heading first; the cheapest row is on top."""
    by, rows = content["by"], sorted(content["rows"], key=lambda row: _order(row, way, content["by"]))

    def column(head: str, quantity: str, part: str) -> list[str]:
        return [head, *(_shown(row[way][quantity][part]) for row in rows)]

    columns = [
        ["row", *(row["name"] for row in rows)],
        [_metric(content), *("–" if row["score"] is None else percent(row["score"]) for row in rows)],
        ["stored", *(show(row["stored_bytes"], "bytes") for row in rows)],
        column("training", by, "training"),
    ]
    if content["asked"]["tasks"] > 1 or any(row[way][by]["pretraining"]["value"] for row in rows):
        columns.append(column("pre-training", by, "pretraining"))
    if by == "money":
        columns.append(column("storage", by, "storage"))
    columns.append(column("each", "seconds", "each"))
    columns += [column(title, quantity, "total") for quantity, title in TITLES.items()]
    columns.append(["band", *(band(row[way][by]["total"]) for row in rows)])
    if content["asked"]["per"]:
        columns.append(["machines", *(_digits(row[way]["machines"]) for row in rows)])
    return columns


def band(amount: Mapping[str, Any]) -> str:
    """Return `1.2 EUR to 2.1 EUR`, or a dash."""
    if amount["value"] is None:
        return "–"
    return f"{show(amount['low'], amount['unit'])} to {show(amount['high'], amount['unit'])}"


def legend(content: Content) -> list[str]:
    """Return what the columns and the bands mean."""
    factors = ", ".join(f"{grade} {content['bands'][grade]:g}" for grade in GRADES)
    lines = [
        "training is of all runs that were made of a row; time, energy, CO2e and money are of training, storage and "
        "predictions together",
        "the time in which a machine waits for requests is not priced",
        f"a band is from the value divided by a factor to the value times it, by how it is known: {factors}",
    ]
    if content["asked"]["per"]:
        lines.append("machines: how many machines the predictions keep busy, on average")
    spent = content["search_seconds"]
    if spent is not None:
        lines.append(f"the whole search took {duration(spent)}, whichever row is taken: it moves no crossing")
    return lines + ([f"prices: {content['prices']}"] if content["prices"] else [])


def _cheapest(content: Content, way: str) -> str:
    """Return the sentence on the cheapest row that scores above the majority class."""
    by = content["by"]
    rows = _candidates(content)
    known = [row for row in rows if row[way][by]["total"]["value"] is not None]
    start = f"{number(content['predictions'])} predictions {WAY_NAMES[way]}"
    if not known:
        return f"{start}: not known, because their speed was not measured"
    best = min(known, key=lambda row: float(row[way][by]["total"]["value"]))
    amount = best[way][by]["total"]
    verb = "costs least," if len(rows) > 1 else "costs"
    return f"{start}: {best['name']} {verb} {_shown(amount)} ({band(amount)}){_scored(best)}"


def _choice(content: Content) -> str:
    """Return the sentence on the cost of the board's choice in full batches; empty if it is the cheapest or unknown."""
    by, rows = content["by"], {row["name"]: row for row in _candidates(content)}
    costs = {name: row["in_batches"][by]["total"] for name, row in rows.items()}
    known = {name: cost["value"] for name, cost in costs.items() if cost["value"] is not None}
    chosen = content["chosen"]
    if chosen not in known or known[chosen] <= min(known.values()):
        return ""
    least = min(known.values())
    times = f", {_digits(known[chosen] / least)} times as much" if least else ""
    return f"{chosen}, the board's choice, costs {_shown(costs[chosen])}{times}{_scored(rows[chosen])}"


def _different_tasks(content: Content) -> list[str]:
    """Return a line of warning where the rows are of several tasks."""
    names = sorted({row["task"] for row in content["rows"]} - {""})
    return [f"The rows are of different tasks: {', '.join(names)}. None replaces another"] if len(names) > 1 else []


def _nearest(content: Content) -> list[str]:
    """Return, for each way to predict, the crossing nearest to what was asked; one of the board's choice before all."""
    asked = max(content["predictions"], 1.0)
    names = {row["name"] for row in _candidates(content)}

    def far(one: Mapping[str, Any]) -> tuple[bool, float]:
        ratio = max(one["at"], 1.0) / asked
        return content["chosen"] not in (one["below"], one["above"]), max(ratio, 1 / ratio)

    lines = []
    for way, name in WAY_NAMES.items():
        found = [one for one in _crossings(content, way) if one["at"] and {one["below"], one["above"]} <= names]
        lines += [f"{_capital(name)}, {sentence(one)}" for one in sorted(found, key=far)[:1]]
    return lines


def _unpriced(content: Content) -> list[str]:
    """Return a line on what has no price; none where all parts have one."""
    money = all(row["in_batches"]["money"]["each"]["value"] is None for row in content["rows"])
    co2e = all(row["in_batches"]["co2e"]["each"]["value"] is None for row in content["rows"])
    blank = " and ".join(name for name, missing in (("money", money), ("CO2e", co2e)) if missing)
    told = [f"{blank} unknown: give --prices FILE, a copy of {document('prices.example.toml')}"] if blank else []
    if not money and all(row["in_batches"]["money"]["storage"]["value"] is None for row in content["rows"]):
        told.append("storage not priced: the price list has no per_gb_month")
    return [_capital("; ".join(told))] if told else []


def _crossings(content: Content, way: str) -> list[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = content["crossings"]
    return [one for one in found if (one["way"], one["quantity"]) == (way, content["by"]) and one["at"] is not None]


def _candidates(content: Content) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = list(content["rows"])
    return [row for row in rows if row["above_floor"]] or rows


def _order(row: Mapping[str, Any], way: str, by: str) -> tuple[bool, float]:
    value = row[way][by]["total"]["value"]
    return value is None, value or 0.0


def _metric(content: Content) -> str:
    metrics = {row["metric"] for row in content["rows"]}
    return next(iter(metrics)) if len(metrics) == 1 else "score"


def _scored(row: Mapping[str, Any]) -> str:
    return "" if row["score"] is None else f", {row['metric']} {percent(row['score'])}"


def _shown(amount: Mapping[str, Any]) -> str:
    return show(amount["value"], amount["unit"])


def _digits(value: float | None) -> str:
    return "–" if value is None else with_prefix(value, "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
