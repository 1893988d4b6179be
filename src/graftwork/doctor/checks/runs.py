"""What stands in the folder of runs beside finished ones: checkpoints, claims, and what killed processes left."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from graftwork.doctor.check import Asked, Check, Finding
from graftwork.registry import checks
from graftwork.run.store import RunStore
from graftwork.units import duration, show

HIDDEN = re.compile(r"\.[0-9a-f]{8,64}\.(?P<kind>.+)")
KINDS = {"checkpoint": "checkpoint", "claim": "claim"}  # anything else is a folder on its way
STALE_SECONDS = 3600.0  # what nobody wrote to for longer


def look(asked: Asked) -> Iterator[Finding]:
    """Notes of what can go, and of unfinished runs that the same command goes on with."""
    if not asked.runs.is_dir():
        yield Finding(f"no folder {asked.runs} yet")
        return
    found: dict[str, list[Path]] = {"checkpoint": [], "claim": [], "leftover": []}
    for path in sorted(asked.runs.iterdir()):
        hidden = HIDDEN.fullmatch(path.name)
        if hidden:
            found[KINDS.get(hidden["kind"], "leftover")].append(path)
    finished = RunStore(asked.runs).ids()
    broken = [path for path in asked.runs.glob("[!.]*/") if path.name not in finished and (path / "spec.json").exists()]
    facts = {"finished": len(finished), "broken": len(broken)} | {name: len(paths) for name, paths in found.items()}
    yield Finding(f"{len(finished):,} finished under {asked.runs}", facts=facts)
    if found["checkpoint"]:
        why = f"the same command goes on with them; {_size(found['checkpoint'])}"
        do = f"run it again, or remove {asked.runs}/.*.checkpoint"
        yield Finding(_several(found["checkpoint"], "checkpoint of a run", "checkpoints of runs"), "note", why, do)
    for name in ("claim", "leftover"):
        stale = [path for path in found[name] if _idle(path) > STALE_SECONDS]
        if stale:
            why = f"idle for {duration(max(map(_idle, stale)))}; {_size(stale)}"
            do = "a run that needs the place removes it; by hand where no graft is running"
            yield Finding(f"{_several(stale, name, f'{name}s')} of killed processes", "note", why, do)
    if broken:
        why = "without result.json a run is not complete, and is run again"
        do = f"remove {', '.join(str(path) for path in broken[:3])}{' …' if len(broken) > 3 else ''}"
        yield Finding(_several(broken, "run without a result", "runs without a result"), "note", why, do)


def _idle(path: Path) -> float:
    """Seconds since anything in it was written."""
    inside = [path, *(path.rglob("*") if path.is_dir() else ())]
    return time.time() - max((one.lstat().st_mtime for one in inside if one.exists()), default=0.0)


def _size(paths: list[Path]) -> str:
    inside = [one for path in paths for one in (path, *path.rglob("*"))]
    return show(sum(one.lstat().st_size for one in inside if one.is_file()), "bytes")


def _several(paths: list[Path], one: str, many: str) -> str:
    return f"{len(paths):,} {one if len(paths) == 1 else many}"


checks.register("runs")(Check("folders", look))
