"""Advice on a board in a few lines: the method to use, a cheaper one, what is not settled, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.compare.averaged_runs import average_lines
from graftwork.compare.frontier import DEFAULT_COST
from graftwork.compare.leaderboard_data import ENOUGH_RUNS
from graftwork.compare.majority_floor import MAJORITY, floor_name
from graftwork.compare.sentences import Board, cost, few_runs, scored, title_of
from graftwork.compare.shipped_lines import ship_lines
from graftwork.run.data_report import UNREADABLE, unreadable
from graftwork.units import error_rate, percent, several, show

_MOST_RIVALS = 2  # rivals that are named
NOTHING_KNOWN = 0.5  # width of an interval, a fraction, above which it is uninformative
CHEAP_SHARE = 0.005  # share of a price below which another price is next to nothing


def advice(board: Board) -> list[str]:
    """Return at most six lines of about 100 characters (with short names); one line if the board chose no method.

    Further lines are added where they apply: first, that the backbone can't encode the texts; and after the line on the
    chosen method, that it is below the majority class on test, the average of its runs, the module to ship, and each
    metric that ranks another method higher.
    """
    rows = {row["method"]: row for row in scored(board)}
    share = board.get("data_report", {}).get("unknown_token_shares", {}).get("train", 0.0)
    if board["backbone"] and share >= UNREADABLE:
        return [f"{unreadable(board['backbone']['id'], share)}.", *_choice(board, rows)]
    return _choice(board, rows)


def _choice(board: Board, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines on the chosen method; `rows` has the rows with scores, by method."""
    if not rows:
        return ["No method finished."]
    decision = board.get("decision")
    if not decision or decision["chosen"] not in rows:
        best = scored(board)[0]
        return [
            f"The highest mean on test is {best['method']}, {_score(best, board)}; nothing was chosen on validation."
        ]
    chosen = rows[decision["chosen"]]
    lines = [_use(chosen, board), *_below_floor(chosen, rows, board)]
    lines += [*average_lines(board), *ship_lines(board), *_disagreeing(board, rows)]
    if decision["cheaper"] and decision["cheaper"]["method"] in rows:
        lines.append(_cheaper(decision, rows[decision["cheaper"]["method"]], chosen))
    return [*lines, *_settling_lines(decision), *_known_by(decision)]


def heading(board: Board) -> str:
    """Return `tickets · accuracy, points · minilm, fp32 on cpu (AMD EPYC, 2 cores) · 1 to 3 runs of a method`."""
    surroundings = board.get("environment", {})
    backbone = board["backbone"]["id"] if board["backbone"] else "no backbone"
    computed = " on ".join(filter(None, (surroundings.get("precision"), surroundings.get("device"))))
    machine = surroundings.get("accelerator") if surroundings.get("device") == "cuda" else surroundings.get("processor")
    where = f", {computed}{f' ({machine})' if machine else ''}" if computed else ""
    counts = [row["n_seeds"] for row in board["rows"] if row["n_seeds"]]
    most = max(counts, default=0)
    runs = f"{min(counts)} to {most} runs" if len(set(counts)) > 1 else several(most, "run")
    runs += " of a method"
    if few_runs(board) is not None:
        runs += f" ({ENOUGH_RUNS} show a ranking, 10 support a claim)"
    name = board["task"].get("name", "task")
    return f"{name} · {title_of(board, board['headline_metric'])}, points · {backbone}{where} · {runs}"


def chosen_row(board: Board) -> Mapping[str, Any] | None:
    """Return the row of the chosen method; None if none was chosen."""
    decision = board.get("decision")
    return next((row for row in scored(board) if decision and row["method"] == decision["chosen"]), None)


def _use(row: Mapping[str, Any], board: Board) -> str:
    """Return `Use lora: accuracy 94.0 on test (89.9 … 97.4), 76.8 k parameters, 19 s to train.`"""
    parameters = row["costs"].get("trained_parameters", {}).get("value")
    told = f"{show(parameters, 'parameters')} parameters, " if parameters else ""
    return f"Use {row['method']}: {_score(row, board)}, {told}{cost(row, DEFAULT_COST)} to train."


def _score(row: Mapping[str, Any], board: Board) -> str:
    score = row["scores"][board["headline_metric"]]
    low, high = percent(score["low"]), percent(score["high"])
    metric = board["headline_metric"]
    rate = error_rate(metric, score["mean"])
    return f"{title_of(board, metric)} {percent(score['mean'])}{rate} on test ({low} … {high})"


def _below_floor(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], board: Board) -> list[str]:
    """Return a warning if the chosen method is below the majority class on test, whatever it was on validation."""
    if not row["below_majority"]:
        return []
    floor = rows.get(MAJORITY)
    score = f" ({percent(floor['scores'][board['headline_metric']]['mean'])})" if floor else ""
    return [f"On test it is below {floor_name(board['task'])}{score}: label more rows before you use it."]


def _disagreeing(board: Board, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return `By bleu adapter is ahead: 9.7 to 5.4 (1.2 … 7.4 points).` for each metric that ranks another higher."""
    told = []
    for one in board.get("disagreements", ()):
        ahead, behind = (percent(rows[one[name]]["scores"][one["metric"]]["mean"]) for name in ("method", "chosen"))
        by = f"{_points(one['low'])} … {_points(one['high'])} points"
        told.append(f"By {title_of(board, one['metric'])} {one['method']} is ahead: {ahead} to {behind} ({by}).")
    return told


def _cheaper(decision: Mapping[str, Any], row: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Return a line on the price and the score of the best cheaper method relative to the chosen one."""
    mean, low, high = decision["cheaper"]["gain"]
    prices = [one["costs"].get(DEFAULT_COST, {}).get("value") for one in (row, chosen)]
    share = _share(*prices) if all(price is not None for price in prices) else "less"
    if mean <= 0:
        return f"{row['method']} costs {share}, and is not expected to be worse ({_points(-high)} … {_points(-low)})."
    worth = f"--worth {_worth_of(decision, row['method'])} takes it"
    worse = f"{_points(mean)} points worse ({_points(low)} … {_points(high)})"
    return f"{row['method']} costs {share}, and is expected to be {worse}; {worth}."


def _worth_of(decision: Mapping[str, Any], method: str) -> str:
    """Return the smallest `--worth`, rounded up to a tenth of a point, that admits a method to the choice."""
    shortfall = next(one["shortfall"] for one in decision["methods"] if one["method"] == method)
    return f"{math.ceil(1000 * shortfall - 1e-9) / 10:g}"


def _share(price: float, of: float) -> str:
    """Return a price relative to another: `1/8`, `about as much` or `next to nothing`."""
    if of <= 0 or price < CHEAP_SHARE * of:
        return "next to nothing"
    return f"1/{round(of / price)}" if of / price >= 1.5 else "about as much"


def _settling_lines(decision: Mapping[str, Any]) -> list[str]:
    """Return lines on the expected shortfall of the choice, its likely rivals, and what would settle between them."""
    worth, rivals = percent(decision["worth"]), [rival["method"] for rival in decision["rivals"]]
    own = next(one for one in decision["methods"] if one["method"] == decision["chosen"])
    start = (
        f"It may be {percent(own['shortfall'])} points ({percent(own['low'])} … {percent(own['high'])}) below the best"
    )
    if not rivals:
        return [f"{start}; no other method is likely to be better by more than {worth}."]
    named = [decision["chosen"], *rivals[:_MOST_RIVALS]]
    last = f"{len(rivals) - _MOST_RIVALS} more" if len(rivals) > _MOST_RIVALS else named.pop()
    return [f"{start}. Not settled: {', '.join(named)} or {last}.", _settling(decision["rivals"][0])]


def _settling(rival: Mapping[str, Any]) -> str:
    """Return a line on the rows or runs that would settle between the choice and its likeliest rival."""
    ways = []
    if rival["rows"]:
        ways.append(f"about {_rounded(rival['rows'])} more labelled rows to choose on")
    if rival["runs"]:
        ways.append(f"{several(rival['runs'], 'more run')} of each")
    if not ways:
        return "Neither more runs nor twenty times the rows would settle the first two: they are too close."
    told = ", or ".join(ways)
    return f"{told[0].upper()}{told[1:]}{',' if len(ways) > 1 else ''} would settle the first two."


def _known_by(decision: Mapping[str, Any]) -> list[str]:
    """Return lines on the chosen method's gain over another by earlier boards alone and by these rows alone."""
    beside = decision["cheaper"] or next((rival for rival in decision["rivals"] if rival["ran"]), None)
    if beside is None:
        return []
    chosen, other, prior = decision["chosen"], beside["method"], beside["prior"]
    told = (
        f"{chosen} {_gain(prior)} {other}"
        if prior[2] - prior[1] <= NOTHING_KNOWN
        else f"nothing of {chosen} and {other}"
    )
    lines = [f"{decision['boards']} earlier boards alone say: {told}."]
    if beside["rows_alone"]:
        rows = f"These {decision['validation_rows']:,} validation rows alone say"
        lines.append(f"{rows}: {chosen} {_gain(beside['rows_alone'])} {other}.")
    return lines


def _gain(interval: Sequence[float]) -> str:
    """Return `1.2 points (-0.3 … 2.7) above`, or below."""
    mean, low, high = interval
    if mean < 0 and _points(mean) != _points(0.0):
        return f"{_points(-mean)} points ({_points(-high)} … {_points(-low)}) below"
    return f"{_points(mean)} points ({_points(low)} … {_points(high)}) above"


def _points(fraction: float) -> str:
    """Format a fraction as points, without a minus sign before zero."""
    return percent(fraction + 0.0 if abs(fraction) >= 5e-4 else 0.0)


def _rounded(count: int) -> str:
    """Round to two significant digits."""
    unit = max(1, 10 ** (len(str(count)) - 2))
    return f"{round(count / unit) * unit:,}"
