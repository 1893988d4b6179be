"""Copy: writes the text that it reads; what a translation or a summary must be better than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.written_texts import certainly, without_one_text

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Copied(LooksUp):
    """A fitted method that writes its source."""

    facts: Mapping[str, Any] = field(default_factory=dict)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the sources (N,) as they stand, with certainty."""
        return certainly([example.inputs["text"] for example in examples])

    def delta(self) -> dict[str, Tensor]:
        """Return nothing: nothing is learned."""
        return {}


@methods.register("copy_source")
@dataclass(frozen=True)
class CopySource(Baseline):
    """The source as it stands."""

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task writes a text of one text."""
        return without_one_text(task)

    def fit(self, bench: Workbench) -> Copied:
        """Learn nothing."""
        return Copied()

    def restore(self, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Copied:
        """Rebuild the method from nothing."""
        return Copied(facts)
