"""Contrastive training on pairs: texts of one class are pulled together, of different classes apart (Tunstall et al.
2022, arXiv:2209.11055).

All pairs within a batch are used, so that each text is encoded once for all the pairs it is in: n texts give
n (n - 1) / 2 pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from graftwork.core.backbone import Encoded, Features
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.length_buckets import positions_of
from graftwork.core.method import Workbench
from graftwork.core.model import Model
from graftwork.core.tally import Tally
from graftwork.machine.memory import Cut, Rows, attempt
from graftwork.train.accumulation import forget_gradients, measure
from graftwork.train.batches import by_length
from graftwork.train.flops import StepCounter
from graftwork.train.loop import Diverged
from graftwork.train.optimiser import FlatAdamW, warm_up_then_linear
from graftwork.train.recipe import CLIP, LINEAR, WEIGHT_DECAY
from graftwork.train.seeds import derive

TOKENS_AT_ONCE = 512  # padding counted: a batch is encoded in parts of near-equal lengths
TOGETHER = 4  # rows of a class grouped in one batch, where a batch does not hold all rows


class Reading(nn.Module):
    """An identity head: it returns the pooled features."""

    def forward(self, features: Features) -> Tensor:
        """Return the pooled features (B, P)."""
        return features.pooled


@dataclass(frozen=True)
class PairPlan:
    """A training length: `epochs`, but at most `steps` steps, of at most `size` examples each."""

    rate: float
    epochs: int
    steps: int
    size: int

    def batches(self, classes: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
        """Return every step's examples, a pure function of the seed."""
        found: list[NDArray[np.int64]] = []
        for epoch in range(1, self.epochs + 1):
            found += batches_of_classes(classes, self.size, seed, epoch)
            if len(found) >= self.steps:
                break
        return found[: self.steps]


def batches_of_classes(classes: NDArray[np.int64], size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Batch every index of `classes` (N,) once, 2 to `size` per batch, with several rows of a class together.

    A pure function of (seed, epoch); nothing is drawn where one batch holds all rows. A single row makes no pair: if
    the last batch would be one row, it gets a group from the batch before.
    """
    if len(classes) <= size:
        return [np.arange(len(classes))]
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)))
    groups: list[NDArray[np.int64]] = []
    for one in np.unique(classes):
        rows = random.permutation(np.flatnonzero(classes == one))
        groups += np.array_split(rows, math.ceil(len(rows) / TOGETHER))
    batches: list[list[NDArray[np.int64]]] = [[]]
    for place in random.permutation(len(groups)):
        if sum(map(len, batches[-1])) + len(groups[place]) > size:
            batches.append([])
        batches[-1].append(groups[place])
    if sum(map(len, batches[-1])) == 1:
        batches[-1].append(batches[-2].pop())
    return [np.concatenate(batch) for batch in batches]


def pair_loss(features: Tensor, classes: Tensor) -> Tensor:
    """Return the squared error of all pairs' cosines, features (n, P), classes (n,): target 1 within a class, else 0.

    Same-class and cross-class pairs weigh half each, however many there are.
    """
    unit = normalize(features, dim=1)
    first, second = torch.triu_indices(len(unit), len(unit), offset=1, device=unit.device)
    cosines, same = (unit @ unit.T)[first, second], classes[first] == classes[second]  # (pairs,)
    parts = [(cosines[same] - 1).square(), cosines[~same].square()]
    return torch.stack([part.mean() for part in parts if len(part)]).mean()


def train_on_pairs(
    model: Model, bench: Workbench, encoded: Encoded, classes: NDArray[np.int64], plan: PairPlan
) -> dict[str, Any]:
    """Train the delta of `model`, whose head must be `Reading`; return the facts.

    Raises `Diverged`, and `OutOfMemory` where one example is too much.
    """
    batches = plan.batches(classes, derive(bench.seed_of("order"), "pairs"))
    pairs = _Pairs(model, bench, encoded, plan)
    found = bench.keeper.found()
    if found is not None:
        pairs.restore(found)
    targets = torch.from_numpy(classes).to(model.device)
    with bench.keeper.steps() as keep:
        for rows in batches[pairs.step :]:
            value = pairs.loss_of(rows, targets)
            share = warm_up_then_linear(pairs.step, len(batches), LINEAR["warm_up"])
            with bench.profile.phase("optimiser"):
                norm = pairs.optimiser.step(share)
            if not (math.isfinite(value) and math.isfinite(norm)):
                raise Diverged(
                    f"training diverged at step {pairs.step}",
                    got=f"loss {value}, gradient norm {norm}",
                    do="train at a lower rate: contrastive:rate=NUMBER",
                )
            bench.log({"step": pairs.step, "loss": value, "rate": plan.rate * share, "norm": norm})
            pairs.step, pairs.loss = pairs.step + 1, value
            bench.progress(pairs.step / len(batches), f"step {pairs.step}/{len(batches)}")
            keep(pairs.checkpoint)
    bench.tally.include(pairs.forward)
    padding = pairs.forward.padding_flops / max(pairs.forward.flops, 1.0)
    bench.tally.add_model(2 * pairs.forward.flops + pairs.twice, padding)  # backward is twice forward
    seen = sum(map(len, batches))
    return {
        "steps": len(batches),
        "epochs": seen / len(classes),
        "pairs": sum(len(rows) * (len(rows) - 1) // 2 for rows in batches),
        "capped": seen < plan.epochs * len(classes),  # the limit `steps` ended it before its epochs
        "last_loss": pairs.loss,
    } | bench.memory.facts()


class _Pairs:
    """The state of a training on pairs: all that its next step depends on except the plan and the seed."""

    def __init__(self, model: Model, bench: Workbench, encoded: Encoded, plan: PairPlan):
        self.model, self.bench, self.encoded = model, bench, encoded
        self.optimiser = FlatAdamW(model.delta(), plan.rate, WEIGHT_DECAY, CLIP, model.tables(), model.rates)
        self.forward = Tally()
        self.counter = StepCounter(self.forward)
        self.step, self.loss = 0, math.nan
        self.twice = 0.0  # FLOPs of second forward passes, run for the gradient

    def loss_of(self, rows: NDArray[np.int64], classes: Tensor) -> float:
        """Return the loss of a batch, with the gradients on the parameters.

        Every part's activations are held until the loss of all pairs is known. Where memory runs out, the batch is
        first run without gradients, then part by part to backpropagate the gradient of each part's features.
        """
        memory, known = self.bench.memory, len(self.bench.memory.cuts)
        whole = [rows[part].tolist() for part in by_length(self.encoded.lengths[rows], TOKENS_AT_ONCE)]
        memory.begin()
        self._bound(rows.tolist())
        while True:
            held = not memory.cuts or sum(map(self._positions, whole)) <= memory.cuts[-1].positions
            parts = whole if held else [part for one in whole for part in memory.parts(one, self._positions)]
            work = self._at_once if held else self._part_by_part
            loss, why = attempt(lambda work=work, parts=parts: work(parts, classes))  # type: ignore[misc]
            if loss is not None:
                memory.done(1 if held else len(parts))
                for cut in memory.cuts[known:]:
                    self.bench.log({"cut": asdict(cut)})
                return float(loss)
            forget_gradients(self.model)
            if held and len(parts) > 1:  # run one after the other, they may fit uncut
                memory.cuts.append(Cut(memory.steps, max(map(self._positions, parts)), why))
            else:
                memory.halve(parts, self._positions, why)

    def _at_once(self, parts: Sequence[Rows], classes: Tensor) -> float:
        with self.bench.profile.phase("forward"):
            features = torch.cat([self._read(part) for part in parts])
            loss = pair_loss(features, classes[_joined(parts)])
        with self.bench.profile.phase("backward"):
            loss.backward()
        return float(loss.detach())

    def _part_by_part(self, parts: Sequence[Rows], classes: Tensor) -> float:
        """Compute the same gradients, but for rounding, part by part (Gao et al. 2021, arXiv:2101.06983)."""
        before = self.forward.flops
        with self.bench.profile.phase("forward"):
            with torch.no_grad():
                features = torch.cat([self._read(part) for part in parts])  # (n, P)
            features.requires_grad_()
            loss = pair_loss(features, classes[_joined(parts)])
            loss.backward()
        self.twice += self.forward.flops - before
        assert features.grad is not None
        with self.bench.profile.phase("backward"):
            for part, wanted in zip(parts, torch.split(features.grad, list(map(len, parts))), strict=True):
                self._read(part, counted=False).backward(wanted)
        return float(loss.detach())

    def _bound(self, rows: Rows) -> None:
        """Measure the memory of a position, if there is a bound and the last measurement is stale."""
        memory, longest = self.bench.memory, max(rows, key=lambda row: self._positions([row]))
        length = int(self.encoded.lengths[longest])
        if memory.stale(self.model.start, length):
            measure(self.model, self.bench, length, self._positions([longest]), lambda: self._alone(longest))

    def _alone(self, row: int) -> float:
        loss = self._read([row], counted=False).square().sum()
        loss.backward()
        return float(loss.detach())

    def _read(self, part: Rows, counted: bool = True) -> Tensor:
        return read(self.model, self.encoded, part, self.counter if counted else None)

    def _positions(self, part: Rows) -> int:
        return positions_of(self.encoded, part)

    def checkpoint(self) -> Checkpoint:
        """Return the current state."""
        numbers = {"step": self.step, "loss": self.loss, "forward": asdict(self.forward), "counts": self.counter.counts}
        numbers |= {"twice": self.twice, "memory": self.bench.memory.state()}
        return Checkpoint(numbers, self.optimiser.tensors(weights=True))

    def restore(self, found: Checkpoint) -> None:
        """Continue from `found` on a newly built model."""
        self.step, self.loss, self.twice = (found.numbers[name] for name in ("step", "loss", "twice"))
        self.bench.memory.restore(found.numbers["memory"])
        self.forward.include(Tally(**found.numbers["forward"]))
        self.counter.restore(found.numbers["counts"])
        self.optimiser.restore(found.tensors)


def _joined(parts: Sequence[Rows]) -> list[int]:
    return [row for part in parts for row in part]


def read(model: Model, encoded: Encoded, rows: Sequence[int], counter: StepCounter | None) -> Tensor:
    """Return the features (B, P) of these examples."""
    inputs = model.backbone.collate(encoded, encoded.sequences(rows))
    work = partial(model, inputs)
    features: Tensor = counter.run(inputs["attention_mask"], work, model.towers) if counter else work()
    return features
