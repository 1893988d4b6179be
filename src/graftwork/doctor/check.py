"""Checks: each examines one aspect of this machine and returns findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftwork.config import DEFAULT_BACKBONE

GROUPS = ("machine", "speed", "software", "folders")  # in the order of the report


@dataclass(frozen=True)
class Intended:
    """The backbone and folders that the user intends to use."""

    backbone: str = DEFAULT_BACKBONE
    runs: Path = Path("runs")
    cache: str | None = None  # None: the default one
    seconds: float = 0.3  # of each measurement; 0 measures nothing


@dataclass(frozen=True)
class Finding:
    """One observation. Unless its level is "ok", it gives the reason why it matters and a remedy."""

    says: str
    level: str = "ok"  # or "note", "slow", "fails"
    why: str = ""
    do: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # the same as numbers, for JSON


@dataclass(frozen=True)
class Check:
    """A check, registered under its name; `look` makes no lasting changes."""

    group: str
    look: Callable[[Intended], Iterable[Finding]]
