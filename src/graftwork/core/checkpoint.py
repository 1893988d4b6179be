"""A checkpoint: the state that the next training step depends on, and the protocols for storing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Checkpoint:
    """The state from which training resumes bit for bit."""

    numbers: Mapping[str, Any]  # JSON without infinities or NaN, which are stored as tensors
    tensors: Mapping[str, Tensor]


Made = Callable[[], Checkpoint]
T = TypeVar("T")


class Keep(Protocol):
    """Called by a training loop while signals are deferred."""

    def __call__(self, made: Made) -> None:
        """Between two steps: store a checkpoint if one is due; deliver a deferred signal."""

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """Return the result of `work`, which takes no step and may take minutes, such as an evaluation on validation.

        A signal interrupts it at once: the checkpoint from before it is stored, and the next attempt repeats it.
        """


class Keeper(Protocol):
    """Stores the checkpoints of one fit."""

    def found(self) -> Checkpoint | None:
        """Return an earlier attempt's last checkpoint, or None. The caller must resume from it: its costs count."""

    def already_charged(self, split: str, depth: int | None) -> bool:
        """Record that this fit is charged for this frozen pass; return True if an earlier attempt was already."""

    def steps(self) -> AbstractContextManager[Keep]:
        """Return a context in which steps are taken; the `Keep` it yields is called between any two of them.

        SIGINT and SIGTERM are deferred to that call or to `through`: a checkpoint is stored before they end the
        process.
        """


class NothingKept:
    """A `Keeper` that stores nothing, for interactive or short fits."""

    def found(self) -> None:
        """Return None: the fit starts from the beginning."""

    def already_charged(self, split: str, depth: int | None) -> bool:
        """Return False: there was no earlier attempt."""
        return False

    def steps(self) -> AbstractContextManager[Keep]:
        """Leave the signal handlers unchanged."""
        return nullcontext(_KeepsNothing())


class _KeepsNothing:
    def __call__(self, made: Made) -> None:
        """Do nothing."""

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """Return the result of `work`."""
        return work()
