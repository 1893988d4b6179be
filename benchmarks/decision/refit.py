"""Fit the prior on committed boards and write the file that the package ships: `python refit.py`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from graftwork.core.configured_methods import configured_from
from graftwork.decision.earlier_boards import FORMAT, SHIPPED, Experience, TaskRecord, record_of
from graftwork.decision.prior import FEATURES, Sizes, condition, landmark_of, spread_of
from graftwork.decision.traits import TUNED, Arm, Traits, least_of
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment

HERE = Path(__file__).parent.absolute()
BOARDS = HERE.parent
WHOLE = {  # benchmark -> its boards
    "many_tasks": (
        "banking77", "cola", "crowdflower_airline", "crowdflower_corporate_messaging", "crowdflower_disasters",
        "crowdflower_emotion", "crowdflower_global_warming", "crowdflower_political_audience",
        "crowdflower_political_bias", "crowdflower_political_message", "crowdflower_primary_emotions",
        "crowdflower_us_economic_performance", "mrpc", "news_aggregator_head", "sms_spam", "trec6",
    ),
    "glue": ("CoLA", "MRPC", "RTE", "SST-2", "STS-B"),
    "first_board": ("banking77", "crowdflower_primary_emotions", "mrpc", "sms_spam", "stsb", "tickets", "trec6"),
    "snli": ("snli",), "superglue": ("boolq", "copa", "wic"), "tagging": ("conll2000", "ncbi_disease", "ud_ewt"),
    "images_and_sound": ("flowers5", "hymenoptera"),
}  # fmt: skip
PAIRS = {"mrpc", "MRPC", "RTE", "STS-B", "stsb", "snli", "boolq", "copa", "wic"}
SMALL = HERE / "results" / "small.json"
CURRENT = HERE / "results" / "current_scores.json"  # see current_scores.py
WIDTH = 1.0  # sd of the logarithm of a size around its start value
FIXED = (
    "alike_backbone", "alike_kind", "paired", "other_label", "seed_tuned", "seed_other", "task_label", "own_outputs",
    "task_joint", "kinds",
)  # fmt: skip
# Not fitted: the first four, because too few boards inform them; the next two, because runs measure them directly;
# `task_label`, because the likelihood makes it nearly 0, and choices then lose more (docs/log.md); `own_outputs` and
# `task_joint`, as no board informs them (of the latter there are four measured differences in docs/log.md).
LOADED = ("top_layers:k=1", "top_layers", "top_layers:k=3", "top_layers:k=5", "lora", "bitfit", "adapter", "full")


def records() -> list[TaskRecord]:
    """Return all boards that the prior learns from."""
    found = []
    for benchmark, names in WHOLE.items():
        for name in names:
            board = board_of(benchmark, name)
            board["rows"] = [row for row in board["rows"] if not row["method"].startswith("partial_input")]
            found.append(record_of(board, f"{benchmark}/{name}", traits_of(board, name)))
    return found + small_records()


def current_scores() -> dict[str, dict[str, dict[str, float]]]:
    """Return by board and method the scores on validation and test of today's versions."""
    found: dict[str, dict[str, dict[str, float]]] = read_json(CURRENT)
    return found


def board_of(benchmark: str, name: str) -> dict[str, Any]:
    """Return a committed board, with today's test scores of methods that have changed since."""
    board: dict[str, Any] = read_json(BOARDS / benchmark / "results" / name / "leaderboard.json")
    scores = current_scores().get(f"{benchmark}/{name}", {})
    for row in board["rows"]:
        if row["method"] in scores:
            row["scores"][board["headline_metric"]]["mean"] = scores[row["method"]]["test"]
    return board


def small_records() -> list[TaskRecord]:
    """Return the boards of small draws (`small.py`)."""
    return [TaskRecord.read(one["record"]) for one in read_json(SMALL)["tasks"]] if SMALL.is_file() else []


def traits_of(board: dict[str, Any], name: str) -> Traits:
    """Return the traits of a board; older boards have them in several places."""
    task = board["task"]
    backbone = board["backbone"]["id"]
    return Traits(
        rows=task["rows"]["train"],
        outputs=max(1, len(task.get("labels", ()))),
        two_texts=name in PAIRS,
        words=float((board["data_report"].get("words") or {}).get("median") or 0.0),
        kind=task.get("kind", "classification"),
        backbone="mobilenet_v2" if "mobilenet" in backbone else backbone,
        least=least_of(board["headline_metric"]),
    )


def evidence(sizes: Sizes, tasks: Sequence[TaskRecord]) -> float:
    """Return the log likelihood of these boards, up to a constant."""
    _, factor, scores = condition(sizes, tasks)
    logs = float(np.log(np.diag(factor[0])).sum())
    return -0.5 * float(scores @ cho_solve(factor, scores)) - logs


def seed_spreads() -> dict[str, float]:
    """Return the typical sd over seeds, in spreads, of methods that change the network and of others."""
    squares: dict[str, list[float]] = {"seed_tuned": [], "seed_other": []}
    for benchmark, names in WHOLE.items():
        for name in names:
            board = read_json(BOARDS / benchmark / "results" / name / "leaderboard.json")
            record = record_of(board, name, traits_of(board, name))
            means = {arm: score.mean for arm, score in record.scores.items()}
            unit = spread_of(landmark_of(means), record.traits.least)
            for row in board["rows"]:
                if row["n_seeds"] > 1 and row["method"] != "majority":
                    tuned = Arm.of(configured_from(row["config"])).sort == TUNED
                    deviation = row["scores"][board["headline_metric"]]["sd"] / unit
                    squares["seed_tuned" if tuned else "seed_other"].append(deviation**2)
    return {name: float(np.sqrt(np.mean(of))) for name, of in squares.items()}


def fitted(tasks: Sequence[TaskRecord], start: Sizes | None = None) -> Sizes:
    """Return the sizes that maximise the likelihood of the boards, with a prior around their start values."""
    known = tuple(sorted({task.traits.kind for task in tasks}))
    start = start or Sizes(loadings=dict.fromkeys(LOADED, 1.0), kinds=known, **seed_spreads())
    names = [item.name for item in fields(Sizes) if item.name not in (*FIXED, "loadings", "tuned_by", "name_by")]
    origin = np.log([*(getattr(start, name) for name in names), *start.tuned_by, *start.name_by,
                     *start.loadings.values()])  # fmt: skip
    widths = np.full(len(origin), WIDTH)
    widths[-len(LOADED) :] = 0.2

    def sizes_at(logs: np.ndarray) -> Sizes:
        values = [float(value) for value in np.exp(logs)]
        count, plain = len(FEATURES), len(names)
        return replace(
            start,
            **dict(zip(names, values, strict=False)),
            tuned_by=tuple(values[plain : plain + count]),
            name_by=tuple(values[plain + count : plain + 2 * count]),
            loadings=dict(zip(LOADED, values[plain + 2 * count :], strict=True)),
        )

    def loss(logs: np.ndarray) -> float:
        return 0.5 * float((((logs - origin) / widths) ** 2).sum()) - evidence(sizes_at(logs), tasks)

    found = minimize(loss, origin, method="L-BFGS-B", options={"maxiter": 60})
    return sizes_at(found.x)


def rounded(sizes: Sizes) -> dict[str, Any]:
    """Return the sizes as JSON, with four digits each."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [cut(one) for one in value]
        return value if isinstance(value, str) else float(f"{value:.4g}")

    return {name: cut(value) for name, value in asdict(sizes).items()}


def main() -> None:
    """Write one file: the sizes, the boards, and the receipt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    chosen = parser.parse_args()
    tasks = records()
    sizes = fitted(tasks)
    receipt = {"boards": len(tasks), "evidence": evidence(sizes, tasks), "command": "benchmarks/decision/refit.py",
               "environment": environment()}  # fmt: skip
    content = {"format": FORMAT, "sizes": rounded(sizes), "receipt": receipt,
               "tasks": [task.content() for task in Experience(tuple(tasks)).tasks]}  # fmt: skip
    write_json(chosen.out, content)
    for name, value in content["sizes"].items():
        print(name, value)


if __name__ == "__main__":
    main()
