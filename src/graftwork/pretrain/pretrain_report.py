"""The report of a pre-training: one HTML page with the loss, the scores, samples and the amortised cost per task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftwork.compare.leaderboard_report import css, pages, plotly, write_page
from graftwork.compare.sentences import price_tag
from graftwork.core.run import RunResult, RunSpec
from graftwork.io.files import finite, storage_errors
from graftwork.pretrain.amortised_cost import COUNTS, amortised
from graftwork.pretrain.pretrain_folder import LOG
from graftwork.units import scaled, show

FOLDER, REPORT = Path(__file__).parent, "report.html"
MOST_POINTS = 2000  # of the training loss, about; a screen cannot resolve more
COLUMNS = ("nats", "perplexity", "bits_per_byte", "word_perplexity")


def write_report(spec: RunSpec, result: RunResult, folder: Path) -> None:
    """Write `report.html` into the folder of the run, from its log."""
    with storage_errors(folder / LOG):
        lines = [json.loads(line) for line in (folder / LOG).read_bytes().split(b"\n") if line]
    facts = result.facts
    write_page(
        folder / REPORT,
        lambda: (
            pages(FOLDER)
            .get_template("report.html.j2")
            .render(
                title=f"{spec.method['name']}, run {spec.id}",
                about=_about(facts),
                notes=[*facts.get("notes", []), *([facts["stopped"]] if "stopped" in facts else [])],
                columns=[name.replace("_", " ") for name in COLUMNS],
                scores=_scores(facts),
                samples=[line for line in lines if "sample" in line],
                counts=COUNTS,
                prices=_prices(result),
                figure=finite(loss_figure(lines)),
                css=css(),
                plotly=plotly(),
            )
        ),
    )


def _about(facts: Mapping[str, Any]) -> str:
    known = {"parameters": "parameters", "tokens_seen": "tokens seen", "steps": "steps", "vocabulary": "tokens known"}
    return ", ".join(f"{scaled(facts[key], '')} {words}" for key, words in known.items() if key in facts) + "."


def _scores(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"{split}, {when}", "cells": [_score(scores[name]) for name in COLUMNS]}
        for when in ("before", "after")
        for split, scores in facts.get(when, {}).items()
    ]


def _score(value: float | None) -> str:
    """Format a score; infinity is None after a checkpoint, which is JSON."""
    return "∞" if value is None or math.isinf(value) else f"{value:.4g}"


def _prices(result: RunResult) -> list[dict[str, Any]]:
    costs = {name: asdict(cost) for name, cost in result.costs.items()}
    shares = [amortised(costs, count) for count in COUNTS]
    return [
        {
            "name": f"{name.replace('_', ' ')} ({costs[name]['grade']})",
            "cells": [show(share[name]["value"], share[name]["unit"]) for share in shares],
        }
        for name in price_tag([{"costs": shares[0]}])
    ]


def loss_figure(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Plot the subsampled training loss and the mean loss of every held-out split over steps; no `data` if none logged.

    The training loss is the nats alone, as for held-out text; penalties and other losses are in the log only. Without
    nats in the log, it is the loss reported by the training library.
    """
    name = "nats" if any("nats" in line for line in lines) else "loss"
    steps = [line for line in lines if name in line]
    thin = steps[:: max(1, len(steps) // MOST_POINTS)]
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": "training", "line": {"color": "#9aa5b1", "width": 1},
         "x": [line["step"] for line in thin], "y": [line[name] for line in thin]},
    ] if steps else []  # fmt: skip
    held = [line for line in lines if "validation" in line]
    for split in held[0]["validation"] if held else ():
        data.append(
            {"type": "scatter", "mode": "lines+markers", "name": split,
             "x": [line["step"] for line in held], "y": [line["validation"][split]["nats"] for line in held]}
        )  # fmt: skip
    title = (
        "nats per predicted token"
        if name == "nats"
        else "loss per token, roughly: the library sums it in single precision"
    )
    layout = {
        "height": 420, "margin": {"l": 60, "r": 20, "t": 20, "b": 50}, "template": "plotly_white",
        "xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": title}},
    }  # fmt: skip
    return {"data": data, "layout": layout}
