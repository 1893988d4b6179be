"""Display of progress: a bar on a terminal or in a notebook's cell, elsewhere a line every 30 seconds."""

from __future__ import annotations

import importlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import TYPE_CHECKING, Any

from graftwork.core.progress import Progress, silent
from graftwork.units import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

SECONDS_BETWEEN_UPDATES = 0.3  # in a notebook's cell: each update is a message to the browser
CELL_WIDTH = 100  # characters
SECONDS_BETWEEN_LINES = 30.0  # in a pipe or a log
READING = "reading the data"


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook (Jupyter, VS Code, Colab)."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def notebook_cell() -> Iterator[Callable[[RenderableType], None]]:
    """Yield a function that shows what it is given below the running cell, in place of what it showed before.

    The output is removed at the end. It uses no widgets, so exported notebooks show it too.
    """
    notebook: Any = importlib.import_module("IPython.display")
    handle = notebook.display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
    shown = -SECONDS_BETWEEN_UPDATES

    def show(content: RenderableType) -> None:
        nonlocal shown
        if time.monotonic() - shown >= SECONDS_BETWEEN_UPDATES:
            shown, text = time.monotonic(), rendered_text(content)
            handle.update({"text/html": f"<pre>{escape(text)}</pre>", "text/plain": text}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def rendered_text(content: RenderableType) -> str:
    """Return what rich would print, without colours."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=CELL_WIDTH, force_jupyter=False, color_system=None, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(content)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


@contextmanager
def progress_bar(shown: bool = True, first: str = READING) -> Iterator[Progress]:
    """Yield a progress bar in a notebook's cell or on a terminal's stderr; a silent one if not `shown`.

    It appears before heavy imports, with the text `first`. Where stderr is a file or a pipe, it gets a line at most
    every `SECONDS_BETWEEN_LINES`: a command in the background of a server has a log that tells how far it is.
    """
    cell = in_notebook()
    if not shown:
        yield silent
        return
    if not (cell or sys.stderr.isatty()):
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    if cell:
        bars = Bars(*columns, auto_refresh=False)
        whole = bars.add_task(first, total=1.0)
        with notebook_cell() as show:
            show(bars.get_renderable())

            def told(done: float, text: str) -> None:
                bars.update(whole, completed=done, description=text)
                show(bars.get_renderable())

            yield told
        return
    shown_together = sys.stdout.isatty()  # on a terminal, output goes above the bar; never redirect a file
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, redirect_stdout=shown_together) as bar:
        whole = bar.add_task(first, total=1.0)
        yield lambda done, text: bar.update(whole, completed=done, description=text)


def _lines() -> Progress:
    """Return a callback that prints such lines to stderr: `1 min 30 s, 42 %: full, epoch 2 of 3`."""
    began = last = time.monotonic()

    def tell(done: float, text: str) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= SECONDS_BETWEEN_LINES:
            last = now
            sys.stderr.write(f"{duration(round(now - began))}, {100 * done:.0f} %: {text}\n")
            sys.stderr.flush()

    return tell


def progress_or_bar(progress: Progress | None) -> AbstractContextManager[Progress]:
    """Return a context that yields `progress`; for None a `progress_bar` in a notebook or on a terminal, else silence.

    A program that calls a function of the library has a stderr of its own to write to.
    """
    return progress_bar(in_notebook() or sys.stderr.isatty()) if progress is None else nullcontext(progress)
