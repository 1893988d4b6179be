"""Staged training: which blocks train in which epoch, and at which share of the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graftwork.core.backbone import Encoded
from graftwork.core.method import FrozenPass, Workbench
from graftwork.core.writing import TextWriter
from graftwork.train.recipe import LINEAR

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graftwork.core.model import Model

Passes = Mapping[str, FrozenPass]  # split -> its frozen pass


@dataclass
class TokensAlone:
    """A `FrozenPass` with tokens alone: training starts at the embeddings, and no frozen features are used."""

    encoded: Encoded
    of_sample: bool = False

    def pooled(self, block: int) -> Tensor:
        """Never called: there is no head to fit."""
        raise AssertionError("no features are kept")

    def entering(self, sequences: Sequence[int], mask: Tensor) -> Tensor:
        """Never called: no states are kept."""
        raise AssertionError("no states are kept")


@runtime_checkable
class UnfreezesGradually(Protocol):
    """A method that trains every block and unfreezes them gradually on its own schedule."""

    @property
    def scheduled(self) -> Mapping[str, Any]:
        """The schedule as recorded in the receipt: its name under `schedule`, and its settings."""

    def share(self, step: int, steps: int) -> float:
        """Return the share of the learning rate at `step` (0-based) of `steps`."""

    def lowest_blocks(self, blocks: int, epochs: int) -> list[int]:
        """Return the lowest trained block per epoch, of `blocks`; it never increases, and is 0 in the last epoch."""


@dataclass(frozen=True)
class StagePlan:
    """A schedule of trained blocks and rates. A stage is a run of epochs in which the same blocks train."""

    lowest: tuple[int, ...]  # the lowest trained block of each epoch
    share: Callable[[int], float]  # step (0-based) -> share of the learning rate
    delta: Mapping[str, nn.Parameter]  # the parameters trained in the last stage: all that is stored
    staged: bool

    def facts(self, model: Model, learning_rate: float) -> dict[str, Any]:
        """Return, for the receipt, each stage's epochs, lowest block, and that block's peak learning rate."""
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
    """Return the plan of a `UnfreezesGradually` method; otherwise one stage with warm-up and linear decay."""
    from graftwork.train.optimiser import warm_up_then_linear

    epochs, steps = recipe["epochs"], recipe["steps"]
    if not isinstance(method, UnfreezesGradually):
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
    """Return the schedule for the receipt: the method's own, or the default `LINEAR`."""
    return method.scheduled if isinstance(method, UnfreezesGradually) else LINEAR


def open_passes(lowest: int, model: Model, bench: Workbench, before: Passes | None = None) -> Passes:
    """Train `model` from block `lowest` on, and open the passes with the states that enter that block.

    Where no states are worth storing, the passes `before` are reused: nothing more is computed or charged.
    """
    if lowest != model.start:
        model.train_from(lowest)
    if before is not None and model.prefix is None:
        return before
    return _passes_of(model, bench, model.prefix)


def _passes_of(model: Model, bench: Workbench, depth: int | None) -> Passes:
    """Open the passes of train and validation; if a network writes and keeps no states, tokens alone."""
    splits = (bench.train, bench.validation)
    if depth is None and isinstance(model.backbone, TextWriter):
        with bench.profile.phase("tokenise"):
            return {split.name: TokensAlone(model.backbone.encode(split.examples)) for split in splits}
    return {split.name: bench.frozen(split, depth) for split in splits}


def reopen_passes(lowest: Sequence[int], model: Model, bench: Workbench, entered: Callable[[], None]) -> Passes:
    """Return the passes that `open_passes` would give after `model` trained from each of the blocks `lowest` in turn.

    `entered` is called after every change but the first. Passes that later ones replaced are not opened.
    """
    depth = None
    for number, block in enumerate(lowest):
        if block != model.start:
            model.train_from(block)
            if number:
                entered()
        depth = model.prefix if model.prefix is not None or not number else depth
    return _passes_of(model, bench, depth)
