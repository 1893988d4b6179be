"""Execution of one pre-training: pilot, steps, the backbone's folder, and the result with its price tag."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from graftwork.budget.budget_account import BudgetAccount
from graftwork.config import Prices
from graftwork.core.meter import Phase, Readings
from graftwork.core.run import RunResult, RunSpec
from graftwork.errors import ConfigError
from graftwork.io.files import file_digest, safe_load, storage_errors, sync_folder, sync_tree
from graftwork.machine.environment import environment
from graftwork.machine.memory import fits_in_memory
from graftwork.pretrain.architecture import read_as
from graftwork.pretrain.duration import Allowance, Extent, flop_of, mean_step, paid_by, steps_of
from graftwork.pretrain.objective import (
    ByGradient,
    ContinuedNetwork,
    InOrder,
    Objective,
    PretrainingRecipe,
    ValidatesOften,
)
from graftwork.pretrain.parallel import JointWatch, Peers
from graftwork.pretrain.pretrain_facts import facts_of, scores_of
from graftwork.pretrain.pretrain_folder import CHECKPOINT, PretrainProgress, RunWriter, price_so_far
from graftwork.pretrain.pretrain_loop import LoopHooks, PretrainPlan, PretrainState, go_on
from graftwork.pretrain.schedule import positions, sum_over_steps
from graftwork.pretrain.training_text import Material
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.model_folder import READ_WITH
from graftwork.pretrained.open_backbone import FOLDER, PRETRAINED, open_backbone
from graftwork.run.price_tag import read_costs
from graftwork.run.run_checkpoint import computed_in
from graftwork.train.checkpoint_files import Checkpoints
from graftwork.train.seeds import derive

VALIDATIONS = 10  # most validations of a run, unless an interval is given
VALIDATED = 0.3  # most validation positions per training position, the last validation excepted
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class ResolvedPretraining:
    """The resolved settings of what is trained."""

    objective: Objective
    config: Mapping[str, Any]  # the objective as JSON
    source: Path | None  # folder of the backbone to continue from
    brought: Vocabulary | None  # vocabulary of that backbone
    size: Mapping[str, Any]
    recipe: PretrainingRecipe | None  # None for an objective without steps


@dataclass(frozen=True)
class PretrainSession:
    """The environment of a pre-training command: machine, processes, prices and meters."""

    computed_in: Mapping[str, Any]
    prices: Prices
    peers: Peers
    watch: JointWatch
    account: BudgetAccount | None  # for a budget of time, energy or money
    marks: Mapping[str, Any]  # meter readings at the start
    progress: Callable[[float, str], None]


@dataclass(frozen=True)
class PretrainOrder:
    """The order of a pre-training: what to train, how long, and how often to validate and checkpoint."""

    learner: ResolvedPretraining
    session: PretrainSession
    seed: int
    extent: Extent
    validate_every: int | None  # steps
    every_seconds: float  # between checkpoints
    prompt: str

    def __post_init__(self) -> None:
        if self.validate_every is not None and self.validate_every < 1:
            raise ConfigError("--validate-every must be at least 1", got=str(self.validate_every))


@dataclass
class Pilot:
    """The cost of one step, measured before the first."""

    short: tuple[float, float]  # FLOP and seconds of a step of short rows
    long: tuple[float, float]

    def flops(self, recipe: PretrainingRecipe, steps: int, of: int) -> float:
        """Return the FLOP of the first `steps` of a run of `of` steps."""
        return sum_over_steps(recipe, steps, of, self.short[0], self.long[0])


def by_gradient(order: PretrainOrder, spec: RunSpec, folder: Path, material: Material) -> RunResult:
    """Train in the loop, from the last checkpoint if there is one.

    Raises `Diverged`, `IncompatibleModule`, `OutOfMemory`.
    """
    objective, recipe = cast(ByGradient, order.learner.objective), order.learner.recipe
    assert recipe is not None
    writer = run_writer_of(order, folder)
    opened = _opened(order, objective, recipe, material)
    plan = _plan_of(order, objective, recipe, material)
    found = writer.resume() if order.session.peers.leads else None
    found = _from_leader(found, order.session.peers, writer)
    progress = found[0] if found else PretrainProgress(facts={"added": list(opened.added), "head_flops": 0.0})
    order.session.watch.meet(order.session.peers)
    allowance = allowance_of(order, progress)
    with torch.random.fork_rng(devices=[]), fits_in_memory(*_pass_of(recipe)):
        if opened.fresh and not found:
            progress.facts["head_flops"] = _train_heads(plan, objective, opened)
        training = PretrainState(plan, opened.network)
        pilot = _pilot(training, recipe)
        if found:
            training.restore(found[1])
        order.session.watch.meet(order.session.peers)
        _fix_steps(order, plan, pilot, progress, material, allowance)
        loading = order.session.watch.read()  # includes reading the text
        writer.begin(recipe, progress)
        go_on(training, progress, _every(order, plan, progress), _loop_hooks(order, writer, allowance))
        order.session.watch.meet(order.session.peers)
    readings = Readings(phases={"load": loading, "fit": writer.took()}, charged=writer.earlier)
    readings.train_flops = progress.facts["head_flops"] + pilot.flops(recipe, progress.step, progress.planned)
    readings.trained_parameters = training.trained
    if not order.session.peers.leads:
        return RunResult(id=spec.id, seed=spec.seed, status="ok")
    writer.close()
    with training.answering():
        _save(objective, training, order, folder)
    facts = facts_of(training, progress, material)
    return finished_run(order, spec, folder, readings, facts, scores_of(progress.facts["after"]))


def _pass_of(recipe: PretrainingRecipe) -> tuple[str, str]:
    """Return, in words for an error, what a step holds in memory at once and how to make it smaller."""
    what = f"a pass over {recipe.rows_at_once or recipe.batch} rows of {recipe.length} tokens"
    return what, "pass fewer rows at once with --rows-at-once, or take shorter rows or a smaller network"


def _opened(
    order: PretrainOrder, objective: ByGradient, recipe: PretrainingRecipe, material: Material
) -> ContinuedNetwork:
    """Build or load the network to train; fresh weights are drawn from the seed."""
    seed = derive(order.seed, "init")
    if order.learner.source is None:
        return ContinuedNetwork(
            objective.network(order.learner.size, material.vocabulary, recipe.length, seed), material.vocabulary
        )
    opened = objective.opened(order.learner.source, seed)
    if opened.longest and recipe.length > opened.longest:
        raise ConfigError(
            "the rows are longer than the backbone takes", got=f"{recipe.length}", expected=f"at most {opened.longest}"
        )
    return opened


def _plan_of(
    order: PretrainOrder, objective: ByGradient, recipe: PretrainingRecipe, material: Material
) -> PretrainPlan:
    rows = material.rows(objective, recipe)
    if order.session.peers.size > 1 and any(isinstance(found, InOrder) for found in rows.values()):
        raise ConfigError("this objective carries a state from step to step, and runs in one process only")
    return PretrainPlan(
        objective=objective,
        vocabulary=material.vocabulary,
        recipe=recipe,
        seed=order.seed,
        train=rows,
        held=material.held(objective, recipe),
        bf16=order.session.computed_in["precision"] == "bf16",
        device=order.session.computed_in["device"],
        peers=order.session.peers,
        watch=order.session.watch,
        prompt=order.prompt,
    )


def run_writer_of(order: PretrainOrder, folder: Path) -> RunWriter:
    """Open the run's folder with its checkpoints."""
    checkpoints = Checkpoints(folder / CHECKPOINT, folder.name, partial(computed_in, order.session.computed_in))
    return RunWriter(checkpoints, order.every_seconds, order.session.progress, order.session.watch)


def _from_leader(found: Any, peers: Peers, writer: RunWriter) -> Any:
    """Return the leading process's checkpoint in all processes; the others read it if the leader found one."""
    if peers.size == 1:
        return found
    there = peers.broadcast(float(found is not None))
    if not peers.leads and there:
        checkpoint = writer.checkpoints.read(follows=True)
        assert checkpoint is not None
        found = PretrainProgress.of(checkpoint), checkpoint.tensors
    peers.wait()
    return found


def _train_heads(plan: PretrainPlan, objective: ByGradient, opened: ContinuedNetwork) -> float:
    """Train the added heads alone, the pretrained weights frozen; return the FLOP used.

    Otherwise the gradients of an untrained head would damage the pretrained weights, and the scores before the first
    step would be those of an untrained head.
    """
    recipe = plan.recipe
    if not recipe.head_steps:
        return 0.0
    learned = {name: weight.requires_grad for name, weight in opened.network.named_parameters()}
    for name, weight in opened.network.named_parameters():
        weight.requires_grad_(name in opened.fresh)
    alone = replace(recipe, learning_rate=objective.recipe.learning_rate)
    training = PretrainState(replace(plan, recipe=alone, seed=derive(plan.seed, "heads")), opened.network)
    flops, _ = training.count(0, recipe.head_steps)
    for step in range(recipe.head_steps):
        training.step(step, recipe.head_steps)
    for name, weight in opened.network.named_parameters():
        weight.requires_grad_(learned[name])
    return flops * recipe.head_steps


def _pilot(training: PretrainState, recipe: PretrainingRecipe) -> Pilot:
    """Measure passes of each row length; their gradients are discarded."""
    long = training.count(1, 1)  # step 1 of 1 has long rows
    return Pilot(training.count(0, 10**6) if recipe.short_length else long, long)


def _validating_seconds(plan: PretrainPlan, pilot: Pilot, count: int) -> float:
    """Estimate the seconds of so many validations: a forward pass is a third of a step's work, counted as half."""
    step = plan.recipe.batch * plan.recipe.length
    return (count + 1) * _held_positions(plan) / step * pilot.long[1] * plan.peers.size / 2


def _fix_steps(
    order: PretrainOrder,
    plan: PretrainPlan,
    pilot: Pilot,
    progress: PretrainProgress,
    material: Material,
    allowance: Allowance | None,
) -> None:
    """Fix the number of steps, once: a resumed run keeps its first number."""
    if progress.steps:
        return
    extent, recipe = order.extent, plan.recipe
    flop = flop_of(extent.budget) if extent.budget is not None else None
    if allowance is not None:
        step = mean_step(recipe, pilot.short[1], pilot.long[1])
        count = VALIDATIONS
        if isinstance(plan.objective, ValidatesOften):  # a short run has fewer than the maximum
            count = _validations(plan, allowance.steps(step, _validating_seconds(plan, pilot, 0)))
        planned = allowance.steps(step, _validating_seconds(plan, pilot, count))
        progress.steps = int(order.session.peers.broadcast(planned))
    elif flop is not None:
        step = mean_step(recipe, pilot.short[0], pilot.long[0])
        progress.steps = paid_by(flop, step, progress.facts["head_flops"])
    elif extent.tokens is not None:
        progress.steps = steps_of(recipe, extent.tokens)
    else:
        once = len(material.own.train.ids) / mean_step(recipe, *material.ids_of_a_step(plan.train, recipe))
        once = math.ceil(round(once, 9))
        progress.steps = extent.steps or max(1, once)


def allowance_of(order: PretrainOrder, progress: PretrainProgress) -> Allowance | None:
    """Return the remaining budget of time, energy or money; None for other extents."""
    account = order.session.account
    return Allowance(account, progress.fit.wall_seconds) if account is not None else None


def _every(order: PretrainOrder, plan: PretrainPlan, progress: PretrainProgress) -> int:
    """Return the steps between validations; short runs have fewer validations, so that most work is training."""
    return order.validate_every or max(1, -(-progress.steps // _validations(plan, progress.steps)))


def _validations(plan: PretrainPlan, steps: int) -> int:
    """Return the number of validations of a run of so many steps."""
    objective, trained = plan.objective, positions(plan.recipe, steps, steps)
    most = objective.validations if isinstance(objective, ValidatesOften) else VALIDATIONS
    return min(most, max(1, int(VALIDATED * trained / _held_positions(plan))))


def _held_positions(plan: PretrainPlan) -> int:
    return sum(held.steps * held.batch * held.length for held in plan.held.values())


def _loop_hooks(order: PretrainOrder, writer: RunWriter, allowance: Allowance | None) -> LoopHooks:
    leads = order.session.peers.leads

    def spent() -> bool:
        return allowance is not None and bool(order.session.peers.broadcast(allowance.is_spent()))

    def price() -> str:
        return price_so_far(order.session.marks, writer.spent(), order.session.prices)

    return LoopHooks(
        log=writer.log if leads else lambda line: None,
        checkpoint=writer.checkpoint if leads else lambda progress, tensors, now: None,
        tell=(lambda progress, loss: writer.tell(progress, loss, price)) if leads else lambda progress, loss: None,
        spent=spent,
    )


def _save(objective: ByGradient, training: PretrainState, order: PretrainOrder, folder: Path) -> None:
    """Write `backbone/`, with the source's tokenizer and pooling files, so that it encodes inputs as before."""
    with placed(folder / PRETRAINED) as part:
        objective.save(training.network.cpu().eval(), training.plan.vocabulary, part)
        source = order.learner.source
        for name in READ_WITH:
            if source is not None and (source / name).is_file() and not (part / name).exists():
                with storage_errors(part / name):
                    (part / name).parent.mkdir(exist_ok=True)
                    shutil.copyfile(source / name, part / name)
        if source is not None:
            read_as(source, part)


@contextlib.contextmanager
def placed(final: Path) -> Any:
    """A temporary folder, renamed to `final` when the block succeeds; replaces an existing folder."""
    part = final.with_name(f".{final.name}.part")
    with storage_errors(final):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
    try:
        yield part
        with storage_errors(final):
            sync_tree(part)
            shutil.rmtree(final, ignore_errors=True)
            os.replace(part, final)
            sync_folder(final.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def finished_run(
    order: PretrainOrder,
    spec: RunSpec,
    folder: Path,
    readings: Readings,
    facts: dict[str, Any],
    scores: dict[str, float],
) -> RunResult:
    """Return the result with its receipt, after opening the backbone once as a check."""
    backbone = folder / PRETRAINED
    card = open_backbone(f"{FOLDER}{backbone}", precision="fp32").card
    facts |= {
        "backbone": {"family": card.family, "revision": card.revision, "width": card.width, "blocks": card.blocks}
    }
    if (backbone / WEIGHTS).is_file():
        facts["weights_sha256"] = file_digest(backbone / WEIGHTS)
        readings.stored_parameters = sum(tensor.numel() for tensor in safe_load(backbone / WEIGHTS).values())
    readings.stored_bytes = sum(path.stat().st_size for path in backbone.rglob("*") if path.is_file())
    whole, before = order.session.watch.read(), sum(readings.phases.values(), start=Phase())
    readings.phases["save"] = whole - before
    costs = read_costs(order.session.marks, readings, order.session.prices)
    spent = whole + readings.charged  # `charged`: by earlier attempts
    return RunResult(
        id=spec.id,
        seed=spec.seed,
        status="ok",
        scores=scores,
        validation=scores,
        costs=costs,
        spent=spent,
        facts=facts,
        environment=environment() | order.session.prices.as_json(),
    )
