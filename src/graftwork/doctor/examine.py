"""Runs all checks and collects their findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftwork.config import DEFAULT_BACKBONE
from graftwork.core.arguments import told_arguments
from graftwork.doctor.check import GROUPS, Finding, IntendedUse, failure_of
from graftwork.errors import GraftworkError
from graftwork.registry import checks

FORMAT = 1


@told_arguments
def doctor(
    *,
    backbone: str = DEFAULT_BACKBONE,
    runs: str | Path = "runs",
    cache: str | Path | None = None,
    seconds: float = 0.3,
) -> dict[str, Any]:
    """Examine this machine and report, as JSON, what will fail or be slow on it.

    `checks` has an entry per check: its `group`, and `findings` with what each `says`, a `level` ("ok", "note", "slow",
    "fails"), `why` it matters, what to `do`, and the `facts` in SI units. `well` is true when nothing will fail. Every
    measurement takes `seconds`; 0 measures nothing. No folder is created, and nothing is downloaded.
    """
    asked = IntendedUse(backbone, Path(runs), None if cache is None else str(cache), seconds)
    found = {name: run_check(name, asked) for name in checks.names()}
    order = sorted(found, key=lambda name: GROUPS.index(found[name]["group"]))
    told = {name: found[name] for name in order}
    return {"format": FORMAT, "well": not advice(told, "fails"), "checks": told}


def run_check(name: str, asked: IntendedUse) -> dict[str, Any]:
    """Run one check. An exception becomes a finding of one line, so that a broken library stops no other check."""
    group = GROUPS[0]
    try:
        check = checks.get(name)
        group = check.group
        findings = list(check.look(asked))
    except GraftworkError as error:
        findings = [failure_of(error)]
    except Exception as error:
        what = " ".join(f"the check failed: {type(error).__name__}: {error}".split())
        do = "install the library anew" if isinstance(error, ImportError) else "see graft doctor --json"
        findings = [Finding(what, "fails", do=do)]
    return {"group": group, "findings": [asdict(finding) for finding in findings]}


def advice(checked: Mapping[str, Any], level: str) -> list[dict[str, Any]]:
    """Return the findings of one level, in order; equal ones are merged, with the names of their checks."""
    listed: dict[tuple[str, str, str], list[str]] = {}
    for name, one in checked.items():
        for finding in one["findings"]:
            if finding["level"] == level:
                listed.setdefault((finding["says"], finding["why"], finding["do"]), []).append(name)
    return [{"checks": names, "says": says, "why": why, "do": do} for (says, why, do), names in listed.items()]
