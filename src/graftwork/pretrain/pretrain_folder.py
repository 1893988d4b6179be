"""The progress of a pre-training, and its folder: its log, its checkpoint and its costs so far."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from graftwork.budget.budget_account import Clock
from graftwork.config import Prices
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.meter import Phase, Readings
from graftwork.io.files import finite, storage_errors
from graftwork.pretrain.objective import PretrainingRecipe
from graftwork.pretrain.schedule import positions
from graftwork.run.price_tag import read_costs
from graftwork.train.checkpoint_files import Checkpoints, Interval
from graftwork.units import show, with_prefix

if TYPE_CHECKING:
    from torch import Tensor

LOG, CHECKPOINT = "log.jsonl", "checkpoint"
Tensors = Mapping[str, "Tensor"]
TOLD_SECONDS = 1.0  # between two updates of the price on the live line


@dataclass
class PretrainProgress:
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
    def of(cls, found: Checkpoint) -> PretrainProgress:
        """Restore the progress from a checkpoint."""
        return cls(**{**found.numbers, "fit": Phase(**found.numbers["fit"])})


class RunWriter:
    """The folder `runs/<id>/` of a pre-training in progress, written by the leading process."""

    def __init__(
        self, checkpoints: Checkpoints, every_seconds: float, progress: Callable[[float, str], None], watch: Clock
    ):
        self.checkpoints, self.folder = checkpoints, checkpoints.folder.parent
        self._every_seconds, self._progress = every_seconds, progress
        self._watch, self._began = watch, watch.read()
        self.earlier = Phase()  # used by earlier attempts
        self._interval = Interval(every_seconds)
        self._told, self._price = 0.0, ""
        self._from = 0  # tokens seen when this attempt began

    def resume(self) -> tuple[PretrainProgress, Tensors] | None:
        """Read the checkpoint and truncate the log to its state then; without a checkpoint the log starts empty."""
        checkpoint = self.checkpoints.read()
        found = (PretrainProgress.of(checkpoint), checkpoint.tensors) if checkpoint else None
        with storage_errors(self.folder / LOG):
            self._log = (self.folder / LOG).open("ab")
            self._log.truncate(found[0].log_bytes if found else 0)
            self._log.seek(0, os.SEEK_END)
        if found:
            found[0].attempts += 1
            self.earlier = found[0].fit
        return found

    def begin(self, recipe: PretrainingRecipe, progress: PretrainProgress) -> None:
        """Start timing the steps."""
        self._began, self._interval = self._watch.read(), Interval(self._every_seconds)
        self._recipe, self._from = recipe, positions(recipe, progress.step, progress.planned)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to log.jsonl and flush it."""
        with storage_errors(self.folder / LOG):
            self._log.write(json.dumps(finite(dict(line)), ensure_ascii=False).encode() + b"\n")
            self._log.flush()

    def checkpoint(self, progress: PretrainProgress, tensors: Callable[[], Tensors], now: bool) -> None:
        """Write a checkpoint if one is due, or if `now`."""
        if not now and (progress.step == progress.steps or not self._interval.is_due()):
            return
        began = time.monotonic()
        with storage_errors(self.folder / LOG):
            os.fsync(self._log.fileno())
            progress.log_bytes = self._log.tell()
        progress.fit = self.spent()
        self.checkpoints.try_write(progress.checkpoint(tensors()))
        self._interval.wrote(time.monotonic() - began)

    def took(self) -> Phase:
        """Return the phase of this attempt's steps."""
        return self._watch.read() - self._began

    def spent(self) -> Phase:
        """Return the phase of the steps of all attempts."""
        return self.took() + self.earlier

    def tell(self, progress: PretrainProgress, loss: float, price: Callable[[], str]) -> None:
        """Update the live line: step, loss, tokens per second, and the price so far."""
        if time.monotonic() - self._told > TOLD_SECONDS:
            self._price, self._told = price(), time.monotonic()
        seen = positions(self._recipe, progress.step, progress.planned) - self._from
        speed = with_prefix(seen / max(1e-9, self.took().wall_seconds), "tokens/s")
        words = f"step {progress.step:,} of {progress.steps:,} · loss {loss:.3f} · {speed} · {self._price}"
        self._progress(progress.step / progress.steps, words)

    def close(self) -> None:
        """Sync and close the log."""
        with storage_errors(self.folder / LOG):
            os.fsync(self._log.fileno())
            self._log.close()


def price_so_far(marks: Mapping[str, Any], phase: Phase, prices: Prices) -> str:
    """Format the energy and, with a price list, the money that the whole run has used."""
    costs = read_costs(
        {name: marks[name] for name in ("total_seconds", "energy_joules", "money")}, _only(phase), prices
    )
    energy, money = costs["energy_joules"], costs["money"]
    paid = [show(money.value, money.unit)] if money.value is not None else []
    return ", ".join([*paid, f"{show(energy.value, 'J')} ({energy.grade})"])


def _only(phase: Phase) -> Readings:
    return Readings(phases={"fit": phase})
