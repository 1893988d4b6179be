"""Cross-encoder: a method that reads both texts of a pair together on a network that reads each by itself
(Devlin et al. 2019, arXiv:1810.04805; the two ways beside each other: Reimers & Gurevych 2019, arXiv:1908.10084)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from torch import Tensor

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.kind import OfChoices
from graftwork.core.method import AS_IT_COMES, Entries, SameStart, Setting, Workbench
from graftwork.core.part_settings import TOLD
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.wrapper_method import FittedOver, WrapperMethod, method_by, sharing_under, unfit_over

NAME = "pairs read together"  # prefix of the results that runs share


@methods.register("cross_encoder")
@dataclass(frozen=True)
class CrossEncoder(WrapperMethod):
    """The method `by` on pairs of texts that are one sequence each, so that every token attends to both texts."""

    by: str = field(default="full", metadata={TOLD: True})  # the method, with its hyper-parameters

    BOARD: ClassVar[Entries] = AS_IT_COMES
    LADDER: ClassVar[Entries] = AS_IT_COMES
    uses_backbone: ClassVar[bool] = True

    @property
    def SAME_START(self) -> bool:
        """Whether the runs of `by` start from the same weights for every seed."""
        below = method_by(self.by)
        return isinstance(below, SameStart) and below.SAME_START

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task has pairs, the backbone encodes their texts separately, and `by` fits."""
        if task.text_a is None and not isinstance(kinds.get(task.kind), OfChoices):
            return "it reads two texts together, and this task has no pairs of texts"
        if not method_by(self.by).uses_backbone:
            return f"{self.by} uses no backbone"
        if card is not None and card.towers == 1:
            return f"{card.id} reads both texts of a pair together anyway"
        if card is not None and "attention" in card.lacks:
            return f"{card.id} has no attention from one text to the other"
        return unfit_over(self.by) or method_by(self.by).unfit(task, card)

    def fit(self, bench: Workbench) -> FittedOver:
        """Fit `by` to joint pairs; frozen passes over them are kept for the other seeds."""
        setting = self._joint(bench.setting)
        assert setting.backbone is not None
        store = bench.once(NAME, lambda tally: FrozenStore())
        passes = store.of(setting.backbone, NAME)
        fitted = method_by(self.by).fit(replace(sharing_under(bench, NAME), setting=setting, passes=passes))
        return FittedOver(fitted, fitted.facts, setting.backbone)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedOver:
        """Restore the method `by` over joint pairs."""
        joint = self._joint(setting)
        return FittedOver(method_by(self.by).restore(joint, delta, facts), facts, joint.backbone)

    def reading(self, backbone: Backbone) -> Backbone:
        """Return a backbone with the same weights that encodes a pair as one sequence."""
        return cast(Backbone, replace(cast(Any, backbone), card=replace(backbone.card, towers=1)))

    def _joint(self, setting: Setting) -> Setting:
        assert setting.backbone is not None
        return replace(setting, backbone=self.reading(setting.backbone))
