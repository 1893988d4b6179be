"""The report of a pre-training: one HTML page with the loss, the scores, samples and the amortised cost per task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from graftwork.compare.chart import COLOURS, Axis, Series, draw
from graftwork.compare.leaderboard_report import page
from graftwork.compare.page_table import named
from graftwork.compare.sentences import price_tag
from graftwork.core.run import RunResult, RunSpec
from graftwork.io.files import finite, storage_errors, write_text
from graftwork.pretrain.pretrain_folder import LOG
from graftwork.ship.amortised_cost import COUNTS, amortise
from graftwork.units import show, with_prefix

FOLDER, REPORT = Path(__file__).parent, "report.html"
HEIGHT = 420
MOST_POINTS = 2000  # of the training loss, about; a screen cannot resolve more
COLUMNS = ("nats", "perplexity", "bits_per_byte", "word_perplexity")


def write_report(spec: RunSpec, result: RunResult, folder: Path) -> None:
    """Write `report.html` into the folder of the run, from its log."""
    with storage_errors(folder / LOG):
        lines = [json.loads(line) for line in (folder / LOG).read_bytes().split(b"\n") if line]
    facts = result.facts
    samples = [[f"{line['step']:,}", line["sample"]] for line in lines if "sample" in line]
    scores = named("Scores", ("split", *(name.replace("_", " ") for name in COLUMNS)), _scores(facts))
    each = ["in all" if count == 1 else f"for each of {count} tasks" for count in COUNTS]
    content = {
        "title": f"{spec.method['name']}, run {spec.id}",
        "about": _about(facts),
        "notes": [*facts.get("notes", []), *([facts["stopped"]] if "stopped" in facts else [])],
        "picture": loss_chart(finite(lines)),
        "tables": [
            scores,
            *([named("Samples", ("step", "text"), samples, texts=2)] if samples else []),
            named("Price", ("price", *each), _prices(result)),
        ],
    }
    write_text(folder / REPORT, page("report.html.j2", content, FOLDER))


def _about(facts: Mapping[str, Any]) -> str:
    known = {"parameters": "parameters", "tokens_seen": "tokens seen", "steps": "steps", "vocabulary": "tokens known"}
    return ", ".join(f"{with_prefix(facts[key], '')} {words}" for key, words in known.items() if key in facts) + "."


def _scores(facts: Mapping[str, Any]) -> list[list[str]]:
    return [
        [f"{split}, {when}", *(_score(scores[name]) for name in COLUMNS)]
        for when in ("before", "after")
        for split, scores in facts.get(when, {}).items()
    ]


def _score(value: float | None) -> str:
    """Format a score; infinity is None after a checkpoint, which is JSON."""
    return "∞" if value is None or math.isinf(value) else f"{value:.4g}"


def _prices(result: RunResult) -> list[list[str]]:
    costs = {name: asdict(cost) for name, cost in result.costs.items()}
    shares = [amortise(costs, count) for count in COUNTS]
    return [
        [f"{name.replace('_', ' ')} ({costs[name]['grade']})"]
        + [show(share[name]["value"], share[name]["unit"]) for share in shares]
        for name in price_tag([{"costs": shares[0]}])
    ]


def loss_chart(lines: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Return the training loss and the mean loss of every held-out split over steps; None if none is logged.

    The training loss is the nats alone, as for held-out text; penalties and other losses are in the log only. Without
    nats in the log, it is the loss reported by the training library.
    """
    name = "nats" if any("nats" in line for line in lines) else "loss"
    steps = [line for line in lines if line.get(name) is not None]
    thin = steps[:: max(1, len(steps) // MOST_POINTS)]
    held = [line for line in lines if "validation" in line]
    series = [
        Series([line["step"] for line in thin], [line[name] for line in thin], (), "training", mark="", line="solid")
    ]
    for number, split in enumerate(held[0]["validation"] if held else ()):
        known = [(line["step"], line["validation"][split]["nats"]) for line in held]
        known = [(step, nats) for step, nats in known if nats is not None]
        titles = [f"{split}, step {step}\n{nats:.4g}" for step, nats in known]
        x, y = [step for step, _ in known], [nats for _, nats in known]
        series.append(Series(x, y, titles, split, COLOURS[number], line="solid"))
    series = [one for one in series if one.x]
    if not series:
        return None
    last = max(step for one in series for step in one.x)
    losses = [loss for one in series for loss in one.y]
    pad = 0.05 * (max(losses) - min(losses)) or 0.05
    title = (
        "nats per predicted token"
        if name == "nats"
        else "loss per token, roughly: the library sums it in single precision"
    )
    x_axis, y_axis = Axis("step", 0, max(1, last)), Axis(title, min(losses) - pad, max(losses) + pad)
    return draw(series, x_axis, y_axis, HEIGHT, "loss against steps")
