"""True and false alarm rates of `graft shift`: `python run.py --data FOLDER`."""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.evaluate.features import frozen_features
from graftwork.evaluate.two_sample import LEVEL, two_sample
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.pretrained.open_backbone import open_backbone

HERE = Path(__file__).parent.absolute()
SIZES = ((100, 50), (600, 200))  # texts trained on, new texts
OTHERS: Mapping[str, tuple[str, int, tuple[float, ...]]] = {  # name -> file, number of texts, shares among the new ones
    "questions": ("trec6/test.tsv", 60, (0.05, 0.1, 0.2)),
    "whole reviews": ("imdb/test.tsv.gz", 60, (0.05, 0.1, 0.2)),
    "sentences of another collection": ("mr/all.tsv", 250, (1.0,)),
}


def texts(path: Path, most: int) -> list[str]:
    """Return distinct texts of the first column, from the whole file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        listed = list(dict.fromkeys(line.split("\t")[0] for line in stream))[1:]
    return listed[:: max(1, len(listed) // most)][:most]


def read(listed: Sequence[str]) -> NDArray[np.float64]:
    """Return (N, P), the features that `graft shift` uses."""
    examples = [Example(f"{i}", {"text": text}) for i, text in enumerate(listed)]
    return frozen_features(open_backbone("minilm", precision="fp32"), examples)


def trials(
    same: NDArray[np.float64], other: NDArray[np.float64], old: int, new: int, share: float, count: int
) -> dict[str, Any]:
    """Compare `old` sentences with `new` others, of which a `share` is from another domain, in `count` random draws."""
    alarms, areas, smallest = 0, [], []
    for seed in range(count):
        random = np.random.default_rng([seed, old, new])
        order, strange = random.permutation(len(same)), round(share * new)
        drawn = other[random.permutation(len(other))[:strange]]
        fresh = np.concatenate([same[order[old : old + new - strange]], drawn])
        found = two_sample(same[order[:old]], fresh, np.arange(old + new), seed)
        alarms += found.p < LEVEL
        areas.append(found.auc)
        smallest.append(found.smallest)
    told = {"alarms": alarms, "trials": count, "auc": float(np.mean(areas)), "smallest": float(np.mean(smallest))}
    return {"trained_on": old, "new": new, "share_of_another_domain": share} | told


def main() -> None:
    """Measure false alarms by size, then alarms by share of another domain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--trials", type=int, default=100)
    chosen = parser.parse_args()
    start = time.process_time()
    same = read(texts(chosen.data / "sst2" / "test.tsv", 1821))
    found = [{"other": ""} | trials(same, same[:0], old, new, 0.0, chosen.trials) for old, new in SIZES]
    for name, (path, most, shares) in OTHERS.items():
        other = read(texts(chosen.data / path, most))
        found += [{"other": name} | trials(same, other, *SIZES[-1], share, chosen.trials // 5) for share in shares]
    result = {"format": 1, "status": "ok", "found": found, "processor_seconds": time.process_time() - start}
    write_json(HERE / "results" / "sst2.json", result | {"environment": environment()})


if __name__ == "__main__":
    main()
