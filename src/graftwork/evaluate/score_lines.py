"""Scores on a labelled file in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.units import error_rate, metric_title, percent, several

ENOUGH_ROWS = 20  # an interval over fewer rows is rough


def score_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the scores for the terminal."""
    names = _names(found)
    modules = [found, *found["also"]]
    positive = found.get("positive")
    wide = max(len(metric_title(metric, positive)) for metric in found["scores"]) + 2
    lines = [f"{found['task']} · {several(found['rows']['scored'], 'row')} of {Path(found['file']).name}"]
    for name, module in zip(names, modules, strict=True):
        lines += ["", name, f"  {'':<{wide}}{'score [95 %]':<22}{'majority':<11}its own test"]
        for metric, one in module["scores"].items():
            own = (module["own_test"] or {}).get(metric)
            title, held = metric_title(metric, positive), "–" if own is None else percent(own)
            told = (_with_interval(one["score"], one), percent(found["majority"][metric]))
            lines.append(f"  {title:<{wide}}{told[0]:<22}{told[1]:<11}{held}{error_rate(metric, one['score'])}")
        lines += _coverage(module, found["rows"]["scored"])
    return [*lines, "", *_remarks(found, names)]


def _coverage(module: Mapping[str, Any], rows: int) -> list[str]:
    """Say how much a module that abstains answers, and how much of that is right; [] for one that answers all."""
    told = module.get("abstaining")
    if told is None:
        return []
    answered, right = told["answered"], told["right"]
    precision = "" if told["precision"] is None else f", {percent(told['precision'])} % of them right ({right:,})"
    return [
        f"  below a probability of {told['below']:g} it abstains: {answered:,} of {several(rows, 'row')} answered "
        f"({percent(told['coverage'])} %){precision}; area under risk by coverage {told['area_under_risk']:.4f}"
    ]


def _with_interval(score: float, told: Mapping[str, Any]) -> str:
    low, high = told["low"], told["high"]
    return percent(score) if low is None else f"{percent(score)} [{percent(low)}, {percent(high)}]"


def _names(found: Mapping[str, Any]) -> list[str]:
    """Name the modules by their methods, and by their folders too if the methods are the same."""
    modules = [found, *found["also"]]
    methods = [module["method"] for module in modules]
    return [
        method if methods.count(method) == 1 else f"{method} in {module['module']}"
        for method, module in zip(methods, modules, strict=True)
    ]


def _remarks(found: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return remarks on the scores, as sentences; `names` are the names of the modules."""
    rows = found["rows"]
    told = [
        f"{name} {_gain(metric_title(metric, found.get('positive')), gain, names[0])}"
        for name, other in zip(names[1:], found["also"], strict=True)
        for metric, gain in other["gain"].items()
    ]
    if len(found["also"]) > 1:
        told.append("The differences are not corrected for multiple comparisons.")
    if rows["scored"] < ENOUGH_ROWS:
        told.append(
            f"The file has {several(rows['scored'], 'row')}: with fewer than {ENOUGH_ROWS} intervals are rough."
        )
    if rows["cut"]:
        told.append(f"{several(rows['cut'], 'row')} truncated to the backbone's limit.")
    return [*told, *_seen_sentences([found, *found["also"]], names)]


def _gain(metric: str, gain: Mapping[str, Any], first: str) -> str:
    span = f"[{percent(gain['low'])}, {percent(gain['high'])}]"
    if gain["verdict"] != "cannot tell":
        return f"is {gain['verdict']} than {first} by {metric}: {percent(gain['delta'])} {span}."
    differing = several(gain["differing"], "row")
    return f"and {first}: cannot tell by {metric}: {percent(gain['delta'])} {span}, {differing} scored differently."


def _seen_sentences(modules: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Say which rows each module has seen in training; modules with the same answer share a sentence."""
    of: dict[str, list[str]] = {}
    for name, module in zip(names, modules, strict=True):
        of.setdefault(_seen_in_words(module["seen"]), []).append(name)
    return [f"{', '.join(listed)}: {words}" for words, listed in of.items()]


def _seen_in_words(seen: Mapping[str, Any]) -> str:
    if seen["rows"] is None:
        return f"it is unknown whether rows of the file were used in training: {seen['unreachable']}."
    if not seen["rows"]:
        return "no row of the file is among its training or validation rows."
    parts = [
        f"in its {how}: {seen[split]['exact']:,} exactly, {seen[split]['near']:,} nearly"
        for split, how in (("train", "training data"), ("validation", "validation data"))
        if sum(seen[split].values())
    ]
    return f"rows of the file {'; '.join(parts)}. Scores on these rows say nothing about new rows."
