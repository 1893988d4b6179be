"""Deferral of SIGINT and SIGTERM to the end of a step, so that completed work can be saved."""

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
    """SIGTERM was received."""


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Make SIGTERM raise `Terminated` in this block, unless a handler is set, so that cleanup runs as after Ctrl-C."""
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


class _EndSignal(KeyboardInterrupt):
    """A signal without a Python handler was received: it ends the process as soon as it is released."""


class Waiting:
    """Signals that were received and not yet acted on."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self._before: dict[int, Any] = {}
        self._acting = False

    def hold(self) -> None:
        """Defer signals from now on. A second signal of the same number ends the deferral: pending ones act at once."""
        for number in ENDING:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # None: not set from Python
                self._before[number] = before
                signal.signal(number, self._remember)

    def during(self, work: Callable[[], T], ended: Callable[[], None]) -> T:
        """Return the result of `work`. During it signals act at once; if one ends `work`, `ended` is called.

        A pending signal acts before `work`, after a call of `ended`. During `ended` signals are deferred, except a
        second one of the same number.
        """
        if self.came:
            ended()
            self.let_go()
        try:
            self._acting = bool(self._before)
            found = work()
            self._acting = False
        except _EndSignal:
            ended()
            raise
        except BaseException:
            self._acting = False
            if self.came:
                ended()
                self.came.clear()  # the signal has acted
            raise
        return found

    def let_go(self) -> None:
        """Restore the previous handlers and raise every pending signal, also when the handler of one raises."""
        while self._before:
            signal.signal(*self._before.popitem())
        try:
            if self.came:
                signal.raise_signal(signal.Signals(self.came.pop(0)))
        finally:
            if self.came:
                self.let_go()

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if number in self.came:
            self.let_go()
            return
        self.came.append(number)
        if self._acting:
            self._acting = False  # others are deferred while this one acts
            self._act(number, frame)
            self.came.remove(number)  # the handler returned: nothing ends
            self._acting = True

    def _act(self, number: int, frame: FrameType | None) -> None:
        """Call the signal's previous handler. Raises `_EndSignal` for the default one, which would end the process."""
        before = self._before[number]
        if not callable(before):
            raise _EndSignal(number)
        before(number, frame)


@contextmanager
def waiting() -> Iterator[Waiting]:
    """Defer signals in this block; they act at its end. Has no effect in other threads, which get no signals."""
    signals = Waiting()
    if threading.current_thread() is threading.main_thread():
        signals.hold()
    try:
        yield signals
    finally:
        signals.let_go()
