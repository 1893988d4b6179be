"""Outcomes: in which way an answer agrees with a target, or does not. It imports nothing heavy, as kinds do not."""

from __future__ import annotations

from typing import NamedTuple

MISSED = "(missed)"  # `Outcome.found` for a part of the target that the answer lacks
NOTHING = "(nothing)"  # `Outcome.true` for a part that only the answer has


class Outcome(NamedTuple):
    """One comparison of a target and an answer: an example has one, or one for each of its labels, spans or words."""

    true: str  # what is in the target
    found: str  # what the answer has in its place
    right: bool
    note: str = ""  # why it is wrong although `true` and `found` are equal
    off: float = 0.0  # how far a number is from its target, in standard deviations of the targets of train

    @property
    def description(self) -> str:
        """The finding, with the note."""
        return f"{self.found}, {self.note}" if self.note else self.found
