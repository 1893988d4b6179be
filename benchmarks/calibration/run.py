"""Calibration error before and after the temperature: `python run.py --data FOLDER --runs FOLDER`. Resumable."""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import graftwork as gw
from graftwork.core.ragged import flat
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.module.calibration import calibration_error, reliability
from graftwork.registry import kinds
from graftwork.run.store import read_logits, read_predictions

HERE = Path(__file__).parent.absolute()
TRAIN, HELD, TEST = 500, 250, 1000
DRAWS = 1000
METHODS = ("tfidf_svm", "linear_probe", "adapter")
SETS: Mapping[str, tuple[str, str]] = {  # name -> file trained on, file tested on; one file: both are drawn from it
    "ag_news": ("train.tsv.gz", "test.tsv"),
    "banking77": ("train.tsv", "test.tsv"),
    "cola": ("train.tsv", "dev.tsv"),
    "cr": ("all.tsv", ""),
    "crowdflower_emotion": ("all.tsv.gz", ""),
    "mr": ("all.tsv", ""),
    "sick_nli": ("train.tsv", "test.tsv"),
    "sst2": ("train.tsv", "test.tsv"),
    "sst5": ("train.tsv", "test.tsv"),
    "trec6": ("train.tsv", "test.tsv"),
}


def rows_of(path: Path) -> list[list[str]]:
    """Return the lines of a TSV, the header first."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        return [line.rstrip("\n").split("\t") for line in stream]


def drawn(data: Path, name: str, folder: Path) -> gw.Task:
    """Write files of 500, 250 and at most 1,000 rows, drawn without repeats, and return their task."""
    learnt, asked = SETS[name]
    header, *rows = rows_of(data / name / learnt)
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    parts = {"train": order[:TRAIN], "validation": order[TRAIN : TRAIN + HELD]}
    listed = {split: [rows[i] for i in places] for split, places in parts.items()}
    if asked:
        tests = rows_of(data / name / asked)[1:]
        listed["test"] = [tests[i] for i in np.random.default_rng(1).permutation(len(tests)).tolist()[:TEST]]
    else:
        listed["test"] = [rows[i] for i in order[TRAIN + HELD :][:TEST]]
    known = {row[header.index("label")] for row in listed["train"]}  # a rare class may not be drawn
    paths = {}
    for split, chosen in listed.items():
        paths[split] = folder / f"{name}_{split}.csv"
        with paths[split].open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([header, *(row for row in chosen if row[header.index("label")] in known)])
    return gw.Task(name, paths["train"], validation=paths["validation"], test=paths["test"])


def measured(task: gw.Task, method: str, seed: int, runs: Path) -> dict[str, Any]:
    """Train once; return what the module tells, and the interval of the change on test (1,000 bootstrap draws)."""
    run = gw.train(task, method=method, seed=seed, runs=runs / task.name, precision="fp32")
    module = read_json(run.folder / "module" / "module.json")
    told, labels = module["calibration"], module["task"]["labels"]
    logits = flat(read_logits(run.folder, "test", kinds.get("classification"))).astype(np.float64)
    lines = [line for line in read_predictions(run.folder) if line["split"] == "test"]
    right = logits.argmax(axis=1) == np.array([labels.index(line["target"]) for line in lines])
    sure = [_surest(logits / temperature) for temperature in (1.0, told["temperature"])]
    draws = np.random.default_rng(0).integers(len(right), size=(DRAWS, len(right)))
    errors = [[calibration_error(reliability(one[draw], right[draw])) for draw in draws] for one in sure]
    low, high = np.percentile(np.subtract(errors[1], errors[0]), [2.5, 97.5]).tolist()
    return told | {"change": {"low": low, "high": high}, "test_rows": len(right), "accuracy": float(right.mean())}


def _surest(logits: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares.max(axis=1) / shares.sum(axis=1))


def main() -> None:
    """Measure every set, method and seed that results/ does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, required=True, help="folder for runs and drawn rows")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    tasks = {name: drawn(chosen.data, name, chosen.runs) for name in chosen.sets.split(",")}
    for method in chosen.methods.split(","):
        for name, task in tasks.items():
            for seed in range(chosen.seeds):
                out = HERE / "results" / f"{name}_{method}_{seed}.json"
                if out.exists():
                    continue
                result = {"format": 1, "status": "ok", "set": name, "method": method, "seed": seed}
                write_json(out, result | measured(task, method, seed, chosen.runs) | {"environment": environment()})


if __name__ == "__main__":
    main()
