"""What methods score if they choose among their fits on validation, and if on folds of train: `folds.py`.

Run as `python folds.py --data FOLDER`; without `--data` the tables are printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pooled_fits import task_of
from small import DRAWS
from torch import Tensor
from torch.nn.functional import linear

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Workbench
from graftwork.core.run import Recipe
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.methods.prototype import nearest_mean, sharpness
from graftwork.methods.tfidf_svm import STRENGTHS as SVM_STRENGTHS
from graftwork.methods.tfidf_svm import SvmRows, features, make_vectorizer
from graftwork.run.execute import workbench
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.train.linear_fit import STRENGTHS, StandardisedFeatures, fit_linear, kept_targets

RESULT = Path(__file__).parent.absolute() / "results" / "folds.json"
ROWS = (40, 60, 120, 250, 500)  # rows of validation
REPEATS = 100  # draws of each number
METRIC, LOSS, TRAIN = "accuracy on validation", "loss on validation", "cross-validation on train"


def probes(bench: Workbench) -> list[Tensor]:
    """Fit every block, the last first, with every penalty, the strongest first; return the pool's logits (N, C)."""
    kind, outputs = bench.setting.kind, bench.setting.kind.outputs(bench.setting.task)
    train, pool = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
    targets, found = kept_targets(bench.train, train.encoded), []
    assert bench.setting.backbone is not None
    for block in reversed(range(bench.setting.backbone.card.blocks + 1)):
        inputs, fit = StandardisedFeatures.of(train.pooled(block)), None
        for strength in sorted(STRENGTHS, reverse=True):
            fit = fit_linear(inputs, targets, kind, outputs, strength, fit)
            found.append(fit.logits(pool.pooled(block)))
    return found


def prototypes(bench: Workbench) -> list[Tensor]:
    """Return the pool's logits (N, C) by the means of every block, the last first, at the pool's best temperature."""
    kind, outputs = bench.setting.kind, bench.setting.kind.outputs(bench.setting.task)
    train, pool = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
    targets, asked = kept_targets(bench.train, train.encoded), kept_targets(bench.validation, pool.encoded)
    found = []
    assert bench.setting.backbone is not None
    for block in reversed(range(bench.setting.backbone.card.blocks + 1)):
        layer = nearest_mean(train.pooled(block), targets, outputs, "euclid")
        logits = linear(pool.pooled(block), *layer)
        found.append(sharpness(logits, asked, kind) * logits)
    return found


def machines(bench: Workbench) -> list[Tensor]:
    """Fit the SVM with every strength; return the pool's distances (N, C)."""
    splits = [split.examples for split in (bench.train, bench.validation)]
    vectorizer = make_vectorizer().fit([text for example in splits[0] for text in example.inputs.values()])
    known, asked = (features(vectorizer, examples) for examples in splits)
    rows, everything = SvmRows.of(bench, known), np.arange(len(splits[0]))
    fits = [rows.solve(everything, strength) for strength in SVM_STRENGTHS]
    return [torch.from_numpy(asked @ weight.T + bias) for weight, bias in fits]


CANDIDATES: Mapping[str, Callable[[Workbench], list[Tensor]]] = {
    "linear_probe": probes, "prototype": prototypes, "tfidf_svm": machines,
}  # fmt: skip


def measured(name: str, task: gw.Task, folder: Path) -> dict[str, Any]:
    """Return a method's mean accuracy on the rows not drawn, and how far validation flatters it, by way of choosing."""
    method = parse_method(name)
    settings = RunSettings(runs=folder / "runs", cache=folder / "cache", precision="bf16")
    bench = workbench(open_session(task, [method], settings), method, Recipe(), 0)
    if bench.setting.backbone is not None:
        bench.frozen(bench.train, None), bench.frozen(bench.validation, None)  # so that no fit below waits for a pass
    began = time.perf_counter()
    logits = CANDIDATES[name](bench)
    middle = time.perf_counter()
    fitted = method.method.fit(bench)
    seconds = {METRIC: middle - began, TRAIN: time.perf_counter() - middle}
    targets = torch.from_numpy(np.asarray(bench.validation.targets))
    right = np.stack([(one.argmax(dim=1) == targets).numpy() for one in logits])  # (M, N)
    losses = np.stack([-one.log_softmax(dim=1).gather(1, targets[:, None])[:, 0].numpy() for one in logits])
    own = np.asarray(fitted.logits(bench.validation.examples)).argmax(axis=1) == targets.numpy()
    rows = {str(count): redrawn(right, losses, own, count) for count in ROWS if 2 * count <= len(own)}
    return {"train": len(bench.train.examples), "seconds": seconds, "rows": rows}


def redrawn(
    right: NDArray[np.bool_], losses: NDArray[np.float64], own: NDArray[np.bool_], rows: int
) -> dict[str, tuple[float, float]]:
    """Return by way of choosing the mean accuracy and the mean flattery of `REPEATS` draws of validation rows."""
    scores, flattered = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for number in range(REPEATS):
        order = np.random.default_rng(number).permutation(len(own))
        here, there = order[:rows], order[rows:]
        kept = {
            METRIC: right[right[:, here].mean(axis=1).argmax()],
            LOSS: right[losses[:, here].mean(axis=1).argmin()],
            TRAIN: own,
        }
        for way, one in kept.items():
            scores[way].append(one[there].mean())
            flattered[way].append(one[here].mean() - one[there].mean())
    return {way: (statistics.fmean(scores[way]), statistics.fmean(flattered[way])) for way in scores}


def table(name: str, sets: Mapping[str, Any]) -> str:
    """Format the results of a method as Markdown: accuracy, and points by which validation flatters it."""
    lines = [f"| `{name}`, {len(sets)} sets | {' | '.join(f'{rows} rows' for rows in ROWS)} | seconds |"]
    lines.append("| --- " * (len(ROWS) + 2) + "|")
    for way in (METRIC, LOSS, TRAIN):
        cells = []
        for rows in ROWS:
            pairs = [one["rows"][str(rows)][way] for one in sets.values() if str(rows) in one["rows"]]
            score, flattery = (100 * statistics.fmean(values) for values in zip(*pairs, strict=True))
            cells.append(f"{score:.1f}, {round(flattery, 1) + 0.0:+.1f}")
        seconds = [one["seconds"][way] for one in sets.values() if way in one["seconds"]]
        cells.append(f"{statistics.geometric_mean(seconds):.2f}" if seconds else "")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the methods and sets that are not there yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    new = {"format": 2, "methods": {name: {} for name in CANDIDATES}, "environment": environment()}
    content = read_json(asked.out) if asked.out.is_file() else new
    for name in DRAWS if asked.data else ():
        with tempfile.TemporaryDirectory() as work:
            task = task_of(name, asked.data.absolute(), Path(work))
            for method, found in content["methods"].items():
                if task is not None and name not in found:
                    found[name] = measured(method, task, Path(work))
                    write_json(asked.out, content)
    print("\n\n".join(table(method, found) for method, found in content["methods"].items()))


if __name__ == "__main__":
    main()
