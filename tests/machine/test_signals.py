"""Signals that wait for the end of a step."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from graftwork.machine.signals import ENDING, Terminated, ending_cleanly, waiting


class Heard(Exception):
    """What the handlers of these tests raise."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """SIGINT and SIGTERM raise `Heard`, and are afterwards what they were."""

    def hear(number: int, frame: object) -> None:
        raise Heard(number)

    before = {number: signal.signal(number, hear) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_acts_when_it_is_let_go(number: signal.Signals) -> None:
    done = []
    before = signal.getsignal(number)
    with pytest.raises(Heard), waiting() as signals:
        signal.raise_signal(number)
        done.append(bool(signals.came))
        signals.let_go()
        done.append(False)
    assert done == [True]
    assert signal.getsignal(number) is before


def test_one_that_nobody_looks_for_acts_at_the_end() -> None:
    done = []
    with pytest.raises(Heard):
        with waiting():
            signal.raise_signal(signal.SIGTERM)
            done.append(1)
        done.append(2)
    assert done == [1]


def test_two_of_different_sorts_wait_both_and_a_second_of_one_sort_does_not() -> None:
    done = []
    with pytest.raises(Heard), waiting():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        done.append(1)
        signal.raise_signal(signal.SIGINT)
        done.append(2)
    assert done == [1]


def test_during_work_that_may_be_ended_a_signal_acts_at_once() -> None:
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("worked")

    def ended() -> None:
        signal.raise_signal(signal.SIGTERM)
        done.append("kept")

    with pytest.raises(Heard) as heard, waiting() as signals:
        try:
            signals.during(work, ended)
        finally:
            done.append("left")
    assert done == ["kept", "left"] and heard.value.args == (signal.SIGINT,), "once, and no other one after it"


def test_one_that_waits_already_acts_before_such_work() -> None:
    done = []
    with pytest.raises(Heard), waiting() as signals:
        signal.raise_signal(signal.SIGINT)
        signals.during(lambda: done.append("worked"), lambda: done.append("kept"))
    assert done == ["kept"]


def test_a_second_one_ends_what_comes_after_such_work_too() -> None:
    done = []

    def ended() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("kept")

    with pytest.raises(Heard), waiting() as signals:
        signals.during(lambda: signal.raise_signal(signal.SIGINT), ended)
    assert not done


def test_such_work_is_not_ended_by_what_ends_nothing() -> None:
    heard, done = [], []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))

    def work() -> str:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return "found"

    with waiting() as signals:
        assert signals.during(work, lambda: done.append("kept")) == "found"
        assert heard == [signal.SIGINT] * 2 and not done and not signals.came
        with pytest.raises(ZeroDivisionError):
            signals.during(lambda: 1 // 0, lambda: done.append("kept"))
        signal.raise_signal(signal.SIGINT)
        assert signals.came and not done, "afterwards they wait again"


def test_what_nothing_was_set_for_ends_the_process_once_all_is_kept() -> None:
    program = (
        "import signal; from graftwork.machine.signals import waiting\n"
        "with waiting() as signals:\n"
        "    signals.during(lambda: (signal.raise_signal(15), print('worked')), lambda: print('kept', flush=True))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (-signal.SIGTERM, "kept", "")


def test_an_error_is_not_lost_without_a_signal() -> None:
    with pytest.raises(ZeroDivisionError), waiting():
        raise ZeroDivisionError


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with waiting() as signals:
        signal.raise_signal(signal.SIGINT)
        assert not signals.came
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_outside_of_the_main_thread_nothing_changes() -> None:
    found = []

    def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        with waiting() as signals, ending_cleanly():
            found.append(signal.getsignal(signal.SIGINT) is before and not signals.came)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]


def test_sigterm_is_an_interrupt_unless_something_else_was_set() -> None:
    with pytest.raises(Heard), ending_cleanly():
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.raises(Terminated), ending_cleanly():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_of_two_that_wait_both_act() -> None:
    heard: list[int] = []
    for number in ENDING:
        signal.signal(number, lambda number, frame: heard.append(number))
    with waiting():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert heard == []
    assert heard == [signal.SIGINT, signal.SIGTERM]


def test_one_that_waits_acts_although_the_handler_of_another_raises() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    with pytest.raises(Heard), waiting():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]
