"""The state of a training run: all that the next step depends on, saved to and restored from a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from graftwork.core.checkpoint import Checkpoint
from graftwork.core.method import Workbench
from graftwork.core.model import Model
from graftwork.train.flops import StepCounter
from graftwork.train.optimiser import FlatAdamW
from graftwork.train.recipe import EQUAL_RATES
from graftwork.train.stages import Passes, StagePlan, open_passes, reopen_passes

Delta = Mapping[str, Tensor]
BEST, ROWS, HEAD, OPTIMISER = "best.", "rows.", "started.", "optimiser."  # prefixes of tensor names in a checkpoint


class TrainingState:
    """A training in progress at position (`epoch`, `done`): the next step takes batch number `done` of that epoch.

    `head_start` is the result of the head start. Construct it after the head start, or before `restore`.
    """

    def __init__(self, model: Model, bench: Workbench, plan: StagePlan, rate: float, head_start: Mapping[str, Any]):
        self.model, self.bench, self.plan, self.rate, self.head_start = model, bench, plan, rate, head_start
        recipe = bench.recipe
        shares = {} if recipe.get("rates") == EQUAL_RATES else model.rates
        rates = shares | {f"head.{name}": recipe["head_rate"] for name, _ in model.head.named_parameters()}
        self.optimiser = FlatAdamW(model.delta(), rate, recipe["weight_decay"], recipe["clip"], model.tables(), rates)
        self.counter, self.validation_counter = StepCounter(bench.tally), StepCounter(bench.tally)
        self.epoch, self.done, self.step = 1, 0, 0
        self.losses: list[float] = []  # of this epoch
        self.history: list[float] = []  # validation scores: before the first epoch, and after each
        # The head start is no candidate: its penalty was chosen on the same rows, so its score there flatters it.
        self.best_score, self.best_epoch, self.best = -math.inf, 0, snapshot(plan.delta)
        self.started = self._kept_of_start(self.best)

    def open(self, passes: Passes) -> Passes:
        """Before each epoch, unfreeze the blocks that the plan names and open the passes that they start from."""
        lowest = self.plan.lowest[self.epoch - 1]
        if lowest == self.model.start:
            return passes
        passes = open_passes(lowest, self.model, self.bench, passes)
        self._unfrozen()
        return passes

    def stepped(self, loss: float) -> None:
        """Record a step."""
        self.losses.append(loss)
        self.step += 1
        self.done += 1

    def validated(self, reached: float) -> None:
        """Record the end of an epoch; the best one is kept, the last of equals."""
        self.history.append(reached)
        if reached >= self.best_score:
            self.best_score, self.best_epoch, self.best = reached, self.epoch, snapshot(self.plan.delta)
        self.epoch, self.done, self.losses = self.epoch + 1, 0, []

    def checkpoint(self) -> Checkpoint:
        """Return all that the next step depends on, without weights never trained and rows never touched."""
        tables = self._tables()
        tensors = {f"{OPTIMISER}{name}": tensor for name, tensor in self.optimiser.tensors(weights=True).items()}
        tensors |= {f"{HEAD}{name}": tensor for name, tensor in self.started.items() if name.startswith("head.")}
        tensors |= {f"{ROWS}{name}": rows for name, rows in tables.items()}
        if self.best_epoch:
            for name in self.model.delta():
                weight = self.best[name]
                tensors[f"{BEST}{name}"] = weight[tables[name].cpu()] if name in tables else weight
        for name in ("losses", "history", "best_score"):
            tensors[name] = torch.tensor(getattr(self, name), dtype=torch.float64)
        counts = {"counter": self.counter.counts, "looking": self.validation_counter.counts}
        place = {name: getattr(self, name) for name in ("epoch", "done", "step", "best_epoch")}
        told = {"head_start": dict(self.head_start), "memory": self.bench.memory.state()}
        return Checkpoint({**place, **counts, **told}, tensors)

    @torch.no_grad()
    def restore(self, found: Checkpoint) -> Passes:
        """Continue from `found` on a newly built model; return the passes that the next step starts from."""
        numbers, tensors = found.numbers, found.tensors
        for name in ("epoch", "done", "step", "best_epoch"):
            setattr(self, name, numbers[name])
        self.losses, self.history = tensors["losses"].tolist(), tensors["history"].tolist()
        self.best_score, self.head_start = float(tensors["best_score"]), numbers["head_start"]
        self.best = {**self.best, **_under(HEAD, tensors)}
        self.started = self._kept_of_start(self.best)
        entered = self.epoch if self.done else max(1, self.epoch - 1)  # the epoch of the last step
        passes = reopen_passes(self.plan.lowest[:entered], self.model, self.bench, self._unfrozen)
        self.optimiser.restore(_under(OPTIMISER, tensors))
        self.counter.restore(numbers["counter"])
        self.validation_counter.restore(numbers["looking"])
        self.bench.memory.restore(numbers["memory"])
        rows = _under(ROWS, tensors)
        for name, weight in _under(BEST, tensors).items():
            self.best[name] = self.best[name].index_copy(0, rows[name], weight) if name in rows else weight.clone()
        return passes

    def _unfrozen(self) -> None:
        """Add the newly unfrozen parameters to the optimiser and reset the FLOP counters: a step now costs more."""
        self.optimiser.add(self.model.delta(), self.model.tables())
        self.counter, self.validation_counter = StepCounter(self.bench.tally), StepCounter(self.bench.tally)

    def _kept_of_start(self, start: Delta) -> dict[str, Tensor]:
        """Select the starting weights to keep: the head, or all where the final weights interpolate from them."""
        whole = self.bench.recipe["kept_share"] < 1
        return {name: weight for name, weight in start.items() if whole or name.startswith("head.")}

    def _tables(self) -> dict[str, Tensor]:
        """Return the touched row numbers of each embedding table."""
        names = {id(weight): name for name, weight in self.model.delta().items()}
        return {names[id(rows.table)]: rows.touched() for rows, _ in self.optimiser.tables}


def snapshot(delta: Delta) -> dict[str, Tensor]:
    """Return a copy in CPU memory, whatever device the model is on."""
    return {name: parameter.detach().to("cpu", copy=True) for name, parameter in delta.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with `prefix`, with the prefix removed."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
