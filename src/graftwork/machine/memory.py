"""Memory: a batch that takes more than there is goes through in parts, and the step is the same but for rounding.

The losses of the parts are weighted by what each is the mean over, and their gradients add up before the one update.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from graftwork.errors import GraftworkError

SIGNS = ("not enough memory", "can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc")
KERNELS = "could not create a primitive"  # oneDNN, short of memory; what it can't do at all it calls a descriptor
IN_PARTS = ("passes_in_parts", "answers_in_parts")  # facts of a run, where its whole batches round otherwise
LONGER = 1.25  # what a position takes is measured again where an example is so much longer than the last measured
T = TypeVar("T")
Rows = Sequence[int]
Positions = Callable[[Rows], int]  # of some rows of a batch: sequences x the longest of them, padding counted
_COUNTED: ContextVar[tuple[dict[str, int], str] | None] = ContextVar("counted", default=None)  # counts, and which one


class OutOfMemory(GraftworkError):
    """What can't be made smaller takes more memory than there is, or than may be used."""


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory could not be had, in the words of Python, torch, CUDA or the system."""
    if isinstance(error, OutOfMemory | MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    told = str(error).lower()
    return any(sign in told for sign in SIGNS) or told.strip() == KERNELS


@dataclass(frozen=True)
class Cut:
    """From this step on a part has at most so many positions, unless it is one example."""

    step: int  # from 0
    positions: int
    why: str  # what was said when memory ran out, or what the bound is


class Memory:
    """How the batches of one training are cut. Whoever trains again with the same `cuts` gets the same bits.

    `bound` is in bytes, of the process or of the accelerator that it computes on; None: whatever there is.
    """

    def __init__(self, bound: int | None = None, cuts: Iterable[Cut] = ()):
        self.bound = bound
        self.cuts: list[Cut] = []
        self.steps, self.parted, self.most = 0, 0, 1  # steps so far, how many of them in parts, in at most how many
        self.passes: dict[str, int] = {}  # split -> batches of its frozen pass that went through in parts
        self.answers: dict[str, int] = {}  # phase of the run -> batches that it answered in parts
        self._told = list(cuts)  # of the run that is done again
        self._replays = bool(self._told)
        self._measured: tuple[int, int] | None = None  # lowest trained block and tokens of the example

    def begin(self) -> None:
        """A step begins."""
        while self._told and self._told[0].step <= self.steps:
            self.cuts.append(self._told.pop(0))

    def stale(self, start: int, length: int) -> bool:
        """Whether it has to be measured what a position takes, with blocks from `start` on, of `length` tokens."""
        if self.bound is None or self._replays:
            return False
        return self._measured is None or start != self._measured[0] or length > LONGER * self._measured[1]

    def allow(self, start: int, length: int, positions: int) -> None:
        """What was measured leaves room for so many."""
        self._measured = (start, length)
        if not self.cuts or positions < self.cuts[-1].positions:
            self.cuts.append(Cut(self.steps, positions, f"--max-memory {self.bound}"))

    def parts(self, rows: Rows, positions: Positions) -> list[Rows]:
        """A batch, halved until each part is within the last cut or one example."""
        if len(rows) == 1 or not self.cuts or positions(rows) <= self.cuts[-1].positions:
            return [rows]
        return [part for half in halves(rows) for part in self.parts(half, positions)]

    def done(self, parts: int) -> None:
        """A step went through, in so many parts."""
        self.steps += 1
        self.parted += parts > 1
        self.most = max(self.most, parts)

    def halve(self, parts: Sequence[Rows], positions: Positions, why: str) -> None:
        """Memory ran out in one of these parts: from now on the largest is cut in two. Raises `OutOfMemory`."""
        largest = max(parts, key=positions)
        if len(largest) == 1:
            raise alone(why, positions(largest))
        self.cuts.append(Cut(self.steps, max(map(positions, halves(largest))), why))

    @contextmanager
    def answering(self, phase: str) -> Iterator[None]:
        """In this block batches that are answered in parts are counted, as of this phase of the run."""
        token = _COUNTED.set((self.answers, phase))
        try:
            yield
        finally:
            _COUNTED.reset(token)

    def in_parts(self) -> dict[str, Any]:
        """For the receipt, of passes and answers, which nobody cuts again as they were; nothing of whole ones."""
        told = zip(IN_PARTS, (self.passes, self.answers), strict=True)
        return {name: dict(counts) for name, counts in told if counts}

    def facts(self) -> dict[str, Any]:
        """For the receipt, of training; nothing where every batch went through whole."""
        if not self.parted:
            return {}
        return {"accumulation": {"parts": self.most, "steps": self.parted, "cuts": [asdict(cut) for cut in self.cuts]}}

    def state(self) -> dict[str, Any]:
        """What `restored` goes on from, as JSON."""
        told: dict[str, Any] = {
            "steps": self.steps,
            "parted": self.parted,
            "most": self.most,
            "measured": self._measured,
        }
        told |= {"passes": self.passes, "answers": self.answers}
        return told | {"cuts": [asdict(cut) for cut in self.cuts]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.steps, self.parted, self.most = state["steps"], state["parted"], state["most"]
        self.cuts = [Cut(**cut) for cut in state["cuts"]]
        self._measured = tuple(state["measured"]) if state["measured"] else None
        self.passes = {**state["passes"], **self.passes}
        for phase, count in state["answers"].items():
            self.answers[phase] = self.answers.get(phase, 0) + count
        self._told = [cut for cut in self._told if cut.step >= self.steps and cut not in self.cuts]


def halves(rows: Rows) -> tuple[Rows, Rows]:
    """The first is the larger one."""
    middle = (len(rows) + 1) // 2
    return rows[:middle], rows[middle:]


def in_halves(rows: Rows, work: Callable[[Rows], T]) -> list[T]:
    """`work` on all of `rows`, or where memory runs out on halves of them, quarters, … Raises `OutOfMemory`."""
    found, why = attempt(lambda: work(rows))
    if found is not None:
        return [found]
    if len(rows) == 1:
        raise alone(why)
    return [one for half in halves(rows) for one in in_halves(half, work)]


def answers_in_halves(rows: Rows, work: Callable[[Rows], T]) -> list[T]:
    """As `in_halves`; the `Memory` that is `answering` counts a batch that did not go through whole."""
    found = in_halves(rows, work)
    count_answers(len(found) > 1)
    return found


def count_answers(batches: int) -> None:
    """So many were answered in parts: for the `Memory` that is `answering`, if one is."""
    counted = _COUNTED.get()
    if counted is not None and batches:
        counts, phase = counted
        counts[phase] = counts.get(phase, 0) + batches


def attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """What `work` gives; or None and what was said when memory ran out, once all that it held is free again.

    Where a kernel of oneDNN could not be built, no other can be in that thread: its error stays, however much memory
    there is by then. The process goes on without oneDNN, which rounds otherwise and, in bf16, takes longer.
    """
    try:
        return work(), ""
    except Exception as error:
        if not ran_out(error) or isinstance(error, OutOfMemory):
            raise
        why = (str(error).strip() or "no memory left").splitlines()[0][:200]
    if why.lower() == KERNELS:
        import torch

        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    _give_back()
    return None, why


def _give_back() -> None:
    """What the error held is free, but for cycles; and allocators keep what is free for themselves."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)


def alone(why: str, tokens: int | None = None) -> OutOfMemory:
    """One example is too much."""
    size = f" of {tokens:,} tokens" if tokens else ""
    return OutOfMemory(
        f"one example{size} takes more memory than there is",
        got=why,
        do="cut long texts; take a smaller backbone or a method that trains fewer blocks; or run one by one: --jobs 1",
    )
