"""The only training loop: head start, epochs over length-bucketed batches, the best epoch on validation kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from graftwork.core.backbone import Augments, Encoded, Inputs, towers_of
from graftwork.core.example import Example
from graftwork.core.head import PooledHead
from graftwork.core.method import FrozenPass, Logits, Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.ragged import flat
from graftwork.core.seen import Part, Seen
from graftwork.errors import GraftworkError
from graftwork.train.answering import answer_together, batches
from graftwork.train.flops import StepCounter, counted
from graftwork.train.linear import fit_on_block, fitted_on
from graftwork.train.optim import FlatAdamW
from graftwork.train.seeds import derive
from graftwork.train.stages import Passes, Plan, open_passes, plan_of


class Diverged(GraftworkError):
    """The loss or its gradient is no longer a number."""


class Changes(Protocol):
    """A method that changes the network: it says what of it."""

    def attach(self, model: Model) -> None:
        """Plug adapters or own blocks; afterwards `model.delta()` is final."""


@runtime_checkable
class Attaches(Changes, Protocol):
    """One that is trained by this loop: it says how fast, too."""

    @property
    def learning_rate(self) -> float:
        """The peak rate of the schedule."""


@torch.no_grad()
def answer(
    model: Model,
    encoded: Encoded,
    frozen: FrozenPass | None = None,
    counter: StepCounter | None = None,
    blind: Sequence[float] | None = None,
) -> Logits:
    """Logits in batches of near-equal lengths, from the states that `frozen` kept where there are any.

    Words that are not seen are answered by `blind` (C,).
    """
    order, parts = batches(encoded), []
    for rows in order:
        sequences = encoded.sequences(rows)
        inputs = model.backbone.collate(encoded, sequences)
        entering = _entering(model, inputs, sequences, frozen)
        forward = partial(model, inputs, entering)
        logits = counter.run(inputs["attention_mask"], forward) if counter else forward()  # (B, C), or (W, C)
        parts.append(logits.double().cpu().numpy())
    return encoded.whole(np.concatenate(parts), np.concatenate(order), blind)


@dataclass
class FittedModel:
    """A trained `Model` that answers. Implements `Fitted`, `ReadsStates` and `Hangs`."""

    model: Model
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Numbers that the optimiser changed."""
        return sum(parameter.numel() for parameter in self.model.delta().values())

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C), a row per example, or (W, C) for each of their words; batches hold near-equal lengths."""
        return answer_together(self.model.backbone, self.model.backbone.encode(examples), [self])[0]

    @property
    def depth(self) -> int | None:
        """The lowest block that training changed; None where that is the first."""
        return self.model.start or None

    def read(self, seen: Seen | Part) -> Tensor:
        """(B, C) logits, or (W, C), from the states that enter the lowest changed block."""
        logits: Tensor = self.model(seen.inputs, seen.state(self.model.start) if self.model.start else None)
        return logits

    @property
    def adapters(self) -> Mapping[str, nn.Module]:
        """Site -> what hangs there; nothing where the network has weights of its own."""
        if any(weight.requires_grad for weight in self.model.network.parameters()):
            return {}
        return {name.replace("/", "."): adapter for name, adapter in self.model.adapters.items()}

    @property
    def head(self) -> nn.Module:
        """Reads the output of the network."""
        return self.model.head

    def delta(self) -> dict[str, Tensor]:
        """What trains, by name."""
        return _snapshot(self.model.delta())

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Operators of answering these."""
        return counted(lambda: self.logits(examples))[1], "counter"


def build_model(method: Changes, setting: Setting, towers: int) -> Model:
    """The untrained model: backbone, adapters and head, in eval mode."""
    assert setting.backbone is not None
    model = Model(setting.backbone, setting.kind, setting.task, towers)
    method.attach(model)
    return model.eval()


def restore_by_attaching(
    method: Changes, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]
) -> FittedModel:
    """The fitted model from its stored delta."""
    model = build_model(method, setting, int(facts["towers"]))
    model.load_delta(delta)
    assert setting.backbone is not None
    model.rest_on(setting.backbone)
    return FittedModel(model, facts)


def fit_by_gradient(method: Attaches, bench: Workbench) -> FittedModel:
    """Head start, then AdamW on whatever `method` lets train. Raises `Diverged`."""
    assert bench.setting.backbone is not None
    towers = towers_of(bench.setting.backbone.card.towers, bench.train.examples[0])
    torch.manual_seed(derive(bench.seed_of("init"), "init"))
    model = build_model(method, bench.setting, towers)
    facts: dict[str, Any] = {"towers": towers, "start_block": model.start}
    rate = bench.recipe["learning_rate"] or method.learning_rate
    plan = plan_of(method, model, bench.recipe)
    facts |= plan.facts(model, rate)
    passes = open_passes(plan.lowest[0], model, bench)
    facts |= fitted_on(bench, passes["train"].encoded)
    with bench.profile.phase("head start"):
        facts["head_start"] = _start_head(model, bench, passes)
    facts |= _train(model, bench, passes, plan, rate, facts.get("blind"))
    facts |= _augmented_fact(model, bench, plan)
    return FittedModel(model, facts)


def _start_head(model: Model, bench: Workbench, passes: Passes) -> dict[str, Any]:
    """Fit the head on frozen features, so that training starts from the probe and not from noise."""
    if not isinstance(model.head, PooledHead):
        return {"used": False}
    fit, reached = fit_on_block(bench, model.backbone.card.blocks, passes["train"], passes["validation"])
    with torch.no_grad():
        model.head.out.weight.copy_(fit.weight)
        model.head.out.bias.copy_(fit.bias)
    return {"used": True, "strength": fit.strength, "validation": reached}


def _train(
    model: Model, bench: Workbench, passes: Passes, plan: Plan, rate: float, blind: Sequence[float] | None
) -> dict[str, Any]:
    recipe = bench.recipe
    rates = model.rates | {f"head.{name}": recipe["head_rate"] for name, _ in model.head.named_parameters()}
    optimiser = FlatAdamW(model.delta(), rate, recipe["weight_decay"], recipe["clip"], model.tables(), rates)
    targets = torch.from_numpy(flat(bench.train.targets)).to(model.device)
    counter, looking = StepCounter(bench.tally), StepCounter(bench.tally)

    def validate() -> float:
        with bench.profile.phase("evaluate"):
            return bench.score(answer(model, passes["validation"].encoded, passes["validation"], looking, blind))

    # The head start is no candidate: its penalty was chosen on the same rows, so its score there flatters it.
    history, step = [validate()], 0
    best_score, best_epoch, best = -math.inf, 0, _snapshot(plan.delta)
    start = best if recipe["kept_share"] < 1 else {}  # held to the end only where it is gone back to
    for epoch, lowest in enumerate(plan.lowest, start=1):
        if lowest != model.start:
            passes = open_passes(lowest, model, bench, passes)
            optimiser.add(model.delta(), model.tables())
            counter, looking = StepCounter(bench.tally), StepCounter(bench.tally)  # a length costs more now
        losses = []
        for rows in bench.order(passes["train"].encoded.lengths, epoch):
            share = plan.share(step)
            answers = targets[passes["train"].encoded.answered(rows)]
            loss = _step(model, bench, passes["train"], rows.tolist(), answers, counter, epoch)
            with bench.profile.phase("optimiser"):
                norm = optimiser.step(share)
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise Diverged(f"training diverged at step {step}", got=f"loss {loss}, gradient norm {norm}")
            bench.log({"step": step, "loss": loss, "rate": rate * share, "norm": norm})
            losses.append(loss)
            step += 1
            bench.progress(step / recipe["steps"], f"epoch {epoch}/{recipe['epochs']}")
        reached = validate()
        history.append(reached)
        bench.log({"epoch": epoch, "validation": reached, "loss": sum(losses) / len(losses), "time": time.time()})
        if reached >= best_score:
            best_score, best_epoch, best = reached, epoch, _snapshot(plan.delta)
    model.load_delta(_between(start, best, recipe["kept_share"]))
    tokens = sum(map(len, passes["train"].encoded.ids))
    return {
        "learning_rate": rate,
        "epochs": recipe["epochs"],
        "best_epoch": best_epoch,
        "steps": step,
        "validation_by_epoch": history,
        "train_tokens_per_epoch": tokens,
        "cut_examples": passes["train"].encoded.cut,
    }


def _step(
    model: Model,
    bench: Workbench,
    frozen: FrozenPass,
    rows: list[int],
    targets: Tensor,
    counter: StepCounter,
    epoch: int,
) -> float:
    """Forward and backward over one batch; the gradients stay on the parameters."""
    with bench.profile.phase("forward"):
        sequences = frozen.encoded.sequences(rows)
        inputs = _shown(model, bench, frozen.encoded, sequences, epoch)

        def work() -> float:
            loss = bench.setting.kind.loss(model(inputs, _entering(model, inputs, sequences, frozen)), targets)
            with bench.profile.phase("backward"):
                loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        return counter.run(inputs["attention_mask"], work)


def _shown(model: Model, bench: Workbench, encoded: Encoded, sequences: list[int], epoch: int) -> Inputs:
    """A batch as training sees it: augmented where the recipe says so and it runs through the whole network."""
    backbone = model.backbone
    if isinstance(backbone, Augments) and _augments(bench) and model.prefix is None:
        return backbone.augmented(encoded, sequences, derive(bench.seed_of("augmentation"), "augmentation"), epoch)
    return backbone.collate(encoded, sequences)


def _augments(bench: Workbench) -> bool:
    return bool(bench.recipe.get("augmentation", "none") != "none")


def _augmented_fact(model: Model, bench: Workbench, plan: Plan) -> dict[str, Any]:
    """For the receipt: what was shown of the images, in which epochs; nothing for a backbone that can't augment."""
    if "augmentation" not in bench.recipe:
        return {}
    if not _augments(bench):
        return {"augmentation": "none"}
    if model.prefix is not None:
        return {"augmentation": f"none: training starts from the kept states entering block {model.start}"}
    full = sum(lowest == model.start for lowest in plan.lowest)
    epochs = "" if full == len(plan.lowest) else f", in the last {full} epochs: before, from kept states"
    return {"augmentation": f"{bench.recipe['augmentation']}{epochs}"}


def _entering(model: Model, inputs: Inputs, sequences: list[int], frozen: FrozenPass | None) -> Tensor | None:
    if frozen is None or model.prefix is None:
        return None
    return frozen.entering(sequences, inputs["attention_mask"].bool())


def _between(start: Mapping[str, Tensor], end: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """The weights at `share` of the straight way from `start` to `end` (Wortsman et al. 2022, arXiv:2109.01903).

    Where a class has few rows, the fitted head is good and training adds noise to it: half way keeps most of what was
    learnt and loses most of the noise.
    """
    if share == 1:
        return dict(end)
    return {
        name: torch.lerp(start[name].float(), weight.float(), share).to(weight.dtype) for name, weight in end.items()
    }


def _snapshot(delta: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy in the processor's memory, wherever the model computes."""
    return {name: parameter.detach().to("cpu", copy=True) for name, parameter in delta.items()}
