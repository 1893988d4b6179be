"""A checkpoint: all that the next step of a training depends on, and the protocol of whoever keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Checkpoint:
    """What a training goes on from, bit for bit."""

    numbers: Mapping[str, Any]  # JSON without infinite or undefined numbers: those are tensors too
    tensors: Mapping[str, Tensor]


Made = Callable[[], Checkpoint]
T = TypeVar("T")


class Keep(Protocol):
    """What a training calls while signals wait."""

    def __call__(self, made: Made) -> None:
        """Between two steps: keeps what is made, if one is due. A signal that waits acts now."""

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """What `work` gives, which takes no step and may take minutes, such as a look at validation.

        A signal ends it at once: what was made before it is kept, and the next attempt does it anew.
        """


class Keeper(Protocol):
    """Keeps the checkpoints of one fit."""

    def found(self) -> Checkpoint | None:
        """What an earlier attempt left; None where the fit begins. Who asks goes on from there: it counts as paid."""

    def steps(self) -> AbstractContextManager[Keep]:
        """Within it steps are taken; what it gives is called between any two of them.

        SIGINT and SIGTERM wait for that call, or for what goes `through` it: what was done is kept before they end the
        process.
        """


class NothingKept:
    """For a fit that is watched, or over before it matters. Implements `Keeper`."""

    def found(self) -> None:
        """It always begins."""

    def steps(self) -> AbstractContextManager[Keep]:
        """Signals do what they did."""
        return nullcontext(_KeepsNothing())


class _KeepsNothing:
    def __call__(self, made: Made) -> None:
        """Nothing."""

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """`work` and nothing else."""
        return work()
