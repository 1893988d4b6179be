"""What a linear probe scores if its block and penalty are chosen on validation, and if on train: `probe_choice.py`.

Run as `python probe_choice.py --data FOLDER`; without `--data` the table is printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pooled_fits import task_of
from small import DRAWS
from torch.nn.functional import linear

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import FrozenPass, Workbench
from graftwork.core.run import Recipe
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment
from graftwork.run.execute import workbench
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.train.linear_fit import STRENGTHS, StandardisedFeatures, fit_linear, kept_targets

RESULT = Path(__file__).parent.absolute() / "results" / "probe_choice.json"
ROWS = (40, 60, 120, 250, 500)  # rows of validation
REPEATS = 100  # draws of each number
METRIC, LOSS, TRAIN = "accuracy on validation", "loss on validation", "cross-validation on train"


def all_fits(bench: Workbench, train: FrozenPass, pool: FrozenPass) -> tuple[NDArray[Any], NDArray[Any]]:
    """Fit every block, the last first, with every penalty, the strongest first.

    Return for each fit and row of the pool whether it is right, and its loss: (M, N) each.
    """
    kind, outputs = bench.setting.kind, bench.setting.kind.outputs(bench.setting.task)
    targets, asked = kept_targets(bench.train, train.encoded), kept_targets(bench.validation, pool.encoded)
    right, losses = [], []
    assert bench.setting.backbone is not None
    for block in reversed(range(bench.setting.backbone.card.blocks + 1)):
        features, fit = StandardisedFeatures.of(train.pooled(block)), None
        for strength in sorted(STRENGTHS, reverse=True):
            fit = fit_linear(features, targets, kind, outputs, strength, fit)
            likely = fit.logits(pool.pooled(block)).log_softmax(dim=1)
            right.append((likely.argmax(dim=1) == asked).numpy())
            losses.append(-likely.gather(1, asked[:, None])[:, 0].numpy())
    return np.stack(right), np.stack(losses)


def measured(task: gw.Task, folder: Path) -> dict[str, Any]:
    """Return the mean accuracy on the rows not drawn, and how far validation flatters it, by way of choosing."""
    method = parse_method("linear_probe")
    settings = RunSettings(runs=folder / "runs", cache=folder / "cache", precision="bf16")
    bench = workbench(open_session(task, [method], settings), method, Recipe(), 0)
    train, pool = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
    began = time.perf_counter()
    right, losses = all_fits(bench, train, pool)
    middle = time.perf_counter()
    probe = method.method.fit(bench)
    seconds = {METRIC: middle - began, TRAIN: time.perf_counter() - middle}
    mixed = sum(float(share) * pool.pooled(block) for block, share in enumerate(probe.shares) if share)
    asked = kept_targets(bench.validation, pool.encoded)
    own = (linear(mixed, probe.weight, probe.bias).argmax(dim=1) == asked).numpy()
    found: dict[str, dict[str, list[float]]] = {}
    for rows in (count for count in ROWS if 2 * count <= len(own)):
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
        found[str(rows)] = {way: [statistics.fmean(scores[way]), statistics.fmean(flattered[way])] for way in scores}
    return {"train": len(bench.train.examples), "seconds": seconds, "rows": found}


def table(content: Mapping[str, Any]) -> str:
    """Format the results as Markdown: accuracy, and points by which validation flatters it."""
    sets = content["sets"]
    lines = [f"| {len(sets)} sets | {' | '.join(f'{rows} rows' for rows in ROWS)} | seconds |"]
    lines.append("| --- " * (len(ROWS) + 2) + "|")
    for way in (METRIC, LOSS, TRAIN):
        cells = []
        for rows in ROWS:
            pairs = [one["rows"][str(rows)][way] for one in sets.values() if str(rows) in one["rows"]]
            score, flattery = (100 * statistics.fmean(values) for values in zip(*pairs, strict=True))
            cells.append(f"{score:.1f}, {flattery:+.1f}")
        seconds = [one["seconds"][way] for one in sets.values() if way in one["seconds"]]
        cells.append(f"{statistics.geometric_mean(seconds):.1f}" if seconds else "")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the sets that are not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    content = read_json(asked.out) if asked.out.is_file() else {"format": 1, "sets": {}, "environment": environment()}
    for name in DRAWS if asked.data else ():
        with tempfile.TemporaryDirectory() as work:
            task = None if name in content["sets"] else task_of(name, asked.data.absolute(), Path(work))
            if task is not None:
                content["sets"][name] = measured(task, Path(work))
                write_json(asked.out, content)
    print(table(content))


if __name__ == "__main__":
    main()
