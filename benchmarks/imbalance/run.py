"""Macro F1 with and without class weights, and the cost of answers with and without costs, on skewed sets.

    python benchmarks/imbalance/run.py --data DATA [--seeds 5] [--methods linear_probe,tfidf_svm,top_layers]
    python benchmarks/imbalance/table.py

Runs that stand in the folder `--work` are not made again; the result is written after every seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.compare.statistics import RowSample, bootstrap, holm
from graftwork.core.configured_methods import parse_method
from graftwork.core.progress import silent
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe
from graftwork.core.task import Dataset, Task
from graftwork.methods.tfidf_svm import probable
from graftwork.registry import kinds, metrics
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits
from graftwork.run.train import train_in

HERE = Path(__file__).parent
RESULT = HERE / "results" / "imbalance.json"
SETS = ("sms_spam", "crowdflower_corporate_messaging", "crowdflower_political_message")
METHODS = "linear_probe,tfidf_svm,top_layers"
ROWS = {"train": 300, "validation": 150, "test": 700}
DEAR = 10.0  # times what another mistake costs: missing a rare label
KIND = kinds.get("classification")


def cut(source: Path, folder: Path) -> Task:
    """Write a fixed draw of a set as files of the three splits; return the task."""
    with source.open(encoding="utf-8", newline="") as lines:
        _, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    order, at = np.random.default_rng(0).permutation(len(rows)).tolist(), 0
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in ROWS.items():
        drawn = [rows[place] for place in order[at : at + count]]
        lines_of = ["text\tlabel", *("\t".join(row) for row in drawn)]
        (folder / f"{split}.tsv").write_text("\n".join(lines_of) + "\n", encoding="utf-8")
        at += count
    paths = {split: folder / f"{split}.tsv" for split in ROWS}
    return Task(
        source.parent.name, paths["train"], paths["validation"], paths["test"], metrics=("macro_f1", "accuracy")
    )


def costs_of(labels: Sequence[str], counts: Counter[str]) -> dict[str, dict[str, float]]:
    """Return costs: 1 for a mistake, 10 for missing a label with less than half of an equal share of train."""
    rare = {label for label in labels if counts[label] < counts.total() / (2 * len(labels))}
    return {t: {p: 0.0 if p == t else DEAR if t in rare else 1.0 for p in labels} for t in labels}


def costs_told(dataset: Dataset, runs: Sequence[Path], method: str) -> dict[str, Any]:
    """Return the mean cost on test of the most probable answers, and of those of least expected cost, of same runs."""
    task, labels = dataset.task, dataset.task.labels
    costs = costs_of(labels, Counter(labels[place] for place in flat(dataset.train.targets).tolist()))
    dear = task.resolved(costs=costs)
    found: dict[str, list[Any]] = {"argmax": [], "least_cost": []}
    for folder in runs:
        held, logits = (np.asarray(read_logits(folder, split, KIND)) for split in ("validation", "test"))
        scale = probable(held, dataset.validation.targets) if method == "tfidf_svm" else 1.0
        metric, targets = metrics.get("saved_cost"), dataset.test.targets
        found["argmax"].append(metric.statistics(targets, KIND.predictions(logits, task), dear))
        found["least_cost"].append(metric.statistics(targets, KIND.predictions(logits * scale, dear), dear))
    means = {name: float(np.mean([run[:, 0].mean() for run in listed])) for name, listed in found.items()}
    saved = bootstrap([RowSample(name, tuple(runs)) for name, runs in found.items()], metrics.get("saved_cost"))
    told = saved.difference("least_cost", "argmax")
    constant = min(found["argmax"][0][:, 1:].mean(axis=0))
    return {
        "dear": [label for label in labels if max(costs[label].values()) == DEAR],
        "cost_per_row": means | {"cheapest_constant": float(constant)},
        "saved": {name: saved.score(name).mean for name in found},
        "difference": [told.delta, told.low, told.high],
        "p": told.p,
    }


def weights_told(dataset: Dataset, plain: Sequence[Path], weighted: Sequence[Path]) -> dict[str, Any]:
    """Return macro F1 and accuracy on test without and with class weights, and the paired difference in macro F1."""
    told: dict[str, Any] = {}
    for name in ("macro_f1", "accuracy"):
        metric = metrics.get(name)
        rows = [
            RowSample(
                row,
                tuple(
                    metric.statistics(
                        dataset.test.targets,
                        KIND.predictions(np.asarray(read_logits(folder, "test", KIND)), dataset.task),
                        dataset.task,
                    )
                    for folder in runs
                ),
            )
            for row, runs in (("plain", plain), ("balanced", weighted))
        ]
        found = bootstrap(rows, metric)
        difference = found.difference("balanced", "plain")
        told[name] = {row: [found.score(row).mean, found.score(row).sd] for row in ("plain", "balanced")} | {
            "difference": [difference.delta, difference.low, difference.high],
            "p": difference.p,
        }
    return told


def measure(data: Path, work: Path, names: Sequence[str], seeds: int) -> None:
    """Make the runs, method by method, and write the result after each."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))["rows"] if RESULT.is_file() else []
    rows = {(row["set"], row["method"]): row for row in found}
    for name in names:
        for source in SETS:
            task = cut(data / source / "all.tsv", work / source)
            setup, method = RunSettings(runs=str(work / "runs"), cache=str(work / "cache")), parse_method(name)
            folders: dict[str, list[Path]] = {"plain": [], "balanced": []}
            sessions = {
                way: open_session(task.resolved(**given), [method], setup, checked=False)
                for way, given in (("plain", {}), ("balanced", {"class_weights": "balanced"}))
            }
            for seed in range(seeds):
                for way, session in sessions.items():
                    folders[way].append(train_in(session, method, Recipe(), seed, silent).folder)
            dataset = sessions["plain"].dataset
            train = Counter(dataset.task.labels[place] for place in flat(dataset.train.targets).tolist())
            told = {
                "set": source, "method": name, "status": "ok", "seeds": seeds, "train": dict(train.most_common()),
                "weights": weights_told(dataset, folders["plain"], folders["balanced"]),
                "costs": costs_told(dataset, folders["plain"], name),
            }  # fmt: skip
            rows[source, name] = told
            written(list(rows.values()))


def written(rows: list[dict[str, Any]]) -> None:
    """Write the rows with p-values corrected over all of them, and what they were made by."""
    for part in (lambda row: row["weights"]["macro_f1"], lambda row: row["costs"]):
        for row, p in zip(rows, holm([part(row)["p"] for row in rows]), strict=True):
            delta = part(row)["difference"][0]
            part(row)["p_holm"] = p
            part(row)["verdict"] = "cannot tell" if p >= 0.05 else "better" if delta > 0 else "worse"
    import sklearn
    import torch

    import graftwork

    versions = {"graftwork": graftwork.__version__, "torch": torch.__version__, "scikit-learn": sklearn.__version__}
    content = {
        "command": "python benchmarks/imbalance/run.py --data DATA",
        "rows_of": ROWS,
        "versions": versions | {"python": platform.python_version()},
        "rows": rows,
    }
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("imbalance_work"))
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    measure(given.data, given.work, given.methods.split(","), given.seeds)


if __name__ == "__main__":
    main()
