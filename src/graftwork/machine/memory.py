"""Gradient accumulation under a memory limit: a batch that needs too much memory is processed in parts.

The loss of a part is a mean. It is weighted by the number of terms, and the gradients of all parts accumulate before
the update, which is therefore the same as for the whole batch, up to rounding.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from graftwork.errors import GraftworkError

SIGNS = (
    "not enough memory", "can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc",
    "alloc_failed", "allocation_failed",  # of CUDA's libraries: CUBLAS_STATUS_ALLOC_FAILED
)  # fmt: skip
KERNELS = "could not create a primitive"  # oneDNN short of memory; for unsupported operations it names a descriptor
IN_PARTS = ("passes_in_parts", "answers_in_parts")  # facts in a receipt: parts round differently from whole batches
LONGER = 1.25  # an example this many times as long as the last measured one has memory per position measured again
LARGE = 1_500_000_000  # bytes of a process above which `give_back` is worth the tenths of a second that it takes
T = TypeVar("T")
Rows = Sequence[int]
Positions = Callable[[Rows], int]  # rows of a batch -> sequences x longest length, padding included
_COUNTED: ContextVar[tuple[dict[str, int], str] | None] = ContextVar("counted", default=None)  # counts, and their key


class OutOfMemory(GraftworkError):
    """Work that can't be divided needs more memory than is available or allowed."""


def ran_out(error: BaseException) -> bool:
    """Return whether an error of Python, torch, CUDA or the system means that memory ran out."""
    if isinstance(error, OutOfMemory | MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    told = str(error).lower()
    return any(sign in told for sign in SIGNS) or told.strip() == KERNELS


@dataclass(frozen=True)
class Cut:
    """A limit on the number of positions in a part of a batch; a single example may exceed it."""

    step: int  # first step to which the limit applies, from 0
    positions: int
    why: str  # message of the memory error, or the bound


class Memory:
    """The division of one training's batches into parts. Training again with the same `cuts` gives the same bits.

    `bound` is in bytes, of the process or of the accelerator that it computes on; None for all available memory.
    """

    def __init__(self, bound: int | None = None, cuts: Iterable[Cut] = ()):
        self.bound = bound
        self.cuts: list[Cut] = []
        self.steps, self.steps_in_parts, self.most = 0, 0, 1  # steps so far, steps in parts, most parts in a step
        self.passes: dict[str, int] = {}  # split -> number of batches of its frozen pass processed in parts
        self.answers: dict[str, int] = {}  # phase of the run -> number of batches predicted in parts
        self._told = list(cuts)  # cuts of the run being repeated
        self._replays = bool(self._told)
        self._measured: tuple[int, int] | None = None  # lowest trained block, and tokens of the measured example

    def begin(self) -> None:
        """Begin a step: apply the repeated run's cuts that are due."""
        while self._told and self._told[0].step <= self.steps:
            self.cuts.append(self._told.pop(0))

    def stale(self, start: int, length: int) -> bool:
        """Return whether memory per position must be measured, with blocks from `start` on and `length` tokens."""
        if self.bound is None or self._replays:
            return False
        return self._measured is None or start != self._measured[0] or length > LONGER * self._measured[1]

    def allow(self, start: int, length: int, positions: int) -> None:
        """Record a measurement and limit parts to the number of positions it allows."""
        self._measured = (start, length)
        if not self.cuts or positions < self.cuts[-1].positions:
            self.cuts.append(Cut(self.steps, positions, f"--max-memory {self.bound}"))

    def parts(self, rows: Rows, positions: Positions) -> list[Rows]:
        """Halve a batch until each part is within the last cut or a single example."""
        if len(rows) == 1 or not self.cuts or positions(rows) <= self.cuts[-1].positions:
            return [rows]
        return [part for half in halves(rows) for part in self.parts(half, positions)]

    def done(self, parts: int) -> None:
        """Record that a step was completed in this number of parts."""
        self.steps += 1
        self.steps_in_parts += parts > 1
        self.most = max(self.most, parts)

    def halve(self, parts: Sequence[Rows], positions: Positions, why: str) -> None:
        """Lower the limit to half of the largest part, after memory ran out; `OutOfMemory` if that is one example."""
        largest = max(parts, key=positions)
        if len(largest) == 1:
            raise too_large_alone(why, positions(largest))
        self.cuts.append(Cut(self.steps, max(map(positions, halves(largest))), why))

    @contextmanager
    def answering(self, phase: str) -> Iterator[None]:
        """Within this block, count batches predicted in parts in `answers[phase]`; `phase` is a phase of the run."""
        token = _COUNTED.set((self.answers, phase))
        try:
            yield
        finally:
            _COUNTED.reset(token)

    def in_parts(self) -> dict[str, Any]:
        """Return the receipt's `IN_PARTS`, empty without parts; unlike `cuts`, a repetition does not reproduce them."""
        told = zip(IN_PARTS, (self.passes, self.answers), strict=True)
        return {name: dict(counts) for name, counts in told if counts}

    def facts(self) -> dict[str, Any]:
        """Return the receipt's facts about training in parts; empty where every batch was processed whole."""
        if not self.steps_in_parts:
            return {}
        return {
            "accumulation": {
                "parts": self.most,
                "steps": self.steps_in_parts,
                "cuts": [asdict(cut) for cut in self.cuts],
            }
        }

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as JSON."""
        told: dict[str, Any] = {
            "steps": self.steps,
            "parted": self.steps_in_parts,
            "most": self.most,
            "measured": self._measured,
        }
        told |= {"passes": self.passes, "answers": self.answers}
        return told | {"cuts": [asdict(cut) for cut in self.cuts]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from the result of `state`."""
        self.steps, self.steps_in_parts, self.most = state["steps"], state["parted"], state["most"]
        self.cuts = [Cut(**cut) for cut in state["cuts"]]
        self._measured = tuple(state["measured"]) if state["measured"] else None
        self.passes = {**state["passes"], **self.passes}
        for phase, count in state["answers"].items():
            self.answers[phase] = self.answers.get(phase, 0) + count
        self._told = [cut for cut in self._told if cut.step >= self.steps and cut not in self.cuts]


def halves(rows: Rows) -> tuple[Rows, Rows]:
    """Split rows in two; the first half is the larger one."""
    middle = (len(rows) + 1) // 2
    return rows[:middle], rows[middle:]


def in_halves(rows: Rows, work: Callable[[Rows], T]) -> list[T]:
    """Return the results of `work` on `rows`: on all, or, if memory runs out, on halves, quarters, … in order.

    Raises `OutOfMemory` if memory runs out for a single row.
    """
    found, why = attempt(lambda: work(rows))
    if found is not None:
        return [found]
    if len(rows) == 1:
        raise too_large_alone(why)
    return [one for half in halves(rows) for one in in_halves(half, work)]


def answers_in_halves(rows: Rows, work: Callable[[Rows], T]) -> list[T]:
    """Call `in_halves` to predict a batch; if it was divided, count it as in `count_answers`."""
    found = in_halves(rows, work)
    count_answers(len(found) > 1)
    return found


def count_answers(batches: int) -> None:
    """Add `batches` to the count of batches predicted in parts; without effect outside of `Memory.answering`."""
    counted = _COUNTED.get()
    if counted is not None and batches:
        counts, phase = counted
        counts[phase] = counts.get(phase, 0) + batches


def attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """Return the result of `work` and ""; if memory ran out, None and the message, after memory was freed.

    Once a oneDNN kernel could not be created, no other can be in that thread, however much memory is free later. The
    process therefore continues without oneDNN, which changes rounding and makes bf16 slower.
    """
    try:
        return work(), ""
    except Exception as error:
        if not ran_out(error) or isinstance(error, OutOfMemory):
            raise
        why = first_line(error)
    if why.lower() == KERNELS:
        import torch

        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    give_back()
    return None, why


@contextmanager
def fits_in_memory(what: str, do: str, where: str = "") -> Iterator[None]:
    """Raise `OutOfMemory`, naming `what`, if memory of the machine or an accelerator runs out in this block."""
    try:
        yield
    except Exception as error:
        if not ran_out(error) or isinstance(error, OutOfMemory):
            raise
        raise OutOfMemory(
            f"{what} needs more memory than is available", where=where, got=first_line(error), do=do
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 200 characters; torch's messages have many lines."""
    return (str(error).strip() or "no memory left").splitlines()[0][:200]


def is_large() -> bool:
    """Return whether this process has more than `LARGE` bytes of resident memory; False on systems without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return False
    return pages * mmap.PAGESIZE > LARGE


def give_back() -> None:
    """Collect garbage, and return the free memory of the allocators to the system."""
    gc.collect()
    if "torch" in sys.modules:  # not imported only for this
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)


def too_large_alone(why: str, tokens: int | None = None) -> OutOfMemory:
    """Return the error for a single example that takes too much memory."""
    size = f" of {tokens:,} tokens" if tokens else ""
    return OutOfMemory(
        f"one example{size} needs more memory than is available",
        got=why,
        do="cut long texts; use a smaller backbone or a method that trains fewer blocks; or run one by one: --jobs 1",
    )
