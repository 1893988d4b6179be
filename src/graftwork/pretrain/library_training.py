"""Pre-training by another library, with checkpoints, a budget and a result like any other run's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

from torch import Tensor

from graftwork.core.meter import Readings
from graftwork.core.run import RunResult, RunSpec
from graftwork.machine.signals import waiting
from graftwork.pretrain.duration import Allowance, Extent, flop_of, paid_by
from graftwork.pretrain.objective import AtOnce, Bench
from graftwork.pretrain.pretrain_facts import notes_of, text_of
from graftwork.pretrain.pretrain_folder import PretrainProgress
from graftwork.pretrain.pretrain_run import PretrainOrder, allowance_of, finished_run, placed, run_writer_of
from graftwork.pretrain.training_text import Material
from graftwork.pretrained.open_backbone import PRETRAINED


def at_once(order: PretrainOrder, spec: RunSpec, folder: Path, material: Material) -> RunResult:
    """Train an `AtOnce` objective, from the last checkpoint if any. Raises `IncompatibleModule` for another run's."""
    objective = cast(AtOnce, order.learner.objective)
    loading, writer = order.session.watch.read(), run_writer_of(order, folder)
    found = writer.resume()
    progress = found[0] if found else PretrainProgress()
    allowance = allowance_of(order, progress)

    def resume(restore: Callable[[Mapping[str, Tensor]], None]) -> int:
        if found:
            restore(found[1])
        return progress.step

    def keep(step: int, steps: int, tensors: Callable[[], dict[str, Tensor]]) -> None:
        progress.step, progress.steps = step, steps
        writer.checkpoint(progress, tensors, bool(signals.came))
        if signals.came:
            signals.let_go()

    with placed(folder / PRETRAINED) as part, waiting() as signals:
        bench = Bench(
            train=material.own.train,
            validation=material.own.validation,
            vocabulary=material.vocabulary,
            size=order.learner.size,
            seed=order.seed,
            threads=order.session.computed_in["threads"],
            folder=part,
            progress=order.session.progress,
            log=writer.log,
            tokens=partial(_tokens, order.extent, allowance, progress, len(material.own.train.ids)),
            resume=resume,
            keep=keep,
            is_spent=allowance.is_spent if allowance is not None else lambda: False,
        )
        try:
            learned = objective.learn(bench)
        finally:
            writer.close()
    phases = {"load": loading, "fit": writer.took()}
    readings = Readings(phases=phases, charged=writer.earlier, train_flops=learned.flops)
    readings.train_flops_grade = "model"  # operators of another library cannot be counted
    readings.trained_parameters = learned.trained_parameters
    facts = dict(learned.facts) | {"text": text_of(material), "attempts": progress.attempts}
    facts |= material.counted()
    if learned.facts["tokens_seen"] < progress.facts["tokens"]:
        facts["stopped"] = f"the budget was spent before all of {progress.facts['tokens']:,} tokens were seen"
    facts["notes"] = notes_of(material)
    return finished_run(order, spec, folder, readings, facts, dict(learned.scores))


def _tokens(
    extent: Extent,
    allowance: Allowance | None,
    progress: PretrainProgress,
    once: int,
    passes: int,
    flops: float,
    speed: Callable[[], float],
) -> int:
    """Return the number of tokens to train on, fixed once: a resumed run keeps its first number."""
    flop = flop_of(extent.budget) if extent.budget is not None else None
    if "tokens" not in progress.facts:
        if allowance is not None:
            count = allowance.steps(1 / speed(), 0.0)
        elif flop is not None:
            count = paid_by(flop, flops)
        else:
            count = extent.tokens or passes * once
        progress.facts["tokens"] = count
    return int(progress.facts["tokens"])
