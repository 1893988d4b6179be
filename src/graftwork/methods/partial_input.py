"""Partial input: a method that sees one text of every pair. A score above the majority shows a shortcut in the data
(Gururangan et al. 2018, arXiv:1803.02324; Poliak et al. 2018, arXiv:1805.01042)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Entries, Setting, Workbench
from graftwork.core.part_settings import TOLD
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.wrapper_method import FittedOver, WrapperMethod, method_by, sharing_under, unfit_over

ROLES: Mapping[str, str] = {"first": "text_a", "second": "text_b"}  # side -> role of the visible text


@methods.register("partial_input")
@dataclass(frozen=True)
class PartialInput(WrapperMethod):
    """The method `by`, applied to one side of the pairs as to a task of single texts."""

    side: str = field(default="first", metadata={TOLD: True})  # the visible text: "first" or "second"
    by: str = field(default="tfidf_svm", metadata={TOLD: True})  # the method applied to it

    BOARD: ClassVar[Entries] = ({"side": "first"}, {"side": "second"})
    CONTROL: ClassVar[bool] = True

    @property
    def uses_backbone(self) -> bool:
        """True if `by` uses a backbone."""
        return method_by(self.by).uses_backbone

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task has pairs of texts and `by` fits."""
        if self.side not in ROLES:
            return f"side is {' or '.join(ROLES)}, not {self.side!r}"
        if task.text_a is None:
            return "it hides one text of two, and this task has no pairs of texts"
        return unfit_over(self.by) or method_by(self.by).unfit(replace(task, text_a=None, text_b=None), card)

    def fit(self, bench: Workbench) -> FittedOver:
        """Fit `by` to one side; frozen passes over it are kept for the other seeds."""
        backbone, name = bench.setting.backbone, f"{self.side} text alone"
        store = bench.once(name, lambda tally: FrozenStore())
        train, validation = (
            replace(split, examples=tuple(map(self._shown, split.examples)))
            for split in (bench.train, bench.validation)
        )
        passes = store.of(backbone, name) if backbone else None
        inner = replace(sharing_under(bench, name), train=train, validation=validation, passes=passes)
        fitted = method_by(self.by).fit(inner)
        return FittedOver(fitted, {**fitted.facts, "sees": ROLES[self.side]}, shown=self._shown)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedOver:
        """Restore the method `by` over one side."""
        return FittedOver(method_by(self.by).restore(setting, delta, facts), facts, shown=self._shown)

    def _shown(self, example: Example) -> Example:
        return Example(example.id, {"text": example.inputs[ROLES[self.side]]}, example.target)
