"""Who is told how a comparison goes on: the plan before it, what runs, and how things stand when a run has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graftwork.compare.search import Outlook
    from graftwork.decision.standing import Standing


class Listener(Protocol):
    """Shows it to somebody."""

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Before the first run."""

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """In the middle of a run: it must not take long, for it is in the run's time."""

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """After a run. Scores are of validation: no test row has been looked at."""


class _Unwatched:
    """For nobody."""

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        """Nothing."""

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        """Nothing."""

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        """Nothing."""


unwatched: Listener = _Unwatched()
