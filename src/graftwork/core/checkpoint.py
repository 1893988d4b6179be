"""A checkpoint: all that the next step of a training depends on, and the protocol of whoever keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Checkpoint:
    """What a training goes on from, bit for bit."""

    numbers: Mapping[str, Any]  # JSON without infinite or undefined numbers: those are tensors too
    tensors: Mapping[str, Tensor]


Keep = Callable[[Callable[[], Checkpoint]], None]  # keeps what it is given, if one is due


class Keeper(Protocol):
    """Keeps the checkpoints of one fit."""

    def found(self) -> Checkpoint | None:
        """What an earlier attempt left; None where the fit begins. Who asks goes on from there: it counts as paid."""

    def steps(self) -> AbstractContextManager[Keep]:
        """Within it steps are taken; what it gives is called between any two of them.

        SIGINT and SIGTERM wait for that call: what was done is kept before they end the process.
        """


class NothingKept:
    """For a fit that is watched, or over before it matters. Implements `Keeper`."""

    def found(self) -> None:
        """It always begins."""

    def steps(self) -> AbstractContextManager[Keep]:
        """Signals do what they did."""
        return nullcontext(lambda made: None)
