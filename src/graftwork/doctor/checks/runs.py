"""The folder of runs: finished runs, checkpoints, locks, and leftovers of killed processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.pretrain.pretrain_folder import CHECKPOINT
from graftwork.registry import checks
from graftwork.run.store import ON_THE_WAY, RunStore, is_being_filled
from graftwork.units import show

LOCKS = Path("/proc/locks")
STALE_SECONDS = 3600.0  # age at which a lock counts as released, where /proc/locks is missing


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report notes on files that can be removed, and on unfinished runs that the same command resumes."""
    if not asked.runs.is_dir():
        yield Finding(f"no folder {asked.runs} yet")
        return
    store, hidden = RunStore(asked.runs), [path for path in asked.runs.glob(".*") if ON_THE_WAY.fullmatch(path.name)]
    live = {_run(path) for path in hidden if _is_live(path)}
    left = [path for path in hidden if _run(path) not in live]
    checkpoints = [path for path in asked.runs.glob(".*.checkpoint") if _run(path) not in live]
    finished = store.ids()
    begun = [path for path in asked.runs.glob("[!.]*/") if path.name not in finished and (path / "spec.json").exists()]
    live |= {path.name for path in begun if _is_held(path / ".lock")}  # a pre-training writes into its folder in place
    unfinished = [path for path in begun if path.name not in live]
    stopped = [path for path in unfinished if (path / CHECKPOINT).is_dir()]
    torn = [path for path in unfinished if path not in stopped]
    facts = {"finished": len(finished), "live": len(live), "checkpoints": len(checkpoints), "left": len(left)}
    facts |= {"stopped": len(stopped), "torn": len(torn)}
    now = f", {len(live):,} being executed" if live else ""
    yield Finding(f"{len(finished):,} finished{now} under {asked.runs}", facts=facts)
    if checkpoints:
        why = f"the same command resumes from them; {_size(checkpoints)}"
        do = f"run it again, or remove {asked.runs}/.*.checkpoint"
        yield Finding(_several(checkpoints, "run was stopped", "runs were stopped"), "note", why, do)
    if stopped:
        why = f"the same command resumes from the checkpoint in the folder; {_size(stopped)}"
        said = _several(stopped, "pre-training was stopped", "pre-trainings were stopped")
        yield Finding(said, "note", why, "run it again")
    if left:
        do = f"graft train or compare with --runs {asked.runs} removes it"
        yield Finding(_several(left, "leftover", "leftovers") + " of killed processes", "note", _size(left), do)
    if torn:
        do = f"remove {', '.join(str(path) for path in torn[:3])}{' …' if len(torn) > 3 else ''}"
        why = "without result.json a run is not complete, and is run again"
        yield Finding(_several(torn, "run without a result", "runs without a result"), "note", why, do)


def _run(hidden: Path) -> str:
    return hidden.name.split(".")[1]


def _is_live(path: Path) -> bool:
    """Return whether a process holds this `.claim` file, or is filling this folder, maybe on another machine."""
    return _is_held(path) if path.name.endswith(".claim") else is_being_filled(path, time.time())


def _is_held(lock: Path) -> bool:
    """Return whether a process holds the lock; on systems without /proc/locks, whether the lock file is recent."""
    try:
        stat = lock.stat()
        locks = [line.split() for line in LOCKS.read_text().splitlines()]
    except (FileNotFoundError, PermissionError):
        return lock.exists() and time.time() - lock.stat().st_mtime < STALE_SECONDS
    return any(_is_of(fields[5], stat) for fields in locks if "FLOCK" in fields)


def _is_of(place: str, stat: os.stat_result) -> bool:
    """Return whether `place`, `major:minor:inode` of /proc/locks, is the file with this `stat`.

    On file systems without a device of their own (major 0, such as btrfs and overlayfs), `stat` may report another
    device than /proc/locks, so only the inode is compared.
    """
    major, minor, inode = place.split(":")
    device = (int(major, 16), int(minor, 16))
    return int(inode) == stat.st_ino and (
        device == (os.major(stat.st_dev), os.minor(stat.st_dev)) or device[0] == os.major(stat.st_dev) == 0
    )


def _size(paths: list[Path]) -> str:
    inside = [one for path in paths for one in (path, *path.rglob("*"))]
    return show(sum(one.lstat().st_size for one in inside if one.is_file()), "bytes")


def _several(paths: list[Path], one: str, many: str) -> str:
    return f"{len(paths):,} {one if len(paths) == 1 else many}"


checks.register("runs")(Check("folders", look))
