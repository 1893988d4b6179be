"""The time that is left of a comparison."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graftwork.budget.forecaster import Forecaster
from graftwork.compare.grid import Runner
from graftwork.compare.run_times import BEFORE_THE_BACKBONE, FIT_SHARE, OVERDUE, RUN_TO_PASS, Countdown, Pace
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.run.session import Session

OpenSession = Callable[..., Session]

A, B = ("a", 0), ("b", 0)


class _Time:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> _Time:
    return _Time()


def left(countdown: Countdown) -> float:
    return countdown.read()[1]


def test_before_the_first_run_the_backbone_is_timed(open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, in this precision; answering validation and test is part of a run."""
    monkeypatch.setattr(Forecaster, "seconds_per_flop", 1e-6)
    words = ("majority", "linear_probe", "full")
    runner = Runner(open_tiny(), [parse_method(each) for each in words], Recipe(epochs=2))
    pace, forecaster = Pace(runner), Forecaster(runner.session, runner.recipe, 0)
    for entry in runner.entries:
        fit = forecaster.operations(entry.item)
        flops = fit + forecaster.answering_flops if fit else 0.0
        assert pace.seconds(entry) == pytest.approx(BEFORE_THE_BACKBONE + RUN_TO_PASS * 1e-6 * flops)
    assert 0 < forecaster.answering_flops < forecaster.operations(runner.entries[-1].item)


def test_the_backbone_is_timed_as_it_is(open_tiny: OpenSession) -> None:
    ticks = iter(range(1000))
    forecaster = Forecaster(open_tiny(), Recipe(), 0, clock=lambda: float(next(ticks)))
    _, inputs, _, flops = forecaster._shortest
    assert forecaster.seconds_per_flop == forecaster.pass_rate * inputs["attention_mask"].numel() / flops > 0


def test_runs_under_way_are_told_by_their_progress_and_those_to_come_by_their_forecast(time: _Time) -> None:
    countdown = Countdown(2, time)
    countdown.plan(200.0)
    assert countdown.read() == (0.0, 100.0)
    for run in (A, B):
        countdown.hear(run, 0.0, lambda: 60.0)
    assert left(countdown) == 100.0, "a run that begins was expected to"
    time.now = 30.0
    assert countdown.read() == (30.0, 70.0)
    countdown.hear(A, 0.5 / FIT_SHARE, lambda: 0.0)
    countdown.hear(B, 0.25 / FIT_SHARE, lambda: 0.0)
    assert left(countdown) == pytest.approx((30 + 90 + 80) / 2)


def test_it_is_not_nearly_done_while_a_long_run_is_under_way(time: _Time) -> None:
    """A run that was thought to take a minute and is half done after five takes five more, and so does the whole."""
    countdown = Countdown(2, time)
    countdown.plan(60.0)
    countdown.hear(A, 0.0, lambda: 60.0)
    time.now = 300.0
    assert left(countdown) == OVERDUE * 300, "nothing is known but that it has not ended"
    countdown.hear(A, 0.5 / FIT_SHARE, lambda: 60.0)
    assert left(countdown) == pytest.approx(300.0), "another core can't take it over"
    countdown.hear(A, 1.0, lambda: 60.0)
    assert left(countdown) == pytest.approx(300 / FIT_SHARE - 300), "test is still to be answered"
    countdown.end(A)
    countdown.plan(0.0)
    assert countdown.read() == (300.0, 0.0)


def test_a_new_plan_counts_what_is_under_way_once(time: _Time) -> None:
    countdown = Countdown(1, time)
    countdown.plan(10.0)
    countdown.hear(A, 0.0, lambda: 8.0)
    time.now = 4.0
    countdown.plan(28.0)
    assert left(countdown) == 24.0
    countdown.plan(3.0)
    assert left(countdown) == 4.0, "less than the forecast of what is under way"
