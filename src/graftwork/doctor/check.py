"""A check: looks at one thing of this machine and says how it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftwork.config import DEFAULT_BACKBONE

GROUPS = ("machine", "speed", "software", "folders")  # in the order they are told


@dataclass(frozen=True)
class Intended:
    """What the user means to use."""

    backbone: str = DEFAULT_BACKBONE
    runs: Path = Path("runs")
    cache: str | None = None  # None: the usual one
    seconds: float = 0.3  # of each measurement; 0 measures nothing


@dataclass(frozen=True)
class Finding:
    """One thing as it is. What is not "ok" says why it matters and what to do."""

    says: str
    level: str = "ok"  # or "note", "slow", "fails"
    why: str = ""
    do: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # the same in numbers, as JSON


@dataclass(frozen=True)
class Check:
    """Registered under its name; `look` changes nothing that stays."""

    group: str
    look: Callable[[Intended], Iterable[Finding]]
