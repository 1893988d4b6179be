"""Contrastive: the backbone is tuned on pairs of the few labelled texts, then a linear layer is fitted on its features
(SetFit, Tunstall et al. 2022, arXiv:2209.11055)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import BackboneCard, towers_of
from graftwork.core.kind import OneClass
from graftwork.core.method import AS_IT_COMES, Entries, Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.targets.linear_head import PooledHead
from graftwork.train.flops import StepCounter
from graftwork.train.linear_fit import fit_best_linear, scorer
from graftwork.train.loop import FittedModel, answer, build_model, restore_by_attaching
from graftwork.train.pair_training import PairPlan, Reading, train_on_pairs
from graftwork.train.seeds import derive

SIZE = 64  # texts per step, at most: 2,016 pairs


@methods.register("contrastive")
@dataclass(frozen=True)
class Contrastive:
    """Contrastive fine-tuning for few labels: pairs of rows give far more training signals than rows."""

    rate: float = 1e-4  # peak of the schedule
    epochs: int = 20  # over the training rows
    steps: int = 300  # steps, at most
    decay: float = 1.0  # learning rate of a block as a share of that of the block above

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    BOARD: ClassVar[Entries] = ()  # on a board only if requested, because it is for few labels
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless each example has one class and the backbone has blocks."""
        if not (self.rate > 0 and self.epochs >= 1 and self.steps >= 1 and 0 < self.decay <= 1):
            found = f"rate {self.rate:g}, epochs {self.epochs}, steps {self.steps} and decay {self.decay:g}"
            return f"rate must be above 0, epochs and steps at least 1 and decay between 0 and 1, not {found}"
        if card is not None and not card.blocks:
            return f"{card.id} has no blocks to tune"
        fits = isinstance(kinds.get(task.kind), OneClass)
        return "" if fits else f"it needs one class of each example, not {task.kind}"

    def attach(self, model: Model) -> None:
        """Train everything except the token embeddings."""
        model.own_blocks(0, self.decay)
        model.freeze_sites("embedding")

    def fit(self, bench: Workbench) -> FittedModel:
        """Train on pairs, then fit the linear layer with its penalty chosen on validation."""
        backbone, setting = bench.setting.backbone, bench.setting
        assert backbone is not None
        torch.manual_seed(derive(bench.seed_of("init"), "init"))
        towers = towers_of(backbone.card.towers, bench.train.examples[0])
        model = build_model(self, setting, towers)
        head, model.head = model.head, Reading()
        assert isinstance(head, PooledHead)
        with bench.profile.phase("tokenise"):
            train, validation = (backbone.encode(split.examples) for split in (bench.train, bench.validation))
        classes = np.asarray(bench.train.targets, dtype=np.int64)
        plan = PairPlan(self.rate, self.epochs, self.steps, SIZE)
        facts: dict[str, Any] = {"towers": towers, "start_block": model.start}
        facts |= train_on_pairs(model, bench, train, classes, plan)
        with bench.profile.phase("evaluate"):
            counter = StepCounter(bench.tally)
            given, asked = (torch.from_numpy(answer(model, one, None, counter)).float() for one in (train, validation))
        fit, reached, flops = fit_best_linear(
            (given, torch.from_numpy(classes)), asked, bench.training_loss, setting.kind.outputs(setting.task),
            scorer(bench, validation),
        )  # fmt: skip
        bench.tally.add_model(flops)
        with torch.no_grad():
            head.out.weight.copy_(fit.weight)
            head.out.bias.copy_(fit.bias)
        model.head = head
        return FittedModel(model, facts | {"strength": fit.strength, "validation": reached})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedModel:
        """Rebuild the model from its stored weights."""
        restored: FittedModel = restore_by_attaching(self, setting, delta, facts)
        return restored
