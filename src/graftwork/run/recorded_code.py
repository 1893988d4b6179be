"""The code's part of a receipt: the sources that ran, and the versions of all imported distributions."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graftwork import __version__
from graftwork.io.files import digest, file_digest
from graftwork.machine.environment import CHECKOUT, CODE, commit, git, version

PACKAGE = Path(__file__).resolve().parents[1]
LOCK = "constraints.txt"


def recorded_code() -> dict[str, Any]:
    """Return the record as JSON. Values unknown for an installed package (commit, diff, lock file) are None."""
    at = commit(CHECKOUT) or {"hash": None, "dirty": None}
    lock = CHECKOUT / LOCK
    return {
        "graftwork": __version__,
        "source_sha256": source_digest(PACKAGE),
        "commit": at["hash"],
        "dirty": at["dirty"],
        "diff_sha256": diff_digest(CHECKOUT) if at["dirty"] else None,
        "constraints_sha256": file_digest(lock) if at["hash"] and lock.is_file() else None,
        "python": platform.python_version(),
        "distributions": imported_versions(),
    }


@functools.cache
def source_digest(package: Path) -> str:
    """Return the sha256 over every Python file of the package, by path: equal for equal code, however installed."""
    return digest([[path.relative_to(package).as_posix(), file_digest(path)] for path in sorted(package.rglob("*.py"))])


@functools.cache
def diff_digest(checkout: Path) -> str | None:
    """Return the sha256 of the diff of `CODE` to the commit and of its untracked files; None if git fails."""
    changed = git(checkout, "diff", "HEAD", "--binary", "--", *CODE)
    new = git(checkout, "ls-files", "--others", "--exclude-standard", "--", *CODE)
    if changed is None or new is None:
        return None
    found = [[name, file_digest(checkout / name)] for name in new.splitlines() if (checkout / name).is_file()]
    return digest([hashlib.sha256(changed.encode()).hexdigest(), found])


def imported_versions() -> dict[str, str]:
    """Return distribution -> version of everything this process has imported."""
    owners = _owners()
    tops = {name.partition(".")[0] for name in list(sys.modules)}
    names = {_name(owner) for top in tops for owner in owners.get(top, ())}
    return {name: found for name in sorted(names) if (found := version(name)) is not None}


def other_versions(recorded: Mapping[str, str]) -> dict[str, tuple[str, str | None]]:
    """Return distribution -> (recorded version, installed version or None) of those that differ."""
    here = {name: version(name) for name in recorded}
    return {name: (told, here[name]) for name, told in recorded.items() if here[name] != told}


@functools.cache
def _owners() -> Mapping[str, tuple[importlib.metadata.Distribution, ...]]:
    """Return module name -> distributions that install it; ten times as fast as `importlib.metadata`'s function."""
    owners: defaultdict[str, list[importlib.metadata.Distribution]] = defaultdict(list)
    for distribution in importlib.metadata.distributions():
        tops = (distribution.read_text("top_level.txt") or "").split() or _tops(distribution.read_text("RECORD") or "")
        for top in tops:
            owners[top].append(distribution)
    return {top: tuple(listed) for top, listed in owners.items()}


@functools.cache
def _name(owner: importlib.metadata.Distribution) -> str:
    """Return the distribution's name, cached because it is read from a file."""
    return owner.name


def _tops(record: str) -> Iterable[str]:
    """Return the importable top-level names among the files of a distribution."""
    first = {line.partition(",")[0].partition("/")[0] for line in record.splitlines()}
    return {name.partition(".")[0] for name in first if not name.endswith((".dist-info", ".data", "..", ".pth"))}
