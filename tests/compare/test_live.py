"""How a comparison is shown on its way: a line now and then where it is piped, a table on a terminal."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console
from rich.live import Live

from graftwork.compare import live as watching
from graftwork.compare.search import Outlook
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.standing import Standing
from graftwork.decision.traits import FLOOR, FROZEN, TUNED, Arm, Traits
from graftwork.run.score_interval import Evidence

FLOOR_ARM, PROBE, FULL = (
    Arm("majority", "majority", FLOOR), Arm("linear_probe", "linear_probe", FROZEN), Arm("full", "full", TUNED),
)  # fmt: skip
TRAITS = Traits(rows=500, outputs=4, two_texts=False, words=12.0, kind="classification", backbone="minilm")
OUTLOOK = Outlook(first_seconds=8.4, likely_seconds=179.0, most_seconds=3000.0, runs=60)
PLAN = (
    "Baselines in about 8 s; then runs for as long as one can change the choice: about 3 min, "
    "at most 60 runs in 50 min."
)


class Terminal(io.StringIO):
    """An error stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`clock(seconds)`: what the clock of the lines shows from now on."""
    shown = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: shown.seconds))

    def show(seconds: float) -> None:
        shown.seconds = seconds

    return show


def standing(runs: dict[Arm, list[float]]) -> Standing:
    """With runs of these scores, each of a second and a half of training."""
    made = Standing((FLOOR_ARM, PROBE, FULL), TRAITS, 100, Prior(Sizes(), Experience()))
    for arm, scores in runs.items():
        for score in scores:
            made.begin(arm)
            made.add(arm, Evidence(score, np.full(10, score)), 1.5, False)
    return made


def test_piped_the_plan_is_one_line(clock: Callable[[float], None]) -> None:
    err, out = io.StringIO(), io.StringIO()
    with redirect_stderr(err), redirect_stdout(out), watching.watching() as watch:
        assert err.getvalue() == "reading the data\n"
        watch.planned(OUTLOOK, False)
    assert err.getvalue() == f"reading the data\n{PLAN}\n" and out.getvalue() == ""
    assert watching.plan_line(OUTLOOK, True) == "60 runs, about 50 min."
    long = replace(OUTLOOK, advice="half of the texts are long")
    assert watching.plan_line(long, False) == f"{PLAN} Half of the texts are long."


def test_piped_there_is_a_line_every_half_a_minute(clock: Callable[[float], None]) -> None:
    err = io.StringIO()
    half_way = standing({FLOOR_ARM: [0.3], PROBE: [0.71], FULL: [0.66, 0.68]})

    def told(seconds: float, of: Standing = half_way, left: float = 200.0) -> str:
        """What is said when a run ends at this second."""
        err.seek(0)
        err.truncate()
        clock(seconds)
        watch.stands(of, seconds, left)
        return err.getvalue()

    with redirect_stderr(err), watching.watching() as watch:
        assert told(29.9) == ""
        assert told(30) == "30 s: 4 runs, highest on validation so far linear_probe, 71.0; about 3 min left\n"
        assert told(59) == told(59.9) == ""
        better = standing({FLOOR_ARM: [0.3], FULL: [0.7, 0.9]})
        assert told(150, better, 0.4) == "2 min 30 s: 3 runs, highest on validation so far full, 80.0; nearly done\n"
        assert told(151) == ""
        assert told(200, standing({}), 60.0).startswith(
            "3 min 20 s: 4 runs, highest"
        )  # as it stood: nothing went through


def test_piped_a_long_run_is_no_silence(clock: Callable[[float], None]) -> None:
    err = io.StringIO()
    with redirect_stderr(err), watching.watching() as watch:
        clock(31)
        watch.goes_on("full seed 0", 31.0, 300.0)
        watch.goes_on("full seed 0", 32.0, 299.0)
    assert err.getvalue() == "reading the data\n31 s: no run has ended; about 5 min left\n"


@pytest.mark.parametrize(
    ("seconds", "line"), [(0.9, "nearly done"), (1.4, "about 1 s left"), (119, "about 1 min 59 s left"),
                          (121, "about 2 min left"), (3600, "about 60 min left")],
)  # fmt: skip
def test_time_that_is_left_is_told_roughly(seconds: float, line: str) -> None:
    assert watching.left_line(seconds) == line


def test_a_terminal_has_the_table_as_it_fills_best_first() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=130)
    live = Live(console=console, auto_refresh=False)
    filling = watching._Filling(live.update)

    def shown() -> list[str]:
        stream.seek(0)
        stream.truncate()
        console.print(live.get_renderable())
        return stream.getvalue().splitlines()

    assert shown() == ["reading the data"]
    filling.planned(OUTLOOK, False)
    assert shown() == [PLAN, "starting"]
    filling.stands(standing({FLOOR_ARM: [0.3], FULL: [0.7, 0.9], PROBE: [0.71]}), 65.0, 42.0)
    plan, titles, *rows, clock = (line.split() for line in shown())
    assert " ".join(plan) == PLAN and titles == ["method", "validation", "runs", "train"]
    assert rows == [
        ["full", "80.0", "2", "1.5", "s"],
        ["linear_probe", "71.0", "1", "1.5", "s"],
        ["majority", "30.0", "1", "1.5", "s"],
    ]
    assert " ".join(clock) == "1 min 5 s, about 42 s left"
    filling.goes_on("full seed 2", 66.0, 41.0)
    assert shown()[-1] == "1 min 6 s, about 41 s left: full seed 2" and len(shown()) == 6


def test_on_a_terminal_it_is_drawn_on_the_error_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    err, out = Terminal(), io.StringIO()
    with redirect_stderr(err), redirect_stdout(out), watching.watching() as watch:
        assert isinstance(watch, watching._Filling)
        watch.planned(OUTLOOK, False)
        cast(Live, cast(Any, watch.show).__self__).refresh()
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err.getvalue())
    assert "Baselines in about 8 s; then runs" in drawn and out.getvalue() == ""


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_nobody_is_told_where_json_is_wanted(stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    err: Any = stream()
    monkeypatch.setattr(sys, "stderr", err)
    with watching.watching(shown=False) as watch:
        watch.planned(OUTLOOK, False)
        watch.stands(standing({FULL: [0.9]}), 100.0, 1.0)
        watch.goes_on("full seed 1", 100.0, 1.0)
    assert err.getvalue() == ""
