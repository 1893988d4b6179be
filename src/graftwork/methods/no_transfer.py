"""No transfer: a method on the backbone's architecture with random weights. Its gap shows the value of pretraining."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import Entries, Setting, Workbench
from graftwork.core.part_settings import TOLD
from graftwork.core.task import Task
from graftwork.pretrained.open_backbone import FRESH, opened_like
from graftwork.registry import methods
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.seeds import derive
from graftwork.train.wrapper_method import FittedOver, WrapperMethod, method_by, unfit_over

DRAWN = "backbone_seed"  # key of the facts: the seed of the random weights


@methods.register("no_transfer")
@dataclass(frozen=True)
class NoTransfer(WrapperMethod):
    """The method `by`, with its own hyper-parameters and recipe, on random weights that differ between seeds."""

    by: str = field(default="full", metadata={TOLD: True})  # the method that starts from random weights

    BOARD: ClassVar[Entries] = ()  # on a board only if requested
    CONTROL: ClassVar[bool] = True
    FRESH_WEIGHTS: ClassVar[bool] = True
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless `by` fits and uses a backbone, and the backbone is pretrained."""
        if not method_by(self.by).uses_backbone:
            return f"{self.by} uses no backbone"
        if card is not None and card.id.startswith(FRESH):
            return f"the weights of {card.id} are random already"
        return unfit_over(self.by) or method_by(self.by).unfit(task, card)

    def fit(self, bench: Workbench) -> FittedOver:
        """Fit `by` on random weights; nothing is shared with other runs, because none has these weights."""
        drawn = derive(bench.seed_of("init"), "backbone") % 2**31
        setting = _on_random(bench.setting, drawn)
        assert setting.backbone is not None
        passes = FrozenStore().of(setting.backbone, "")
        fitted = method_by(self.by).fit(replace(bench, setting=setting, passes=passes, shared=None))
        return FittedOver(fitted, {**fitted.facts, DRAWN: drawn})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedOver:
        """Rebuild the fitted method on the same random weights, drawn again from the stored seed."""
        below = method_by(self.by).restore(_on_random(setting, facts[DRAWN]), delta, facts)
        return FittedOver(below, facts)


def _on_random(setting: Setting, drawn: int) -> Setting:
    assert setting.backbone is not None
    fresh = opened_like(setting.backbone, f"{FRESH}{setting.backbone.card.id}", seed=drawn)
    return replace(setting, backbone=fresh)
