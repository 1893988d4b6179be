"""A ladder as text: the chosen method, the amount spent, a line per run, and the methods that were not run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graftwork.decision.traits import MAJORITY
from graftwork.units import metric_title, named_scores, percent, show

LEFT_OUT = {  # decision of a method without a run -> how its line begins
    "not worth it": "Not worth their time, by the points expected",
    "not affordable": "Not affordable with what is left",
    "not tried": "Not tried",
}


def ladder_lines(content: Mapping[str, Any]) -> list[str]:
    """Format a `ladder.json` for the terminal: the chosen method, the runs in order, then what was not run."""
    budget, spent, unit = content["budget"], content["spent"], content["budget"]["unit"]
    backbone = content["backbone"]["id"] if content["backbone"] else "no backbone"
    surroundings, positive = content["environment"], content["task"].get("positive")
    computed = " on ".join(filter(None, (surroundings.get("precision"), surroundings.get("device"))))
    lines = [
        f"{content['task']['name']} · {metric_title(content['metric'], positive)}, points · "
        f"{', '.join(filter(None, (backbone, computed)))} · budget {show(budget['amount'], unit)}",
        "",
        *answer_lines(content),
        f"Spent {show(spent['amount'], unit)} ({spent['grade']}), {100 * spent['share']:.0f} % of the budget; ended "
        f"since {_why_ended(content)}.",
        "",
        f"  {'method':<32}{'forecast':>12}{'took':>12}  {'validation [95 %]':<22}  decision",
    ]
    for rung in content["rungs"]:
        if _is_left_out(rung):
            continue
        score = rung["validation"]
        shown = f"{percent(score['score'])} [{percent(score['low'])}, {percent(score['high'])}]" if score else ""
        predicted = "there already" if rung["reused"] else show(rung["predicted_seconds"], "s")
        reason = f": {rung['reason']}" if rung["reason"] else ""
        part = rung.get("part", 1)  # share of its steps
        name = rung["method"] + (f", {100 * part:.0f} % of its steps" if part < 1 else "")
        name += f", seed {rung['seed']}" if rung.get("seed", content["seed"]) != content["seed"] else ""
        lines.append(
            f"{'>' if rung['chosen'] else ' '} {name:<32}{predicted:>12}{show(rung['seconds'], 's'):>12}"
            f"  {shown:<22}  {rung['decision']}{reason}"
        )
    return [*lines, "", *_left_out_lines(content), *(f"Note: {note}." for note in content["notes"])]


def _is_left_out(rung: Mapping[str, Any]) -> bool:
    return rung["decision"] in LEFT_OUT and rung["run"] is None


def _left_out_lines(content: Mapping[str, Any]) -> list[str]:
    """Return a line for each reason not to run methods, with these methods."""
    found: dict[str, list[str]] = {}
    for rung in filter(_is_left_out, content["rungs"]):
        gain = rung["expected_gain"]
        told = rung["method"] if gain is None else f"{rung['method']} {percent(gain, 2)}"
        found.setdefault(rung["decision"], []).append(told if rung["decision"] == "not worth it" else rung["method"])
    return [f"{LEFT_OUT[decision]}: {', '.join(methods)}." for decision, methods in found.items()]


def answer_lines(content: Mapping[str, Any]) -> list[str]:
    """Return the chosen method, its scores, those of the baselines, and its expected shortfall below the best."""
    chosen, decision = content["chosen"], content.get("decision")
    if not chosen or not decision:
        return []
    decided = chosen.get("decided", chosen["method"])
    own = next(one for one in decision["methods"] if one["method"] == decided)
    low, high = percent(own["low"]), percent(own["high"])
    positive = content["task"].get("positive")
    subject = "It" if decided == chosen["method"] else f"One run of {decided}"
    of, rows, boards = len(decision["methods"]), decision["validation_rows"], decision["boards"]
    return [
        f"Use {chosen['method']}: test {named_scores(chosen['scores'], chosen['interval'], positive=positive)}, "
        f"{show(chosen['costs']['train_seconds']['value'], 's')} to train.",
        *_baseline_lines(content),
        f"{subject} may be {percent(own['shortfall'])} points ({low} … {high}) below the best of {of}, by {rows:,} "
        f"validation rows and {boards} earlier boards.",
    ]


def _baseline_lines(content: Mapping[str, Any]) -> list[str]:
    """Return `Baselines on test: majority 24.4, tfidf_svm 78.2.`, with a warning if the first is above the choice."""
    chosen, found = content["chosen"], content.get("baselines", {})
    beside = {label: score for label, score in found.items() if label != chosen["method"]}
    if not beside:
        return []
    told = f"Baselines on test: {', '.join(f'{label} {percent(score)}' for label, score in beside.items())}."
    below = chosen["scores"][content["metric"]] < beside.get(MAJORITY, -math.inf)
    return [f"{told} {chosen['method']} is below {MAJORITY}: label more rows before you use it." if below else told]


def _why_ended(content: Mapping[str, Any]) -> str:
    """Return why the search ended, and the best run not made: `… is worth it (next: full, 0.02 points expected)`."""
    left = [rung for rung in content["rungs"] if rung["expected_gain"] is not None and rung["decision"] in LEFT_OUT]
    best = max(left, key=lambda rung: float(rung["expected_gain"]), default=None)
    told = f" (next: {best['method']}, {percent(best['expected_gain'], 2)} points expected)" if best else ""
    return f"{content['stopped'] or 'every method was tried'}{told}"
