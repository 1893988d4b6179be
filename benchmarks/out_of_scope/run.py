"""Out-of-scope scores compared on held-out classes: `python run.py --data FOLDER --runs FOLDER`. Resumable."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score

import graftwork as gw
from graftwork.core.example import Example
from graftwork.evaluate.features import frozen_features
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone

HERE = Path(__file__).parent.absolute()
FROZEN = "frozen features"
METHODS = (FROZEN, "linear_probe", "adapter")
SETS: Mapping[str, tuple[int, int]] = {
    "banking77": (20, 10),
    "clinc150": (40, 10),
    "trec6": (1, 100),
    "trec50": (10, 25),
}
#                    name -> classes held out, rows of each other class trained on (at most)
HELD, TEST = 300, 600
Array = NDArray[np.float64]


def rows_of(path: Path) -> list[list[str]]:
    """Return the rows of a TSV, without the header."""
    return [line.rstrip("\n").split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def drawn(data: Path, name: str, seed: int, folder: Path) -> tuple[gw.Task, list[str], list[str]]:
    """Hold classes out; return the task of the others, its test texts, and test texts of the classes held out."""
    strange_classes, each = SETS[name]
    random = np.random.default_rng([seed, strange_classes])
    rows, tests = rows_of(data / name / "train.tsv"), rows_of(data / name / "test.tsv")
    counts = {label: sum(row[1] == label for row in rows) for label in sorted({row[1] for row in rows})}
    classes = sorted(label for label, count in counts.items() if count >= each)
    strange = set(random.permutation(classes)[:strange_classes].tolist())
    known = {label for label in classes if label not in strange}
    taken: dict[str, int] = {}
    parts: dict[str, list[list[str]]] = {"train": [], "validation": []}
    for place in random.permutation(len(rows)).tolist():
        text, label = rows[place]
        if label not in known:
            continue
        taken[label] = taken.get(label, 0) + 1
        if taken[label] <= each:
            parts["train"].append([text, label])
        elif len(parts["validation"]) < HELD:
            parts["validation"].append([text, label])
    order = random.permutation(len(tests)).tolist()
    parts["test"] = [tests[i] for i in order if tests[i][1] in known][:TEST]
    far = [tests[i][0] for i in order if tests[i][1] in strange][:TEST]
    paths = {}
    for split, listed in parts.items():
        paths[split] = folder / f"{name}_{seed}_{split}.csv"
        with paths[split].open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["text", "label"], *listed])
    task = gw.Task(name, paths["train"], validation=paths["validation"], test=paths["test"])
    return task, [row[0] for row in parts["test"]], far


def distances(trained: Array, classes: NDArray[np.int64], asked: Array) -> dict[str, Array]:
    """Return scores (N,) in the frozen features (N, D), higher for texts more unlike those trained on."""
    labels = np.unique(classes)
    means = np.stack([trained[classes == label].mean(axis=0) for label in labels])
    residuals = trained - means[np.searchsorted(labels, classes)]
    centre = trained.mean(axis=0)

    def nearest(covariance: Array, centres: Array) -> Array:
        factor = np.linalg.cholesky(np.linalg.inv(covariance))
        return np.asarray((((asked[:, None] - centres[None]) @ factor) ** 2).sum(axis=2).min(axis=1))

    def unit(rows: Array) -> Array:
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    shared, everything = LedoitWolf().fit(residuals).covariance_, LedoitWolf().fit(trained - centre).covariance_
    mahalanobis, background = nearest(shared, means), nearest(everything, centre[None])
    return {
        "cosine to class mean": 1 - (unit(asked) @ unit(means).T).max(axis=1),
        "cosine to class mean, centred": 1 - (unit(asked - centre) @ unit(means - centre).T).max(axis=1),
        "cosine to nearest row": 1 - (unit(asked) @ unit(trained).T).max(axis=1),
        "Mahalanobis, diagonal": nearest(np.diag(residuals.var(axis=0) + 1e-9), means),
        "Mahalanobis": mahalanobis,
        "relative Mahalanobis": mahalanobis - background,
    }


def told(scores: Array, strange: NDArray[np.bool_]) -> dict[str, float]:
    """Return the AUROC, and the share of texts in scope called strange where 95 % of the strange ones are."""
    at = np.quantile(scores[strange], 0.05)
    return {"auroc": float(roc_auc_score(strange, scores)), "fpr95": float((scores[~strange] >= at).mean())}


def measured(data: Path, name: str, method: str, seed: int, folder: Path) -> dict[str, Any]:
    """Return the figures of the scores of a method's logits or, for "frozen features", of distances in these."""
    task, near, far = drawn(data, name, seed, folder)
    strange = np.repeat([False, True], [len(near), len(far)])
    if method == FROZEN:
        with task.data.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        classes = np.unique([row["label"] for row in rows], return_inverse=True)[1]
        backbone = open_backbone("minilm", precision="fp32")
        trained, asked = (
            frozen_features(backbone, [Example(str(i), {"text": text}) for i, text in enumerate(texts)])
            for texts in ([row["text"] for row in rows], [*near, *far])
        )
        scores = distances(trained, classes, asked)
    else:
        run = gw.train(task, method=method, seed=seed, runs=folder / f"{name}_{seed}", precision="fp32")
        module = TaskModule.load(run.folder)
        logits = np.asarray(module.fitted.logits(module.examples([*near, *far])), np.float64)
        scores = {
            "maximum probability": -log_softmax(logits, axis=1).max(axis=1),
            "energy": -logsumexp(logits, axis=1),
            "maximum logit": -logits.max(axis=1),
        }
    sizes = {"in_scope": len(near), "out_of_scope": len(far)}
    return {"rows": sizes, "scores": {score: told(values, strange) for score, values in scores.items()}}


def main() -> None:
    """Measure every method, seed and set that results/ does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, required=True, help="folder for runs and drawn rows")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    for method, seed, name in product(chosen.methods.split(","), range(chosen.seeds), SETS):
        out = HERE / "results" / f"{name}_{method.replace(' ', '_')}_{seed}.json"
        if not out.exists():
            result = {"format": 1, "status": "ok", "set": name, "method": method, "seed": seed}
            found = measured(chosen.data, name, method, seed, chosen.runs)
            write_json(out, result | found | {"environment": environment()})


if __name__ == "__main__":
    main()
