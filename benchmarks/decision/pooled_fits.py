"""Fits on a few hundred rows, with all predictions that each chose among for a pool of further rows.

`selection_bias.py` runs this: `python pooled_fits.py --data FOLDER --work FOLDER [NAME …]` writes `NAME.npz`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from replays import KEPT
from small import DRAWS, METHODS
from torch import Tensor
from trainer_rows import FILES, as_tsv, once, rows_of, texts_of

import graftwork as gw
from graftwork.core.configured_methods import ConfiguredMethod, parse_method
from graftwork.core.meter import Stopwatch
from graftwork.core.method import Logits, Workbench
from graftwork.core.run import Recipe
from graftwork.decision.traits import Arm, Traits
from graftwork.pretrained.open_backbone import whole_name
from graftwork.run.execute import workbench
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.train.loop import FittedModel
from graftwork.train.training_state import TrainingState, snapshot

Bits = np.ndarray[Any, Any]
POOL, LEAST_POOL, TEST = 1000, 400, 20  # rows of the pool, at most and at least; rows of test, which nothing reads


def task_of(name: str, data: Path, work: Path) -> gw.Task | None:
    """Write rows of a data set's train: some to train on, others as the pool. None if they are too few."""
    train, _, _ = FILES.get(name, ("train", "", ""))
    rows = once(rows_of(data / name, train) or rows_of(data / name, "all"), set())
    rows.sort(key=lambda row: hashlib.sha256(repr(texts_of(row)).encode()).digest())
    most = DRAWS[name]
    known = {row["label"] for row in rows[:most]}
    others = [row for row in rows[most:] if row["label"] in known]
    parts = {"train": rows[:most], "test": others[:TEST], "validation": others[TEST:][:POOL]}
    if len(parts["validation"]) < LEAST_POOL:
        return None
    files = {split: work / f"{name}.{split}.tsv" for split in parts}
    for split, of_split in parts.items():
        files[split].write_bytes(as_tsv(of_split))
    return gw.Task.from_file(
        files["train"], name=name, validation=files["validation"], test=files["test"], metrics=("accuracy",)
    )


class Recorder:
    """A scorer that keeps, for each prediction it has scored, which rows are right."""

    def __init__(self, session: Session, bench: Workbench):
        self.session, self.bench = session, bench
        self.tried: list[Bits] = []

    def __call__(self, logits: Logits) -> float:
        """Return the accuracy on the pool."""
        guesses = self.bench.setting.kind.predictions(logits, self.session.dataset.task)
        self.tried.append(np.asarray(guesses == self.session.dataset.validation.targets))
        return float(self.tried[-1].mean())


def fit(session: Session, method: ConfiguredMethod) -> tuple[Bits, Bits, float]:
    """Return whether each prediction that a fit tried is right (T, N), in order, the same of what it would have kept
    for each, and its seconds but for evaluation.

    Only one prediction is returned of a method that keeps none of those that it has scored. What would have been kept
    differs from what was tried where weights half-way from the head start are kept.
    """
    bench, watch = workbench(session, method, Recipe(), 0), Stopwatch()
    scorer = Recorder(session, bench)
    with weights_by_epoch() as epochs:
        fitted = method.method.fit(replace(bench, score=scorer, shared=None))  # nothing is remembered of other fits
    seconds = watch.read().wall_seconds + bench.charged.wall_seconds - bench.profile.read().get("evaluate", 0.0)
    examples, share = session.dataset.validation.examples, bench.recipe.get("kept_share", 1.0)
    if not scorer.tried:
        scorer(fitted.logits(examples))
    tried, halfway = np.stack(scorer.tried), Recorder(session, bench)
    if share == 1 or not epochs:
        return tried, tried, seconds
    assert isinstance(fitted, FittedModel)
    for start, end in epochs:
        fitted.model.load_delta({name: torch.lerp(start[name], weight, share) for name, weight in end.items()})
        halfway(fitted.logits(examples))
    return tried[-len(epochs) :], np.stack(halfway.tried), seconds


@contextmanager
def weights_by_epoch() -> Iterator[list[tuple[Mapping[str, Tensor], Mapping[str, Tensor]]]]:
    """Collect the weights after the head start and those after each epoch while training."""
    found: list[tuple[Mapping[str, Tensor], Mapping[str, Tensor]]] = []
    validated = TrainingState.validated

    def kept(training: TrainingState, reached: float) -> None:
        validated(training, reached)
        if training.bench.recipe["kept_share"] < 1:
            found.append((training.started, snapshot(training.plan.delta)))

    with patch.object(TrainingState, "validated", kept):
        yield found


def fit_all(name: str, task: gw.Task, work: Path) -> None:
    """Fit all methods on a draw, and write what they tried."""
    methods = [parse_method(method) for method in METHODS]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        setup = RunSettings(runs=Path(folder) / "runs", cache=Path(folder) / "cache", precision="bf16")
        session = open_session(task, methods, setup)
        assert session.backbone is not None
        found, about = {}, []
        for method in methods:
            right, kept, seconds = fit(session, method)
            arm = Arm.of(method)
            found[arm.label] = np.packbits(right, axis=1)
            if kept is not right:
                found[f"{arm.label}{KEPT}"] = np.packbits(kept, axis=1)
            about.append({**asdict(arm), "seconds": seconds})
        traits = Traits.of(session.dataset, whole_name(session.backbone.card.id))
        told = {"pool": len(session.dataset.validation.examples), "traits": asdict(traits), "methods": about}
    np.savez_compressed(work / f"{name}.npz", about=json.dumps(told), **found)


def main() -> None:
    """Fit on the draws that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(DRAWS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.work.mkdir(parents=True, exist_ok=True)
    for name in asked.names:
        if not (asked.work / f"{name}.npz").is_file():
            task = task_of(name, asked.data.absolute(), asked.work.absolute())
            print(name, "has too few rows" if task is None else "begins", flush=True)
            if task is not None:
                fit_all(name, task, asked.work.absolute())


if __name__ == "__main__":
    main()
