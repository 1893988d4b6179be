"""Listeners of a comparison's progress: its plan, the present run, and the standing after each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graftwork.compare.search import Outlook
    from graftwork.decision.standing import Standing


class Listener(Protocol):
    """A listener of a comparison's progress."""

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Receive the plan before the first run."""

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """Receive progress during a run; it must return quickly, because it counts in the run's time."""

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """Receive the standing after a run. Scores are on validation; no test row has been used."""


class _Unwatched:
    """A listener that ignores everything."""

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Do nothing."""

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """Do nothing."""

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """Do nothing."""


unwatched: Listener = _Unwatched()
