"""The versions that Graftwork was tested with, and those that it needs: of a checkout, or of what was installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

NAME = "graftwork"
CHECKOUT = Path(__file__).resolve().parents[3]  # of src/graftwork/doctor/tested.py, when it runs from its sources
CONSTRAINTS = "constraints.txt"


def versions_tested() -> Mapping[str, str]:
    """Distribution -> the version of constraints.txt; empty where neither a checkout nor an installation has it.

    A wheel carries the file beside its metadata: pyproject.toml puts it there.
    """
    beside = CHECKOUT / CONSTRAINTS
    if beside.is_file():
        text = beside.read_text(encoding="utf-8")
    else:
        try:
            text = importlib.metadata.distribution(NAME).read_text(f"extra_metadata/{CONSTRAINTS}") or ""
        except importlib.metadata.PackageNotFoundError:
            text = ""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {
        name.strip().lower(): version.strip()
        for name, _, version in (line.partition("==") for line in lines)
        if version
    }


def requirements() -> list[Requirement]:
    """What the installed package asks for, those of its extras with their marker; empty where it is not installed."""
    try:
        told = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Requirement(line) for line in told]


def of_extra(extra: str) -> list[Requirement]:
    """What `pip install graftwork[EXTRA]` adds; of "" what every installation needs."""
    needed = [one for one in requirements() if one.marker is None or one.marker.evaluate({"extra": extra})]
    return [one for one in needed if (one.marker is not None and "extra" in str(one.marker)) == bool(extra)]


def installed(distribution: str) -> str | None:
    """Its version, without the word of a builder (`+cpu`); None when it is not installed."""
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None
