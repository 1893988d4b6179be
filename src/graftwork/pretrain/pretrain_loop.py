"""The pre-training loop: a step is a pure function of the weights, the optimiser, the seed and the step's number."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from graftwork.machine.cards import on_device
from graftwork.machine.signals import Waiting, waiting
from graftwork.pretrain.objective import (
    Averages,
    Batch,
    ByGradient,
    InOrder,
    Loss,
    Optimiser,
    OwnOptimiser,
    PretrainingRecipe,
    Rows,
    VariedRows,
    Writes,
)
from graftwork.pretrain.parallel import ALONE, JointWatch, Peers
from graftwork.pretrain.pretrain_folder import PretrainProgress
from graftwork.pretrain.schedule import length_at, parts, positions, rate
from graftwork.pretrain.validation_loss import HeldOut, validate
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.train.flops import count_flops
from graftwork.train.loop import Diverged
from graftwork.train.optimiser import BETAS, FlatAdamW
from graftwork.train.seeds import derive

SAMPLE_LENGTH = 40  # tokens of a sample


@dataclass(frozen=True)
class PretrainPlan:
    """The constants of a pre-training: objective, recipe, data and devices."""

    objective: ByGradient
    vocabulary: Vocabulary
    recipe: PretrainingRecipe
    seed: int
    train: Mapping[int, Rows]  # T -> rows of that length
    held: Mapping[str, HeldOut]  # "validation", and "general" where there is one
    bf16: bool = False  # autocast to bf16; weights, gradients and stored tensors stay in fp32
    device: str = "cpu"
    peers: Peers = ALONE
    watch: JointWatch = field(default_factory=JointWatch)  # exchanges CPU seconds whenever gradients are summed
    prompt: str = ""  # beginning of every sample


@dataclass(frozen=True)
class LoopHooks:
    """The callbacks of the loop."""

    log: Callable[[Mapping[str, Any]], None]  # appends a line to log.jsonl
    checkpoint: Callable[
        [PretrainProgress, Callable[[], Mapping[str, Tensor]], bool], None
    ]  # writes one if due, or if True
    tell: Callable[[PretrainProgress, float], None]  # emits progress, with the loss
    spent: Callable[[], bool]  # True if the budget is spent; a collective call with one result for all processes


class PretrainState:
    """A network in training, its optimiser and its carried state."""

    def __init__(self, plan: PretrainPlan, network: nn.Module):
        self.plan, self.network = plan, on_device(network, plan.device).train()
        learning = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        recipe, objective = plan.recipe, plan.objective
        self.parameters = list(learning.values())
        self.optimiser: Optimiser = (
            objective.optimiser(network, recipe)
            if isinstance(objective, OwnOptimiser)
            else FlatAdamW(
                learning, recipe.learning_rate, recipe.weight_decay, recipe.clip, betas=(BETAS[0], recipe.beta)
            )
        )
        self.state: dict[int, Mapping[str, Tensor]] = {}  # part -> its state for the next step

    @cached_property
    def trained(self) -> int:
        """The number of trained parameters."""
        return sum(weight.numel() for weight in self.parameters)

    def batch(self, step: int, steps: int) -> Batch:
        """Return the whole batch of a step, on the CPU."""
        return self._of(self._rows(step, steps), step)

    def _of(self, rows: Rows, step: int) -> Batch:
        plan = self.plan
        draw = torch.Generator().manual_seed(derive(plan.seed, f"draw {step}"))
        return plan.objective.prepare(rows.rows(plan.seed, step, plan.recipe.batch), plan.vocabulary, draw)

    def _rows(self, step: int, steps: int) -> Rows:
        return self.plan.train[length_at(self.plan.recipe, step, steps)]

    def step(self, step: int, steps: int) -> dict[str, float]:
        """Take one step and return its log line. Raises `Diverged`."""
        plan = self.plan
        batch, total = self.batch(step, steps), torch.zeros((), dtype=torch.float64)
        terms: dict[str, Tensor] = {"nats": torch.zeros_like(total)}
        if not self._goes_on(step, steps):
            self.state = {}
        for number, (start, stop) in enumerate(parts(plan.recipe, batch.rows)):
            if plan.peers.owns(number):
                torch.manual_seed(derive(plan.seed, f"pass {step} {number}"))  # dropout
                part = batch.part(start, stop).to(plan.device).beside(self.state.get(number, {}))
                loss = self._pass(part, number)
                total += loss.total.detach().cpu()
                for name, term in {"nats": loss.nats / batch.predicted, **loss.terms}.items():
                    terms[name] = terms.get(name, torch.zeros((), dtype=torch.float64)) + term.cpu()
        self._add_up([total, *terms.values()])
        share = rate(plan.recipe, step, steps)
        norm = self.optimiser.step(share)
        if not (math.isfinite(float(total)) and math.isfinite(norm)):
            raise Diverged(
                f"the loss is no longer a number at step {step + 1}",
                got=f"loss {float(total)}, norm of the gradient {norm}",
                do="begin anew with a lower --learning-rate or a longer --warm-up",
            )
        line = {"step": step + 1, "loss": float(total), "rate": plan.recipe.learning_rate * share, "norm": norm}
        return line | {name: float(term) for name, term in terms.items()}

    def _goes_on(self, step: int, steps: int) -> bool:
        """Return whether the rows of `step` continue those of the previous step, which must be equally long."""
        recipe, length = self.plan.recipe, length_at(self.plan.recipe, step, steps)
        rows = self.plan.train[length]
        in_order = isinstance(rows, InOrder) and not rows.begins(step, recipe.batch)
        return in_order and length == length_at(recipe, step - 1, steps)

    def _pass(self, part: Batch, number: int) -> Loss:
        with torch.autocast(self.plan.device, torch.bfloat16, enabled=self.plan.bf16):
            loss = self.plan.objective.loss(self.network, part)
        loss.total.backward()
        self.state[number] = loss.state
        return loss

    def _add_up(self, numbers: list[Tensor]) -> None:
        if self.plan.peers.size > 1:
            for weight in self.parameters:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
            gradients = [weight.grad for weight in self.parameters if weight.grad is not None]
            self.plan.watch.meet(self.plan.peers, gradients + numbers)

    def count(self, step: int, steps: int) -> tuple[float, float]:
        """Return a step's FLOP and its passes' seconds in this process, from two passes with discarded gradients.

        For rows of varied lengths, both are means over a few typical steps.
        """
        rows = self._rows(step, steps)
        if not isinstance(rows, VariedRows):
            return self._count(self.batch(step, steps))
        typical = [self._of(rows, one) for one in rows.typical(self.plan.seed, self.plan.recipe.batch)]
        flops, seconds = zip(*(self._count(batch) for batch in typical), strict=True)
        return sum(flops) / len(typical), sum(seconds) / len(typical)

    def _count(self, batch: Batch) -> tuple[float, float]:
        torch.manual_seed(derive(self.plan.seed, "count"))
        ranges = parts(self.plan.recipe, batch.rows)
        part = batch.part(*ranges[0]).to(self.plan.device)
        _, flops = count_flops(lambda: self._pass(part, 0))
        began = self._now()
        self._pass(part, 0)
        seconds = self._now() - began
        for weight in self.parameters:
            weight.grad = None
        self.state = {}
        shares = batch.rows / (ranges[0][1] - ranges[0][0])
        return flops * shares, seconds * shares / self.plan.peers.size

    def _now(self) -> float:
        """Return the time after synchronising with the accelerator, which runs asynchronously."""
        if self.plan.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def validated(self) -> dict[str, dict[str, float]]:
        """Return the scores of every held-out split, with the resulting weights (`answering`)."""
        plan, found = self.plan, {}
        with self.answering(), torch.autocast(plan.device, torch.bfloat16, enabled=plan.bf16):
            for name, held in plan.held.items():
                score = validate(plan.objective, self.network, plan.vocabulary, held, plan.device)
                found[name] = score.as_json(held.tokens)
        return found

    def sample(self, step: int) -> str | None:
        """Return a generated text; None if the network cannot generate, or in processes that do not lead."""
        objective, plan = self.plan.objective, self.plan
        if not isinstance(objective, Writes) or not plan.peers.leads:
            return None
        with self.answering():
            seed = derive(plan.seed, f"sample {step}")
            return objective.sample(self.network, plan.vocabulary, plan.prompt, SAMPLE_LENGTH, seed)

    def answering(self) -> AbstractContextManager[Any]:
        """Use the resulting weights within the block, as in `Averages.answering`."""
        return self.optimiser.answering() if isinstance(self.optimiser, Averages) else torch.no_grad()

    def tensors(self) -> dict[str, Tensor]:
        """Return all state that the next step depends on, other than its number."""
        kept = {f"network.{name}": weight.detach() for name, weight in self.network.named_parameters()}
        kept |= {f"buffer.{name}": buffer for name, buffer in self.network.named_buffers()}
        kept |= {f"optimiser.{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        for number, state in self.state.items():
            kept |= {f"state.{number}.{name}": tensor for name, tensor in state.items()}
        return {name: tensor.cpu() for name, tensor in kept.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Resume from the state returned by `tensors`."""
        for kind, own in (("network", self.network.named_parameters()), ("buffer", self.network.named_buffers())):
            for name, tensor in own:
                tensor.copy_(tensors[f"{kind}.{name}"])
        kept = {name: tensor.to(self.plan.device) for name, tensor in tensors.items()}
        self.optimiser.restore(
            {name.removeprefix("optimiser."): kept[name] for name in kept if name.startswith("optimiser.")}
        )
        self.state = {}
        for name in kept:
            if name.startswith("state."):
                _, number, inside = name.split(".", 2)
                self.state[int(number)] = {**self.state.get(int(number), {}), inside: kept[name]}


def go_on(training: PretrainState, progress: PretrainProgress, validate_every: int, keeping: LoopHooks) -> None:
    """Train from step `progress.step` to the end or until the budget is spent; updates `progress`.

    SIGINT and SIGTERM are deferred to the end of the step and its checkpoint. A validation is interrupted at once: a
    checkpoint of its beginning is written, and the validation is repeated on resuming.
    """
    with waiting() as signals:
        if progress.step == 0 or progress.owes_validation:
            _validate(training, progress, keeping, signals)
        while progress.step < progress.steps:
            _take(training, progress, keeping)
            if progress.step % validate_every == 0 or progress.step == progress.steps:
                _validate(training, progress, keeping, signals)
            keeping.checkpoint(progress, training.tensors, bool(signals.came))
            if signals.came:
                signals.let_go()


def _take(training: PretrainState, progress: PretrainProgress, keeping: LoopHooks) -> None:
    """Take, log and report one step; make it the last one if the budget is spent."""
    line = training.step(progress.step, progress.steps)
    progress.step += 1
    seen = positions(training.plan.recipe, progress.step, progress.planned)
    keeping.log({**line, "tokens": seen})
    keeping.tell(progress, line["loss"])
    if keeping.spent() and progress.step < progress.steps:
        progress.facts["stopped"] = f"the budget was spent after {progress.step:,} of {progress.steps:,} steps"
        progress.facts["planned"], progress.steps = progress.steps, progress.step


def _validate(training: PretrainState, progress: PretrainProgress, keeping: LoopHooks, signals: Waiting) -> None:
    """Validate and log every held-out score, and a sample if the network can generate one."""
    progress.owes_validation = True
    scores = signals.during(training.validated, lambda: keeping.checkpoint(progress, training.tensors, True))
    progress.owes_validation = False
    if progress.step and isinstance(training.optimiser, Averages):
        training.optimiser.validated(scores["validation"]["nats"])
    progress.facts.setdefault("before", scores)
    progress.facts["after"] = scores
    keeping.log({"step": progress.step, "validation": scores})
    sample = training.sample(progress.step) if progress.step else None
    if sample is not None:
        keeping.log({"step": progress.step, "sample": sample})
