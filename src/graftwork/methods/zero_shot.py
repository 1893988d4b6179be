"""Zero-shot: a network that writes answers as it was pretrained, with nothing trained (Radford et al. 2022,
arXiv:2212.04356)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import Entries, Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.text_loop import FittedWriter


@methods.register("zero_shot")
@dataclass(frozen=True)
class ZeroShot:
    """The pretrained network as it is: what training must be better than."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    BOARD: ClassVar[Entries] = ()  # on a board only if requested

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task is generation and the backbone can generate text."""
        if task.kind not in self.KINDS:
            return f"it answers with texts, and this task is of kind {task.kind}"
        return f"{card.id} writes no texts, as Whisper and T5 do" if card is not None and not card.writes else ""

    def fit(self, bench: Workbench) -> FittedWriter:
        """Return the pretrained network; nothing is learned."""
        return _as_it_is(bench.setting, {})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> FittedWriter:
        """Return the pretrained network again."""
        return _as_it_is(setting, facts)


def _as_it_is(setting: Setting, facts: Mapping[str, Any]) -> FittedWriter:
    assert setting.backbone is not None
    return FittedWriter(Model(setting.backbone, setting.kind, setting.task, towers=1).eval(), facts)
