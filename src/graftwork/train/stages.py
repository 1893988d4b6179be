"""Training in stages: which blocks train in which epoch, and how fast, where a method has a say in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graftwork.core.method import FrozenPass, Workbench
from graftwork.train.recipe import LINEAR

if TYPE_CHECKING:
    from torch import nn

    from graftwork.core.model import Model

Passes = Mapping[str, FrozenPass]  # split -> its frozen pass


@runtime_checkable
class Staged(Protocol):
    """A method that owns every block, and lets them train one after the other on a schedule of its own."""

    @property
    def scheduled(self) -> Mapping[str, Any]:
        """The schedule as it stands in the receipt: `schedule`, its name, and its settings."""

    def share(self, step: int, steps: int) -> float:
        """Share of the learning rate at `step` (0-based) of `steps`."""

    def lowest_blocks(self, blocks: int, epochs: int) -> list[int]:
        """For each epoch the lowest of `blocks` that trains; never higher than before, and 0 in the last epoch."""


@dataclass(frozen=True)
class StagePlan:
    """What trains when, and how fast. A stage is a run of epochs in which the same blocks train."""

    lowest: tuple[int, ...]  # for each epoch the lowest block that trains
    share: Callable[[int], float]  # of the learning rate at a step, 0-based
    delta: Mapping[str, nn.Parameter]  # what trains in the last stage: all that is stored
    staged: bool

    def facts(self, model: Model, learning_rate: float) -> dict[str, Any]:
        """For the receipt: each stage's number of epochs, its lowest block, and the peak of that block's rate."""
        if not self.staged:
            return {}
        blocks = list(model.backbone.sites("block"))

        def rate(lowest: int) -> float:
            shares = (share for name, share in model.rates.items() if name.startswith(f"network.{blocks[lowest]}."))
            return learning_rate * next(shares)

        stages = [(lowest, len(list(epochs))) for lowest, epochs in groupby(self.lowest)]
        return {
            "stages": [
                {"epochs": epochs, "lowest_block": lowest, "rate_of_lowest_block": rate(lowest)}
                for lowest, epochs in stages
            ]
        }


def plan_of(method: object, model: Model, recipe: Mapping[str, Any]) -> StagePlan:
    """The plan of a method that has one; otherwise one stage with warm-up and linear decay."""
    from graftwork.train.optimiser import warm_up_then_linear

    epochs, steps = recipe["epochs"], recipe["steps"]
    if not isinstance(method, Staged):
        return StagePlan(
            lowest=(model.start,) * epochs,
            share=lambda step: warm_up_then_linear(step, steps, recipe["warm_up"]),
            delta=model.delta(),
            staged=False,
        )
    lowest = tuple(method.lowest_blocks(model.backbone.card.blocks, epochs))
    assert len(lowest) == epochs and list(lowest) == sorted(lowest, reverse=True) and lowest[-1] == model.start
    return StagePlan(lowest, lambda step: method.share(step, steps), model.delta(), staged=True)


def schedule_of(method: object) -> Mapping[str, Any]:
    """The schedule for the receipt: the method's own, or the one of all others."""
    return method.scheduled if isinstance(method, Staged) else LINEAR


def open_passes(lowest: int, model: Model, bench: Workbench, before: Passes | None = None) -> Passes:
    """Let `model` train from block `lowest` on, and open the passes with the states that enter it.

    Where none are worth keeping, those opened `before` still serve: nothing more is computed, and nothing charged.
    """
    if lowest != model.start:
        model.train_from(lowest)
    if before is not None and model.prefix is None:
        return before
    return {split.name: bench.frozen(split, model.prefix) for split in (bench.train, bench.validation)}


def reopen_passes(lowest: Sequence[int], model: Model, bench: Workbench, entered: Callable[[], None]) -> Passes:
    """The passes that `open_passes` would have left after `model` trained from each of the blocks `lowest` in turn.

    `entered` is called after every change but the first. Of passes that were followed by others nothing is opened.
    """
    depth = None
    for number, block in enumerate(lowest):
        if block != model.start:
            model.train_from(block)
            if number:
                entered()
        depth = model.prefix if model.prefix is not None or not number else depth
    return {split.name: bench.frozen(split, depth) for split in (bench.train, bench.validation)}
