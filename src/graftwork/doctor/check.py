"""Checks: each examines one aspect of this machine and returns findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftwork.config import DEFAULT_BACKBONE
from graftwork.errors import GraftworkError

GROUPS = ("machine", "speed", "software", "folders")  # in the order of the report


@dataclass(frozen=True)
class IntendedUse:
    """The backbone and folders that the user intends to use."""

    backbone: str = DEFAULT_BACKBONE
    runs: Path = Path("runs")
    cache: str | None = None  # None: the default one
    seconds: float = 0.3  # duration of each measurement; 0 measures nothing


@dataclass(frozen=True)
class Finding:
    """One observation. Unless its level is "ok", it gives the reason why it matters and a remedy."""

    says: str
    level: str = "ok"  # or "note", "slow", "fails"
    why: str = ""
    do: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # the values behind `says`, in SI units, for JSON


def failure_of(error: GraftworkError, else_do: str = "") -> Finding:
    """Convert an error to a finding of level "fails"; `else_do` is the remedy if the error has none."""
    where, why = f"{error.where}: " if error.where else "", f"expected {error.expected}" if error.expected else ""
    return Finding(f"{where}{error.what}", "fails", why, error.do or else_do)


@dataclass(frozen=True)
class Check:
    """A check, registered under its name, in one of `GROUPS`; `look` yields findings and changes nothing for good."""

    group: str
    look: Callable[[IntendedUse], Iterable[Finding]]
