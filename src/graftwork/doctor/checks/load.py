"""The machine's load, and the other processes that cause most of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.environment import load_average, usable_cores
from graftwork.registry import checks

PROCESSES = Path("/proc")
BUSY = 0.2  # minimum use, in cores, of the processes of one name that is reported
MOST = 5  # maximum number of names that are listed
SHARE = 0.25  # share of the cores: "slow" is reported if other processes use as much


def ticks() -> dict[int, tuple[str, int]]:
    """Return process id -> name and processor time in clock ticks; empty where the system does not report them."""
    found = {}
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            head, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended, or belongs to another user
            continue
        fields = rest.split()
        found[int(folder.name)] = (head.partition("(")[2], int(fields[11]) + int(fields[12]))
    return found


def others(seconds: float) -> dict[str, float]:
    """Measure, by name, the cores used by other busy processes for `seconds`, busiest first."""
    before, begun = ticks(), time.perf_counter()
    time.sleep(seconds)
    after, passed = ticks(), time.perf_counter() - begun
    taken: dict[str, float] = {}
    for process, (name, count) in after.items():
        if process in before and process != os.getpid():
            share = (count - before[process][1]) / os.sysconf("SC_CLK_TCK") / passed
            taken[name] = taken.get(name, 0.0) + share
    busy = {name: round(share, 2) for name, share in taken.items() if share >= BUSY}
    return dict(sorted(busy.items(), key=lambda item: -item[1]))


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" where others use a quarter of the cores or more, which distorts the times and energy of runs."""
    load, cores = load_average(), usable_cores() or 1
    busy = others(asked.seconds) if asked.seconds > 0 and PROCESSES.is_dir() else {}
    listed = ", ".join(f"{name} {share:g}" for name, share in list(busy.items())[:MOST])
    means = "unknown" if load is None else f"{load[0]:g}, {load[1]:g}, {load[2]:g} over 1, 5, 15 minutes"
    facts = {"load_average": load, "cores_taken": busy}
    yield Finding(f"{means}{f'; cores taken now: {listed}' if listed else ''}", facts=facts)
    if sum(busy.values()) >= SHARE * cores:
        why = "runs share the cores with them, so the times and energy that are measured are too high"
        yield Finding(f"other processes take cores: {listed}", "slow", why, "end them, or wait")
    elif not busy and load is not None and load[0] > 2 * cores:
        why = "more processes want a core than there are"
        yield Finding(f"a load of {load[0]:g} on {cores} cores", "slow", why, "see top for what is running")


checks.register("load")(Check("machine", look))
