"""SIGINT and SIGTERM that wait for the end of a step, so that what was done can be kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

ENDING = (signal.SIGINT, signal.SIGTERM)
T = TypeVar("T")


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Within it SIGTERM raises `Terminated`, unless something else was set: all is cleaned up, as after Ctrl-C."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


class _Ended(KeyboardInterrupt):
    """A signal came for which nothing was set: it ends the process as soon as it is let go."""


class Waiting:
    """The signals that came and have done nothing yet."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self._before: dict[int, Any] = {}
        self._acting = False

    def hold(self) -> None:
        """From now on they wait. A second one of the same sort does at once what it did before."""
        for number in ENDING:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # None: not set from Python
                self._before[number] = before
                signal.signal(number, self._remember)

    def during(self, work: Callable[[], T], ended: Callable[[], None]) -> T:
        """What `work` gives. A signal does there at once what it did before; where that ends `work`, comes `ended`.

        For that they wait again, but for a second one of the same sort. One that waits already acts first.
        """
        if self.came:
            ended()
            self.let_go()
        try:
            self._acting = bool(self._before)
            found = work()
            self._acting = False
        except _Ended:
            ended()
            raise
        except BaseException:
            self._acting = False
            if self.came:
                ended()
                self.came.clear()  # it has acted
            raise
        return found

    def let_go(self) -> None:
        """Those that came do what they did before; from now on they all do."""
        while self._before:
            signal.signal(*self._before.popitem())
        if self.came:
            signal.raise_signal(signal.Signals(self.came.pop(0)))

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if number in self.came:
            self.let_go()
            return
        self.came.append(number)
        if self._acting:
            self._acting = False  # the others wait while this one acts
            self._act(number, frame)
            self.came.remove(number)  # it came back from it: nothing ends
            self._acting = True

    def _act(self, number: int, frame: FrameType | None) -> None:
        """What it did before. Raises `_Ended` for one that would end the process here and now."""
        before = self._before[number]
        if not callable(before):
            raise _Ended(number)
        before(number, frame)


@contextmanager
def waiting() -> Iterator[Waiting]:
    """Within it signals wait; leaving it lets them act. Outside of the main thread none arrive: nothing changes."""
    signals = Waiting()
    if threading.current_thread() is threading.main_thread():
        signals.hold()
    try:
        yield signals
    finally:
        signals.let_go()
