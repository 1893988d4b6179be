"""Mistakes on test: confusions, the scores of every class, and the examples with every method's prediction.

Predictions are those of the first successful run of each method, so that counts can be checked example by example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.core.kind import Kind, NamesMistakes, OneClass, SharesProbability
from graftwork.core.method import Logits
from graftwork.core.metric import wilson
from graftwork.core.outcome import MISSED, NOTHING, Outcome
from graftwork.core.task import Dataset
from graftwork.data.checks.repeats import twins
from graftwork.evaluate.label_errors import mean_probabilities, suspected_labels
from graftwork.io.files import read_json
from graftwork.module.calibration import BINS, at_temperature, reliability, temperature_of
from graftwork.module.confidence import confidence_of
from graftwork.module.predict_file import inputs_as_json
from graftwork.registry import kinds
from graftwork.run.store import read_logits

WIDEST = 20  # names in a table of confusions; with more, the most frequent pairs are listed instead
PAIRS = 40  # pairs in that list, at most
LEAST = 20  # approximate minimum of rows in a bin of the reliability plot


@dataclass(frozen=True)
class MethodAnswers:
    """The predictions of one method for all N test rows."""

    method: str
    run: str  # id of its run
    brief: list[str]  # (N,) predictions in a few words
    confidence: list[float | None]  # (N,) probability of each prediction; None if it has none
    outcomes: list[list[Outcome]]  # (N,) comparisons of each prediction with its target

    def right(self, row: int) -> bool:
        """Return whether the method is right about a row."""
        return all(outcome.right for outcome in self.outcomes[row])


def mistakes_content(
    dataset: Dataset, rows: Sequence[RowRuns], store: Path, board: Mapping[str, Any], texts: bool
) -> dict[str, Any] | None:
    """Return the section's content as JSON; None for a kind that doesn't name mistakes, or if no method has a score.

    `store` is the folder of runs. Without `texts` the content has counts but no examples.
    """
    task, kind = dataset.task, kinds.get(dataset.task.kind)
    methods = _methods(board)
    if not isinstance(kind, NamesMistakes) or not methods:
        return None
    examples = dataset.test.examples
    expected = [kind.expected(example, task) for example in examples]
    scored = {row.method: row.scored for row in rows}
    judged = [_answers_of(method, scored[method][0][0].id, dataset, store, expected) for method in methods]
    order = list(kind.outcome_names(task))
    pairs = _confusions(judged[0], order)
    content = {
        "chosen": methods[0],
        "run": judged[0].run,
        "right_means": kind.right_means,
        "rows": len(examples),
        "wrong": sum(not judged[0].right(row) for row in range(len(examples))),
        "confusions": pairs,
        "table": _table(pairs, order),
        "classes": _classes(judged, order) if kind.has_labels else [],
        "runner_up": judged[1].method if len(judged) > 1 else None,
        "one_class": isinstance(kind, OneClass),
        "reliability": _reliability(judged[0]) if isinstance(kind, SharesProbability) else [],
        "examples": None,
    }
    if not texts:
        return content
    suspects = _suspects(dataset, {method: scored[method] for method in _above(board, methods)}, store)
    listed = _examples(dataset, judged, [kind.brief(answer) for answer in expected], pairs, suspects)
    return content | {"examples": listed, "methods": methods, "suspects": len(suspects)}


def _examples(
    dataset: Dataset,
    judged: Sequence[MethodAnswers],
    targets: Sequence[str],
    pairs: Sequence[Mapping[str, Any]],
    suspects: Mapping[int, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return every test row with its target and the predictions, as JSON."""
    examples = dataset.test.examples
    number = {(pair["true"], pair["found"]): place for place, pair in enumerate(pairs)}
    like = twins(examples, dataset.train.examples)
    listed = []
    for row, example in enumerate(examples):
        told: dict[str, Any] = {
            "id": example.id,
            "inputs": [[role, _text(role, given)] for role, given in inputs_as_json(example).items()],
            "target": targets[row],
            "answers": [[one.brief[row], _rounded(one.confidence[row]), one.right(row)] for one in judged],
            "confusions": [number[outcome.true, outcome.description] for outcome in judged[0].outcomes[row]],
        }
        off = max((outcome.off for outcome in judged[0].outcomes[row]), default=0.0)
        told |= {"off": round(off, 3)} if off else {}
        told |= {"suspect": suspects[row]} if row in suspects else {}
        told |= {"like": like[example.id]} if example.id in like else {}
        listed.append(told)
    return listed


def _methods(board: Mapping[str, Any]) -> list[str]:
    """Return the methods with a score: the chosen one, then the others, best first."""
    scored = [row["method"] for row in board["rows"] if row["scores"]]
    chosen = (board["decision"] or {}).get("chosen")
    return sorted(scored, key=lambda method: method != chosen)


def _above(board: Mapping[str, Any], methods: Sequence[str]) -> list[str]:
    """Return the methods whose mean is above the majority class; all if none is."""
    headline = board["headline_metric"]
    means = {row["method"]: row["scores"][headline]["mean"] for row in board["rows"] if row["scores"]}
    return [method for method in methods if means[method] > board["majority"]] or list(methods)


def _answers_of(
    method: str, run: str, dataset: Dataset, store: Path, expected: Sequence[Mapping[str, Any]]
) -> MethodAnswers:
    task, kind = dataset.task, kinds.get(dataset.task.kind)
    assert isinstance(kind, NamesMistakes)
    answers = kind.decode(tempered_logits(store / run, kind), task, dataset.test.examples)
    return MethodAnswers(
        method,
        run,
        [kind.brief(answer) for answer in answers],
        [confidence_of(answer) for answer in answers],
        [kind.outcomes(wanted, answer, task) for wanted, answer in zip(expected, answers, strict=True)],
    )


def _confusions(of: MethodAnswers, order: Sequence[str]) -> list[dict[str, Any]]:
    """Return every pair of a true and a found name with its count: mistakes before right ones, most frequent first."""
    counts = Counter((one.true, one.description, one.right) for outcomes in of.outcomes for one in outcomes)
    listed = sorted(counts.items(), key=lambda item: (item[0][2], -item[1], item[0]))
    return [{"true": true, "found": found, "right": right, "count": count} for (true, found, right), count in listed]


def _table(pairs: Sequence[Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any] | None:
    """Return the confusions as a table: cells are [number of the pair, count, share of the row]; None if too wide."""
    place = {name: at for at, name in enumerate(order)}

    def sort(name: str) -> tuple[int, str]:
        return place.get(name, len(place)), name

    trues, founds = (sorted({pair[side] for pair in pairs}, key=sort) for side in ("true", "found"))
    if max(len(trues), len(founds)) > WIDEST:
        return None
    cells = {(pair["true"], pair["found"]): number for number, pair in enumerate(pairs)}
    lines = []
    for true in trues:
        total = sum(pair["count"] for pair in pairs if pair["true"] == true)
        numbers = [cells.get((true, found)) for found in founds]
        lines.append(
            {"true": true, "total": total,
             "cells": [None if at is None else
                       {"pair": at, "count": pairs[at]["count"], "share": pairs[at]["count"] / total,
                        "right": pairs[at]["right"]} for at in numbers]}
        )  # fmt: skip
    return {"founds": founds, "lines": lines}


def _classes(judged: Sequence[MethodAnswers], order: Sequence[str]) -> list[dict[str, Any]]:
    """Return precision, recall with its interval, and F1 of every class, and the recall of the runner-up."""
    first, second = _counts(judged[0]), _counts(judged[1]) if len(judged) > 1 else None
    names = [name for name in order if first["true"][name] or first["found"][name]]
    listed = []
    for name in names:
        hits, support, found = first["right"][name], first["true"][name], first["found"][name]
        listed.append({
            "name": name, "support": support, "found": found,
            "precision": hits / found if found else None,
            "recall": hits / support if support else None,
            "interval": wilson(hits / support, support) if support else None,
            "f1": 2 * hits / (support + found),
            "runner_up": second["right"][name] / support if second and support else None,
        })  # fmt: skip
    return listed


def _counts(of: MethodAnswers) -> dict[str, Counter[str]]:
    listed = [outcome for outcomes in of.outcomes for outcome in outcomes]
    return {
        "true": Counter(one.true for one in listed if one.true != NOTHING),
        "found": Counter(one.found for one in listed if one.found != MISSED),
        "right": Counter(one.true for one in listed if one.right),
    }


def _suspects(dataset: Dataset, scored: Mapping[str, Any], store: Path) -> dict[int, dict[str, Any]]:
    """Return row -> its rank among suspected label errors, the likely label, and the probability of the given one."""
    kind, labels = kinds.get(dataset.task.kind), dataset.task.labels
    if not isinstance(kind, OneClass):
        return {}
    of_methods = [[np.asarray(tempered_logits(store / run.id, kind), np.float64) for run, _ in runs]
                  for runs in scored.values()]  # fmt: skip
    found = suspected_labels(mean_probabilities(of_methods), np.asarray(dataset.test.targets, dtype=np.int64))
    return {
        one.row: {"rank": rank, "likely": labels[one.likely], "confidence": round(one.confidence, 4)}
        for rank, one in enumerate(found, 1)
    }


def tempered_logits(folder: Path, kind: Kind) -> Logits:
    """Return a run's test logits, divided by the temperature of its module."""
    path = folder / "module" / "module.json"
    temperature = temperature_of(read_json(path)) if path.is_file() else 1.0
    return at_temperature(read_logits(folder, "test", kind), temperature)


def _reliability(of: MethodAnswers) -> list[dict[str, Any]]:
    """Return the bins of the reliability plot, each with the 95 % interval of its accuracy."""
    sure = [value for value in of.confidence if value is not None]
    right = [of.right(row) for row, value in enumerate(of.confidence) if value is not None]
    bins = reliability(sure, right, max(1, min(BINS, len(sure) // LEAST)))
    return [asdict(one) | {"interval": wilson(one.accuracy, one.rows)} for one in bins]


def _text(role: str, given: str | Sequence[str]) -> str:
    """Return an input as one text: words joined by spaces, choices one per line."""
    return given if isinstance(given, str) else (" " if role == "words" else "\n").join(given)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
