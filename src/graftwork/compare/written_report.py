"""Texts written by a board's methods, beside their references: the worst, the median, and faults no metric sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.core.example import text_of
from graftwork.core.kind import WritesTexts
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.store import read_logits
from graftwork.targets.fluency import KnownTriples, fluency
from graftwork.units import percent

SHOWN = 3  # worst texts, and median ones, of a method
LONGEST = 400  # characters shown of a text
NEW = "New words are neither in the source nor in any training target; of the first run of each method, on test"


def written_content(dataset: Dataset, rows: Sequence[RowRuns], store: Path, headline: str) -> dict[str, Any] | None:
    """Return the texts that each method's first successful run wrote on test, as JSON; None for a task without texts.

    `store` is the folder of runs. Texts are ordered by their own score of the metric `headline`. The counts of
    `fluency` are also given for the references, as a yardstick.
    """
    if not isinstance(kinds.get(dataset.task.kind), WritesTexts):
        return None
    examples = dataset.test.examples
    trained = KnownTriples.of(example.target[0] for example in dataset.train.examples)
    sources = [" ".join(map(text_of, example.inputs.values())) for example in examples]
    found = []
    for row in (row for row in rows if row.scored):
        run, statistics = row.scored[0]
        outputs = read_logits(store / run.id, "test", kinds.get(dataset.task.kind))
        scores = metrics.get(headline).value(np.asarray(statistics[headline], dtype=np.float64))  # (N,)
        order = np.argsort(scores, kind="stable")
        middle = max(0, len(order) // 2 - SHOWN // 2)
        shown = {"worst": order[:SHOWN], "median": order[middle : middle + SHOWN]}
        texts = [str(text) for text in outputs["text"]]
        told: dict[str, Any] = {"method": row.method, "run": run.id, "cut": sum(map(bool, outputs["cut"]))}
        for name, places in shown.items():
            told[name] = [
                {
                    "id": examples[place].id,
                    "score": float(scores[place]),
                    "source": _short(sources[place]),
                    "references": [_short(one) for one in examples[place].target],
                    "text": _short(texts[place]),
                }
                for place in places.tolist()
            ]
        found.append(told | fluency(sources, texts, trained))
    references = fluency(sources, [example.target[0] for example in examples], trained)
    return {"metric": headline, "references": references, "methods": found}


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def written_lines(board: Mapping[str, Any]) -> list[str]:
    """Return a sentence on what counts as new, and one for the texts of each method; none without texts."""
    cells = written_cells(board)
    told = [
        f"{name}: new {triples} % of word triples, {numbers} % of numbers; texts with a triple twice {repeating}, "
        f"empty {empty}, cut {cut}"
        for name, triples, numbers, repeating, empty, cut in cells
    ]
    return [NEW, *told] if told else []


def written_cells(board: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of cells for the references and for each method: name, new word triples and new numbers in %, and
    the numbers of texts that repeat a triple, are empty, or were cut."""
    content = board.get("written")
    if not content:
        return []
    told = [{"method": "(references)", "cut": 0} | content["references"], *content["methods"]]
    return [
        (
            row["method"],
            _share(row["new_triples"], row["triples"]),
            _share(row["new_numbers"], row["numbers"]),
            *(f"{row[name]:,}" for name in ("repeating", "empty", "cut")),
        )
        for row in told
    ]


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"


def examples_of(board: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the methods whose texts the page shows; none without texts."""
    content = board.get("written")
    return content["methods"] if content else []
