"""Copy: writes the text that it reads; what a translation or a summary must be better than."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import Baseline, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.written_texts import TextByRule, without_one_text

if TYPE_CHECKING:
    from torch import Tensor


@methods.register("copy_source")
@dataclass(frozen=True)
class CopySource(Baseline):
    """The source as it stands."""

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task is to generate a text from a single text."""
        return without_one_text(task)

    def fit(self, bench: Workbench) -> TextByRule:
        """Return the rule; nothing is learned."""
        return TextByRule(str)

    def restore(self, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> TextByRule:
        """Rebuild the rule, which stores no weights."""
        return TextByRule(str, facts)
