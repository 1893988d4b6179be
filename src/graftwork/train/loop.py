"""The training loop of methods that change the network: head start, epochs over length-bucketed batches, and selection
of the best epoch on validation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graftwork.core.backbone import Augments, Encoded, Inputs, towers_of
from graftwork.core.example import Example
from graftwork.core.hidden_states import BatchPart, BatchStates
from graftwork.core.kind import LearnsFeatures
from graftwork.core.method import FrozenPass, HasRate, Logits, NetworkMethod, Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.ragged import flat
from graftwork.core.writing import TextWriter
from graftwork.errors import GraftworkError
from graftwork.machine.memory import answers_in_halves
from graftwork.targets.linear_head import PooledHead
from graftwork.train.accumulation import in_parts
from graftwork.train.answer import answer_together
from graftwork.train.answer_order import batches
from graftwork.train.flops import StepCounter, count_flops
from graftwork.train.linear_fit import fit_on_block, fitted_on
from graftwork.train.seeds import derive
from graftwork.train.stages import Passes, StagePlan, open_passes, plan_of
from graftwork.train.text_loop import FittedWriter, WritingObjective, kept_states
from graftwork.train.training_state import TrainingState, snapshot

T = TypeVar("T")


class Diverged(GraftworkError):
    """The loss or its gradient is not finite."""


@runtime_checkable
class Attaches(NetworkMethod, HasRate, Protocol):
    """A `NetworkMethod` with a learning rate, trained by this loop."""


@torch.no_grad()
def answer(
    model: Model,
    encoded: Encoded,
    frozen: FrozenPass | None = None,
    counter: StepCounter | None = None,
    blind: Sequence[float] | None = None,
) -> Logits:
    """Compute logits in batches of near-equal lengths, from the states of `frozen` where there are any.

    Words without a token, which the network does not see, get the logits `blind` (C,).
    """
    order = batches(encoded)

    def logits(rows: Sequence[int]) -> NDArray[np.float64]:
        sequences = encoded.sequences(rows)
        inputs = model.backbone.collate(encoded, sequences)
        entering = kept_states(model, inputs, sequences, frozen)
        forward = partial(model, inputs, entering)
        found = counter.run(inputs["attention_mask"], forward, model.towers) if counter else forward()
        return np.asarray(found.double().cpu().numpy())  # (B, C), or (W, C)

    parts = [part for rows in order for part in answers_in_halves(rows.tolist(), logits)]
    return encoded.whole(np.concatenate(parts), np.concatenate(order), blind)


@dataclass
class FittedModel:
    """A trained `Model` that predicts. Implements `Fitted`, `ReadsStates` and `AdapterFitted`."""

    model: Model
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Parameters passed to the optimiser, with embedding rows absent from the train split, which never change."""
        return sum(parameter.numel() for parameter in self.model.delta().values())

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return logits (N, C), a row per example, or (W, C), a row per word; batches hold near-equal lengths."""
        return answer_together(self.model.backbone, self.model.backbone.encode(examples), [self])[0]

    @property
    def depth(self) -> int | None:
        """The lowest block that training changed; None if that is the first."""
        return self.model.start or None

    def read(self, seen: BatchStates | BatchPart) -> Tensor:
        """Return logits (B, C), or (W, C), from the states that enter the lowest changed block."""
        logits: Tensor = self.model(seen.inputs, seen.state(self.model.start) if self.model.start else None)
        return logits

    @property
    def adapters(self) -> Mapping[str, nn.Module]:
        """Place (`core.model.place_of`) -> adapter; empty if weights of the network itself are trained."""
        if any(weight.requires_grad for weight in self.model.network.parameters()):
            return {}
        return {name.replace("/", "."): adapter for name, adapter in self.model.adapters.items()}

    @property
    def head(self) -> nn.Module:
        """The head on the output of the network."""
        return self.model.head

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the trained parameters by name."""
        return snapshot(self.model.delta())

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of predicting these examples."""
        return count_flops(lambda: self.logits(examples))[1], "counter"


def build_model(method: NetworkMethod, setting: Setting, towers: int) -> Model:
    """Build the untrained model: backbone, adapters and head, in eval mode."""
    assert setting.backbone is not None
    model = Model(setting.backbone, setting.kind, setting.task, towers)
    method.attach(model)
    return model.eval()


def restore_by_attaching(
    method: NetworkMethod, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]
) -> Any:
    """Rebuild the model as for training, and return the `Fitted` with its stored delta."""
    model = build_model(method, setting, int(facts["towers"]))
    model.load_delta(delta)
    assert setting.backbone is not None
    model.share_frozen_weights(setting.backbone)
    return fitted_of(model, facts)


class TrainingObjective(Protocol):
    """The objective of training: targets, a loss, and the score on validation."""

    targets: Tensor  # (N, …), (W, …) of the train split, on the model's device
    drops: bool  # whether steps run with the network's own dropout

    def loss(self, model: Model, inputs: Inputs, entering: Tensor | None, targets: Tensor) -> Tensor:
        """Return the loss of one batch, a mean."""

    def weight(self, targets: Tensor) -> float:
        """Return the count that the loss averages over."""

    def counting(self, counter: StepCounter, model: Model, inputs: Inputs, targets: Tensor, work: Callable[[], T]) -> T:
        """Run `work` on a batch and tally its FLOPs."""

    def validate(self, model: Model, held: FrozenPass, counter: StepCounter) -> float:
        """Return how good the model is on validation; higher is better."""

    def facts(self) -> dict[str, Any]:
        """Return the facts for the receipt."""


class LogitAim:
    """The loss over logits, and the headline metric on validation."""

    drops = False

    def __init__(self, model: Model, bench: Workbench, blind: Sequence[float] | None):
        self.bench, self.blind = bench, blind
        self.targets = torch.from_numpy(flat(bench.train.targets)).to(model.device)

    def loss(self, model: Model, inputs: Inputs, entering: Tensor | None, targets: Tensor) -> Tensor:
        """Return the loss of the batch's targets."""
        objective = self.bench.training_loss
        if not isinstance(objective, LearnsFeatures):
            return objective.loss(model(inputs, entering), targets)
        features = model.joined(inputs, entering)
        return objective.loss(model.head(features), targets) + objective.loss_of_features(features.pooled, targets)

    def weight(self, targets: Tensor) -> float:
        """Return the weight of that loss."""
        return self.bench.training_loss.weight(targets)

    def counting(self, counter: StepCounter, model: Model, inputs: Inputs, targets: Tensor, work: Callable[[], T]) -> T:
        """Run `work` and tally its FLOPs, by the lengths of the inputs."""
        return counter.run(inputs["attention_mask"], work, model.towers)

    def validate(self, model: Model, held: FrozenPass, counter: StepCounter) -> float:
        """Return the headline metric."""
        return self.bench.score(answer(model, held.encoded, held, counter, self.blind))

    def facts(self) -> dict[str, Any]:
        """Return nothing: the recipe states the objective."""
        return {}


def fitted_of(model: Model, facts: Mapping[str, Any]) -> FittedModel | FittedWriter:
    """Return a trained model as a `Fitted`: a writer of texts, or a predictor of logits."""
    return FittedWriter(model, facts) if isinstance(model.backbone, TextWriter) else FittedModel(model, facts)


def fit_by_gradient(method: Attaches, bench: Workbench) -> Any:
    """Fit the head, then train all that `method` unfreezes with AdamW; return a `Fitted`. Raises `Diverged`."""
    assert bench.setting.backbone is not None
    towers = towers_of(bench.setting.backbone.card.towers, bench.train.examples[0])
    torch.manual_seed(derive(bench.seed_of("init"), "init"))
    model = build_model(method, bench.setting, towers)
    facts: dict[str, Any] = {"towers": towers, "start_block": model.prefix or model.start}
    rate = bench.recipe["learning_rate"] or method.learning_rate
    plan = plan_of(method, model, bench.recipe)
    facts |= plan.facts(model, rate)
    training, passes = _starting_state(model, bench, plan, rate)
    facts |= fitted_on(bench, passes["train"].encoded)
    facts["head_start"] = dict(training.head_start)
    writes = isinstance(model.backbone, TextWriter)
    aim: TrainingObjective = WritingObjective(model, bench) if writes else LogitAim(model, bench, facts.get("blind"))
    facts |= _train(training, passes, aim) | aim.facts()
    facts |= _augmented_fact(model, bench, plan) | bench.memory.facts()
    return fitted_of(model, facts)


def _starting_state(model: Model, bench: Workbench, plan: StagePlan, rate: float) -> tuple[TrainingState, Passes]:
    """Return the state after the head start, or the one in the checkpoint of an interrupted attempt."""
    found = bench.keeper.found()
    if found is not None:
        if plan.lowest[0] != model.start:
            model.train_from(plan.lowest[0])
        training = TrainingState(model, bench, plan, rate, {})
        return training, training.restore(found)
    passes = open_passes(plan.lowest[0], model, bench)
    with bench.profile.phase("head start"):
        head_start = _start_head(model, bench, passes)
    return TrainingState(model, bench, plan, rate, head_start), passes


def _start_head(model: Model, bench: Workbench, passes: Passes) -> dict[str, Any]:
    """Fit the head on frozen features, so that training starts from the probe and not from random weights."""
    if not isinstance(model.head, PooledHead):
        return {"used": False}
    fit, reached = fit_on_block(bench, model.backbone.card.blocks, passes["train"], passes["validation"])
    with torch.no_grad():
        model.head.out.weight.copy_(fit.weight)
        model.head.out.bias.copy_(fit.bias)
    return {"used": True, "strength": fit.strength, "validation": reached}


def _train(training: TrainingState, passes: Passes, aim: TrainingObjective) -> dict[str, Any]:
    model, bench, recipe = training.model, training.bench, training.bench.recipe

    def validate() -> float:
        with bench.profile.phase("evaluate"):
            return aim.validate(model, passes["validation"], training.validation_counter)

    with bench.keeper.steps() as keep:
        if not training.history:
            training.history.append(keep.through(training.checkpoint, validate))
        keep(training.checkpoint)
        while training.epoch <= recipe["epochs"]:
            passes = keep.through(training.checkpoint, partial(training.open, passes))
            with _training_mode(model, aim.drops):
                for rows in bench.order(passes["train"].encoded.lengths, training.epoch)[training.done :]:
                    _take(training, aim, passes["train"], rows)
                    keep(training.checkpoint)
            reached = keep.through(training.checkpoint, validate)
            epoch, loss = training.epoch, sum(training.losses) / len(training.losses)
            training.validated(reached)
            bench.log({"epoch": epoch, "validation": reached, "loss": loss, "time": time.time()})
            keep(training.checkpoint)
    model.load_delta(_between(training.started, training.best, recipe["kept_share"]))
    encoded = passes["train"].encoded
    return {
        "learning_rate": training.rate,
        "epochs": recipe["epochs"],
        "best_epoch": training.best_epoch,
        "kept_share": recipe["kept_share"],
        "steps": training.step,
        "validation_by_epoch": training.history,
        "train_tokens_per_epoch": sum(map(len, encoded.ids)),
        "cut_examples": encoded.cut,
    }


@contextmanager
def _training_mode(model: Model, drops: bool) -> Iterator[None]:
    model.train(drops)
    try:
        yield
    finally:
        model.eval()


def _take(training: TrainingState, aim: TrainingObjective, frozen: FrozenPass, rows: NDArray[np.int64]) -> None:
    """Take and log one step. Raises `Diverged`."""
    bench, step, epoch = training.bench, training.step, training.epoch
    share = training.plan.share(step)
    targets = aim.targets[frozen.encoded.answered(rows)]
    loss = _step(training.model, aim, bench, frozen, rows.tolist(), targets, training.counter, epoch)
    with bench.profile.phase("optimiser"):
        norm = training.optimiser.step(share)
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise Diverged(
            f"training diverged at step {step}",
            got=f"loss {loss}, gradient norm {norm}",
            do="train at a lower learning_rate",
        )
    bench.log({"step": step, "loss": loss, "rate": training.rate * share, "norm": norm})
    training.stepped(loss)
    bench.progress(training.step / bench.recipe["steps"], f"epoch {epoch}/{bench.recipe['epochs']}")


def _step(
    model: Model,
    aim: TrainingObjective,
    bench: Workbench,
    frozen: FrozenPass,
    rows: list[int],
    targets: Tensor,
    counter: StepCounter,
    epoch: int,
) -> float:
    """Run forward and backward over one batch, in parts if memory requires it; gradients stay on the parameters."""

    def run(part: Sequence[int], answers: Tensor, share: float) -> float:
        sequences = frozen.encoded.sequences(part)
        inputs = _training_batch(model, bench, frozen.encoded, sequences, epoch)
        if aim.drops:  # the same units of this batch, whatever was drawn before: a resumed run goes on as it would have
            torch.manual_seed(derive(bench.seed_of("order"), f"dropout {epoch} {part[0]}"))

        def work() -> float:
            loss = aim.loss(model, inputs, kept_states(model, inputs, sequences, frozen), answers)
            loss = loss if share == 1 else loss * share
            with bench.profile.phase("backward"):
                loss.backward()
            return float(loss.detach())

        return aim.counting(counter, model, inputs, answers, work)

    with bench.profile.phase("forward"):
        return in_parts(model, bench, frozen.encoded, rows, targets, aim.weight, run)


def _training_batch(model: Model, bench: Workbench, encoded: Encoded, sequences: list[int], epoch: int) -> Inputs:
    """Return a training batch, augmented if the recipe says so and training runs through the whole network."""
    backbone = model.backbone
    if isinstance(backbone, Augments) and _augments(bench) and model.prefix is None:
        return backbone.augmented(encoded, sequences, derive(bench.seed_of("augmentation"), "augmentation"), epoch)
    return backbone.collate(encoded, sequences)


def _augments(bench: Workbench) -> bool:
    return bool(bench.recipe.get("augmentation", "none") != "none")


def _augmented_fact(model: Model, bench: Workbench, plan: StagePlan) -> dict[str, Any]:
    """Return, for the receipt, the augmentation used and its epochs; empty for a backbone that cannot augment."""
    if "augmentation" not in bench.recipe:
        return {}
    if not _augments(bench):
        return {"augmentation": "none"}
    if model.prefix is not None:
        return {"augmentation": f"none: training starts from the kept states entering block {model.start}"}
    full = sum(lowest == model.start for lowest in plan.lowest)
    epochs = "" if full == len(plan.lowest) else f", in the last {full} epochs: before, from kept states"
    return {"augmentation": f"{bench.recipe['augmentation']}{epochs}"}


def _between(start: Mapping[str, Tensor], end: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Interpolate the weights linearly from `start` to `end` at `share` (Wortsman et al. 2022, arXiv:2109.01903).

    Where a class has few rows, the fitted head is good and training adds noise to it: the midpoint keeps most of what
    was learnt and loses most of the noise.
    """
    if share == 1:
        return dict(end)
    return {
        name: torch.lerp(start[name].float(), weight.float(), share).to(weight.dtype) for name, weight in end.items()
    }
