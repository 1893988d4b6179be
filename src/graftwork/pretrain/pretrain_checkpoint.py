"""How far a pre-training has come, and the checkpoint of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from graftwork.core.checkpoint import Checkpoint
from graftwork.core.meter import Phase

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Reached:
    """How far a pre-training has come, beside its tensors."""

    step: int = 0  # steps done
    steps: int = 0  # of how many
    owes_validation: bool = False  # the one that is due after them is still to come
    log_bytes: int = 0  # of log.jsonl, written by then
    fit: Phase = field(default_factory=Phase)  # what it took so far, all attempts together
    attempts: int = 1
    facts: dict[str, Any] = field(default_factory=dict)  # JSON that later parts of the receipt need

    @property
    def planned(self) -> int:
        """How many steps it would have had, had no budget stopped it: schedules and short rows go by that."""
        return int(self.facts.get("planned", self.steps))

    def checkpoint(self, tensors: Mapping[str, Tensor]) -> Checkpoint:
        """With the tensors of this step."""
        return Checkpoint(asdict(self), tensors)

    @classmethod
    def of(cls, found: Checkpoint) -> Reached:
        """As it was then."""
        return cls(**{**found.numbers, "fit": Phase(**found.numbers["fit"])})
