"""Progress of a running comparison: a live table on a terminal or in a notebook, else a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from graftwork.compare.listeners import Listener, unwatched
from graftwork.core.progress import Progress, silent
from graftwork.core.progress_bar import READING, SECONDS_BETWEEN_LINES, in_notebook, notebook_cell
from graftwork.units import duration, percent, several

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from graftwork.compare.search import Outlook
    from graftwork.decision.standing import Standing


@contextmanager
def watching(shown: bool = True) -> Iterator[Listener]:
    """Yield a listener that prints to stderr, so that the final output can be piped; silent unless `shown`."""
    if not shown:
        yield unwatched
        return
    if in_notebook():
        with notebook_cell() as show:
            yield _Filling(show)
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True, highlight=False), refresh_per_second=2, transient=True) as live:
        yield _Filling(live.update)


@contextmanager
def watched(progress: Progress | None, watch: Listener | None) -> Iterator[tuple[Progress, Listener]]:
    """Yield the given callbacks, silent if missing; if both are None, a live table in a notebook or terminal."""
    if progress is not None or watch is not None:
        yield progress or silent, watch or unwatched
        return
    with watching(in_notebook() or sys.stderr.isatty()) as table:
        yield silent, table


def plan_line(outlook: Outlook, exhaustive: bool) -> str:
    """Return `Baselines in about 10 s; then runs for as long as one can change the choice: about 3 min, at most …`."""
    runs, whole = several(outlook.runs, "run"), _about(outlook.most_seconds)
    plan = (
        f"{runs}, about {whole}"
        if exhaustive
        else f"Baselines in about {_about(outlook.first_seconds)}; then runs for as long as one can change the choice: "
        f"about {_about(outlook.likely_seconds)}, at most {runs} in {whole}"
    )
    return ". ".join([plan, *filter(None, [outlook.advice[:1].upper() + outlook.advice[1:]])]) + "."


def left_line(seconds: float) -> str:
    """Return the remaining time: `about 3 min left`."""
    return f"about {_about(seconds)} left" if seconds >= 1 else "nearly done"


def _about(seconds: float) -> str:
    """Format a duration to the second, and from two minutes on to the minute."""
    return duration(max(1, round(seconds))) if seconds < 120 else f"{round(seconds / 60)} min"


class _Lines:
    """A listener that prints that it has begun, one line for the plan, then at most one every 30 seconds."""

    def __init__(self) -> None:
        click.echo(READING, err=True)
        self._said = time.monotonic()
        self._best = "no run has ended"

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Print the plan."""
        click.echo(plan_line(outlook, exhaustive), err=True)

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """Print the best method so far, at most once every `SECONDS_BETWEEN_LINES`."""
        if time.monotonic() - self._said < SECONDS_BETWEEN_LINES:
            return
        self._said = time.monotonic()
        click.echo(f"{duration(round(seconds_gone))}: {self._best}; {left_line(seconds_left)}", err=True)

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """Record the best method so far."""
        if standing.run_scores:
            arm, score = max(standing.landmarks.items(), key=lambda item: item[1])
            ended = several(len(standing.run_scores), "run")
            self._best = f"{ended}, highest on validation so far {arm.label}, {percent(score)}"
        self.goes_on("", seconds_gone, seconds_left)


class _Filling:
    """A listener that shows a live table, best method first, and below it the current run."""

    def __init__(self, show: Callable[[RenderableType], None]):
        self.show = show
        self._above: list[Text | Table] = []
        self._show(READING)

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Show the plan."""
        from rich.text import Text

        self._above = [Text(plan_line(outlook, exhaustive))]
        self._show("starting")

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """Show the current run, the elapsed and the remaining time."""
        self._show(f"{duration(round(seconds_gone))}, {left_line(seconds_left)}: {run}")

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """Update the table."""
        self._above = [*self._above[:1], _table(standing)]
        self._show(f"{duration(round(seconds_gone))}, {left_line(seconds_left)}")

    def _show(self, below: str) -> None:
        from rich.console import Group
        from rich.text import Text

        self.show(Group(*self._above, Text(below)))


def _table(standing: Standing) -> Table:
    """Return a table of the methods with their validation scores so far."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for title in ("method", "validation", "runs", "train"):
        table.add_column(title, justify="left" if title == "method" else "right")
    prices = standing.prices
    for arm, score in sorted(standing.landmarks.items(), key=lambda item: -item[1]):
        table.add_row(Text(arm.label), percent(score), str(standing.runs(arm)), duration(prices.get(arm, 0.0)))
    return table
