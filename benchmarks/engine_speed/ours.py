"""Graftwork's own engine as a contender, and the same engine with one of its rules switched off.

The loop is the package's: `fit_by_gradient` calls its workbench for the order of every epoch and for the score of every
validation, and there the stopwatch is read. An epoch's time includes all that a user pays, except validation.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from pieces import Piece, task
from protocol import Answer, Gate, Trained, Watch
from torch.nn.functional import pad

from graftwork.core import length_buckets
from graftwork.core.backbone import Encoded, Inputs
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Logits, Workbench
from graftwork.core.model import Model
from graftwork.core.run import Recipe
from graftwork.core.task import Split
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.run.execute import workbench
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.loop import Attaches, FittedModel, fit_by_gradient

SWITCHES = {
    "bf16": "weights and matrix products in fp32",
    "length_buckets": "batches drawn at random, padded to their longest",
    "short_padding": "every batch padded to 128 tokens",
    "touched_rows": "dense gradients and updates for the embedding tables",
    "no_dropout": "dropout in every block, as the network was configured",
    "prefix_cache": "frozen blocks computed again in every step",
    "shared_pass": "the frozen pass computed anew for every seed",
    "own_lengths": "both texts of a pair padded to the longest text of the batch",
    "no_frozen_gradients": "gradients computed for frozen weights too, and thrown away",
}
PADDED = 128
Answers = Callable[[Sequence[Example]], Logits]  # the predictor that a fit returns


@dataclass
class Switched:
    """A method with some of the engine's rules switched off. Implements `Attaches`."""

    method: Attaches
    off: frozenset[str]
    model: Model | None = None

    @property
    def learning_rate(self) -> float:
        """Return the method's learning rate."""
        return self.method.learning_rate

    def attach(self, model: Model) -> None:
        """Attach the method, then undo the rules in `off`."""
        model.network.requires_grad_(False)  # shared with the previous seed's model
        self.method.attach(model)
        self.model = model
        if "prefix_cache" in self.off:
            model.start = 0
        if self.off & {"touched_rows", "no_frozen_gradients"}:
            for table in model.backbone.sites("embedding").values():
                cast(torch.nn.Embedding, table).sparse = False
        if "no_frozen_gradients" in self.off:
            trained = model.delta()
            vars(model)["delta"] = lambda: trained
            model.requires_grad_(True)

    def before_epoch(self) -> None:
        """Switch dropout on for training, if "no_dropout" is off."""
        if "no_dropout" in self.off and self.model is not None:
            self.model.network.train()

    def after_step(self) -> None:
        """Discard gradients that no optimiser uses."""
        if "no_frozen_gradients" in self.off and self.model is not None:
            for parameter in self.model.parameters():
                parameter.grad = None

    def after_epoch(self) -> None:
        """Switch dropout off for validation."""
        if self.model is not None:
            self.model.eval()


@dataclass
class _Timed:
    """The workbench's callbacks during one fit: they time each epoch and record its results."""

    bench: Workbench
    method: Switched
    gate: Gate
    facts: Answer
    watch: Watch
    now: Callable[[], Answer]
    left: int = 0  # remaining steps of the epoch
    loss: float | None = None
    scored: Answer = field(default_factory=dict)  # scores of the last validation

    def order(self, lengths: NDArray[np.int64], epoch: int) -> list[NDArray[np.int64]]:
        """Report what was measured before the epoch and wait for the next command; called when an epoch begins."""
        self.gate(self.lap())
        self.watch.go()
        self.method.before_epoch()
        batches = self._batches(lengths, epoch)
        self.left = len(batches)
        return batches

    def _batches(self, lengths: NDArray[np.int64], epoch: int) -> list[NDArray[np.int64]]:
        if "length_buckets" not in self.method.off:
            return self.bench.order(lengths, epoch)
        shuffled = np.random.default_rng([self.bench.seed, epoch]).permutation(len(lengths))
        size = self.bench.recipe["batch_size"]
        return [shuffled[start : start + size] for start in range(0, len(shuffled), size)]

    def progress(self, done: float, text: str) -> None:
        """Count a step; after the last one, pause the watch for validation. Called after every step."""
        self.method.after_step()
        self.left -= 1
        if self.left == 0:
            self.watch.stop()
            self.method.after_epoch()

    def score(self, logits: Logits) -> float:
        """Score and restart the watch: keeping the best weights is part of the epoch. Called when a validation ends."""
        reached = self.bench.score(logits)
        self.watch.stop()
        self.scored = self.now()
        self.watch.go()
        return reached

    def log(self, line: Mapping[str, Any]) -> None:
        """Record the loss of the epoch."""
        if "epoch" in line:
            self.loss = line["loss"]

    def lap(self) -> Answer:
        """Return the measurements since the last gate."""
        return self.watch.lap() | self.facts | {"loss": self.loss} | self.scored


def _pad_to(length: int) -> None:
    """Make this process pad every batch to at least `length` tokens."""
    collate = TransformerBackbone.collate

    def padded(backbone: TransformerBackbone, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        inputs = collate(backbone, encoded, sequences)
        short = max(0, length - inputs["attention_mask"].shape[1])
        fillers = {"input_ids": backbone.pad_id}
        return {name: pad(tensor, (0, short), value=fillers.get(name, 0)) for name, tensor in inputs.items()}

    setattr(TransformerBackbone, "collate", padded)  # noqa: B010 - for a type checker a method is no variable


class Graftwork:
    """The engine with one method on one piece of data. Implements `Contender`."""

    def __init__(self, piece: Piece, data: Path, *, method: str, backbone: str, off: list[str], by_epoch: bool) -> None:
        unknown = set(off) - SWITCHES.keys()
        if unknown:
            raise ValueError(f"no such switch: {', '.join(sorted(unknown))}")
        self.off, self.by_epoch = frozenset(off), by_epoch
        self.named = parse_method(method)
        self.folder = Path(tempfile.mkdtemp(prefix="engine_speed_"))
        self.task, self.backbone = task(piece, data, self.folder / "data"), backbone
        if "short_padding" in self.off:
            _pad_to(PADDED)
        if "own_lengths" in self.off:
            length_buckets.AT_LEAST = sys.maxsize  # no cut saves as much
        self.session = self._open()
        assert self.session.backbone is not None
        lengths = self.session.backbone.encode(self.session.dataset.train.examples).ids
        squares = sum(len(ids) ** 2 for ids in lengths)
        self.facts: Answer = {"tokens": sum(map(len, lengths)), "squared_lengths": squares}

    def _open(self) -> Session:
        """Open the data and the backbone, with an empty cache, so that every computation is paid for."""
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=self.folder)
        precision = "fp32" if "bf16" in self.off else "auto"
        setup = RunSettings(self.backbone, runs=str(self.folder / "runs"), precision=precision, device="cpu")
        session = open_session(self.task, [self.named], setup)
        session.frozen = FrozenStore(disk=session.frozen.disk)  # opening tokenised; the first fit must pay for it
        return session

    def about(self) -> Answer:
        """Return the training data's sizes, the numerics, and the network's size."""
        assert self.session.backbone is not None
        blocks = self.session.backbone.sites("block").values()
        card = self.session.backbone.card
        return self.facts | {
            "train_rows": len(self.session.dataset.train.examples),
            "test_rows": len(self.session.dataset.test.examples),
            "numerics": dict(self.session.numerics),
            "method": dict(self.named.config),
            "own_epochs": self.session.resolved(self.named, Recipe())["epochs"],
            "block_parameters": sum(weight.numel() for block in blocks for weight in block.parameters()),
            "width": card.width,
            "blocks": card.blocks,
        }

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Run the head start, then epochs; the answer to "start" holds the frozen pass and the head start.

        If scores are reported by epoch, every seed opens the backbone again, and that is part of its start.
        """
        if self.by_epoch or "shared_pass" in self.off:
            self.session = self._open()
        watch = Watch()
        if self.by_epoch:
            watch.add(self.session.load)
        bench = workbench(self.session, self.named, Recipe(epochs=epochs), seed)
        if not isinstance(self.named.method, Attaches):
            return self._fit_at_once(bench, epochs, gate, watch)
        method = Switched(self.named.method, self.off)

        def now() -> Answer:
            assert method.model is not None
            return self._now(FittedModel(method.model, {}).logits)

        timed = _Timed(bench, method, gate, self.facts, watch, now)
        fitted = fit_by_gradient(
            method, replace(bench, order=timed.order, score=timed.score, log=timed.log, progress=timed.progress)
        )
        return Trained(timed.lap(), lambda: self._scores(fitted.logits))

    def _fit_at_once(self, bench: Workbench, epochs: int, gate: Gate, watch: Watch) -> Trained:
        """Run a method without epochs: the whole fit is the first epoch, the others are empty."""
        gate(watch.lap())
        watch.go()
        fitted = self.named.method.fit(bench)
        for _ in range(1, epochs):
            gate(watch.lap() | self._now(fitted.logits))
        return Trained(watch.lap() | self._now(fitted.logits), lambda: self._scores(fitted.logits))

    def _now(self, logits: Answers) -> Answer:
        return {"test_now": self._accuracy(logits, self.session.dataset.test)} if self.by_epoch else {}

    def _scores(self, logits: Answers) -> Answer:
        splits = self.session.dataset.splits
        return {name: self._accuracy(logits, splits[name]) for name in ("validation", "test")}

    def _accuracy(self, logits: Answers, split: Split) -> float:
        return float((logits(split.examples).argmax(axis=1) == split.targets).mean())
