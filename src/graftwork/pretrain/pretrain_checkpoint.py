"""The progress of a pre-training, and its checkpoint."""

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
    """The progress of a pre-training, without its tensors."""

    step: int = 0  # steps done
    steps: int = 0  # steps in total
    owes_validation: bool = False  # True if the validation due after `step` is not done yet
    log_bytes: int = 0  # size of log.jsonl at the checkpoint
    fit: Phase = field(default_factory=Phase)  # time and resources used so far, over all attempts
    attempts: int = 1
    facts: dict[str, Any] = field(default_factory=dict)  # JSON used later in the receipt

    @property
    def planned(self) -> int:
        """The number of steps without a stop by the budget; the schedule and the short rows depend on it."""
        return int(self.facts.get("planned", self.steps))

    def checkpoint(self, tensors: Mapping[str, Tensor]) -> Checkpoint:
        """Return a checkpoint with the tensors of this step."""
        return Checkpoint(asdict(self), tensors)

    @classmethod
    def of(cls, found: Checkpoint) -> Reached:
        """Restore the progress from a checkpoint."""
        return cls(**{**found.numbers, "fit": Phase(**found.numbers["fit"])})
