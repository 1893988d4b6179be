"""Progress in a notebook: one cell that is rewritten and emptied at the end. Of a command in a pipe: few lines."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from graftwork.compare.listeners import unwatched
from graftwork.compare.live import _Filling, watched
from graftwork.core import progress_bar as bars
from graftwork.core.progress import silent


class Cell:
    """A notebook's output area: all that it has shown."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Cell:
        assert raw and display_id
        self.update(data, raw)
        return self

    def update(self, data: dict[str, str], raw: bool) -> None:
        self.shown.append(data)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    made: Any = Cell()
    shell, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 0.0)
    yield made


def test_where_nobody_looks_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    err = io.StringIO()
    with redirect_stderr(err), bars.progress_or_bar(None) as progress, watched(None, None) as (other, watch):
        progress(0.5, "epoch 1")
        assert progress is silent and other is silent and watch is unwatched
    assert err.getvalue() == ""


def test_a_command_in_a_pipe_says_every_half_minute_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: clock.now))
    err = io.StringIO()
    with redirect_stderr(err), bars.progress_bar() as progress, bars.progress_bar(shown=False) as hidden:
        for clock.now, done in ((129.9, 0.2), (130.0, 0.3), (159.0, 0.4), (190.0, 0.5)):
            progress(done, f"full, epoch {done}")
            hidden(done, "not shown")
    assert err.getvalue() == "30 s, 30 %: full, epoch 0.3\n1 min 30 s, 50 %: full, epoch 0.5\n"


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert not bars.in_notebook()


def test_a_notebook_has_the_bar_in_its_cell(cell: Cell) -> None:
    with bars.progress_or_bar(None) as progress:
        progress(0.5, "<epoch> 1")
    assert "reading the data" in cell.shown[1]["text/plain"]
    assert "50%" in cell.shown[2]["text/plain"] and "<epoch> 1" in cell.shown[2]["text/plain"]
    assert "&lt;epoch&gt; 1" in cell.shown[2]["text/html"]
    assert cell.shown[-1] == {"text/html": "", "text/plain": ""}, "it is removed at the end"


def test_what_is_given_is_used_and_nothing_shown(cell: Cell) -> None:
    with bars.progress_or_bar(silent) as progress, watched(silent, None) as (other, watch):
        assert progress is silent and other is silent and watch is unwatched
    assert cell.shown == []


def test_a_comparison_fills_its_table_in_the_cell(cell: Cell) -> None:
    with watched(None, None) as (progress, watch):
        assert progress is silent and isinstance(watch, _Filling)
        watch.goes_on("lora seed 0", 12.0, 30.0)
    assert "12 s, about 30 s left: lora seed 0" in cell.shown[-2]["text/plain"]


def test_a_cell_is_not_flooded(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 60.0)
    with bars.progress_or_bar(None) as progress:
        for number in range(100):
            progress(number / 100, "epoch")
    assert len(cell.shown) == 3, "the empty cell, the first text, and the empty cell at the end"
