"""Precision of suspected label errors where we flipped labels: `python run.py --data FOLDER [--peer FOLDER]`.

One board for each set: `tfidf_svm` and `linear_probe`, three seeds, trained on clean rows. Then, for each seed, 5 % of
the test labels are flipped to another class drawn at random; training never sees test labels. Counted is how many of
the first 50 suspects were flipped. Sets whose result is in results/ are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graftwork as gw
from graftwork.compare.mistakes import tempered_logits
from graftwork.evaluate.label_errors import mean_probabilities, suspected_labels
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.registry import kinds
from graftwork.run.store import read_predictions

HERE = Path(__file__).parent.absolute()
SETS = {  # name -> file of train, file of test
    "ag_news": ("test.tsv", "test.tsv"),
    "banking77": ("train.tsv", "test.tsv"),
    "sms_spam": ("all.tsv", "all.tsv"),
    "sst2": ("train.tsv", "test.tsv"),
}
TRAIN, TEST, SEEDS, SHARE, FIRST = 1_500, 1_200, 3, 0.05, 50
METHODS = ("tfidf_svm", "linear_probe")
Found = Callable[[NDArray[np.float64], NDArray[np.int64]], list[int]]


def rows(path: Path) -> list[tuple[str, str]]:
    """Return the distinct texts and labels of a file, in an order that does not depend on its own."""
    with path.open(encoding="utf-8", newline="") as stream:
        read = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        found = {row["text"]: (row["text"], row["label"]) for row in read}
    listed = sorted(found.values())
    return [listed[place] for place in np.random.default_rng(0).permutation(len(listed))]


def write(path: Path, listed: list[tuple[str, str]]) -> None:
    """Write a TSV file."""
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in listed), encoding="utf-8")


def board(folder: Path, train: list[tuple[str, str]], test: list[tuple[str, str]]) -> gw.Leaderboard:
    """Return the board of all methods and seeds, trained in `folder`."""
    for name, listed in (("train", train), ("test", test)):
        write(folder / f"{name}.tsv", listed)
    task = gw.Task.from_file(folder / "train.tsv", test=folder / "test.tsv")
    given: dict[str, Any] = {"runs": folder / "runs", "out": folder / "board", "cache": folder / "cache"}
    return gw.compare(task, methods=METHODS, seeds=SEEDS, exhaustive=True, jobs=1, examples=False, **given)


def peers(folder: Path | None) -> dict[str, Found]:
    """Return cleanlab's two ways of ranking, each as a function of probabilities and given labels; none without it."""
    if folder is not None:
        sys.path.append(str(folder))
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return {}

    def issues(by: str) -> Found:
        return lambda chances, given: find_label_issues(given, chances, return_indices_ranked_by=by, n_jobs=1).tolist()

    def scores(by: str) -> Found:
        return lambda chances, given: np.argsort(get_label_quality_scores(given, chances, method=by)).tolist()

    names = ("self_confidence", "normalized_margin")
    return {f"cleanlab issues, {name}": issues(name) for name in names} | {
        f"cleanlab scores, {name}": scores(name) for name in names
    }


def flipped(given: NDArray[np.int64], classes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return labels of which a share is another class, and which they are."""
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(given))[: round(SHARE * len(given))]
    made, which = given.copy(), np.zeros(len(given), dtype=bool)
    made[chosen] = (given[chosen] + random.integers(1, classes, len(chosen))) % classes
    which[chosen] = True
    return made, which


def measure(data: Path, name: str, ways: Mapping[str, Found]) -> dict[str, Any]:
    """Train on one set and count what each way finds, for every seed."""
    train, test = (rows(data / name / file) for file in SETS[name])
    if SETS[name][0] == SETS[name][1]:
        train = train[TEST : TEST + TRAIN]
    train, test = train[:TRAIN], test[:TEST]
    with tempfile.TemporaryDirectory() as place:
        made = board(Path(place), train, test)
        kind, runs = kinds.get("classification"), Path(place) / "runs"
        logits = {row["method"]: [np.asarray(tempered_logits(runs / run, kind)) for run in row["runs"]]
                  for row in made.rows}  # fmt: skip
        lines = [line for line in read_predictions(runs / made.rows[0]["runs"][0]) if line["split"] == "test"]
        accuracy = {row["method"]: row["scores"]["accuracy"]["mean"] for row in made.rows}
    labels = sorted({label for _, label in train})
    clean = np.array([labels.index(line["target"]) for line in lines], dtype=np.int64)
    told = []
    for seed in range(SEEDS):
        given, which = flipped(clean, len(labels), seed)
        chances = mean_probabilities([[of[min(seed, len(of) - 1)]] for of in logits.values()])
        for way, ranked in ways.items():
            first = ranked(chances, given)[:FIRST]
            told.append({"seed": seed, "way": way, "suspects": len(ranked(chances, given)),
                         "hits": int(which[first].sum()), "flipped": int(which.sum())})  # fmt: skip
    return {"classes": len(labels), "train": len(train), "test": len(test), "accuracy": accuracy, "found": told}


def main() -> None:
    """Measure every set without a result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--peer", type=Path, help="folder that cleanlab is installed in: pip install --target FOLDER")
    chosen = parser.parse_args()
    ours: Found = lambda chances, given: [one.row for one in suspected_labels(chances, given)]  # noqa: E731
    ways = {"graftwork": ours} | peers(chosen.peer)
    versions = {"cleanlab": importlib.metadata.version("cleanlab")} if len(ways) > 1 else {}
    for name in SETS:
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            continue
        told = {"format": 1, "status": "ok", "set": name, "first": FIRST, "share": SHARE}
        told |= measure(chosen.data, name, ways) | {"command": "python benchmarks/label_errors/run.py --data DATA"}
        write_json(path, told | {"peer": versions, "environment": environment()})
        print(name, flush=True)


if __name__ == "__main__":
    main()
