"""The cores available to this process by its affinity and its control group."""

from __future__ import annotations

import os
from collections.abc import Iterator

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.cgroup import core_quota
from graftwork.machine.environment import usable_cores
from graftwork.registry import checks


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "slow" where a quota pauses all threads for a part of every period."""
    cores, usable, quota = os.cpu_count(), usable_cores(), core_quota()
    facts = {"cores": cores, "usable": usable, "quota": quota}
    of = "" if usable == cores else f" of {cores}, by its affinity"
    limit = "" if quota is None else f"; a control group gives {quota:g} cores' worth of time"
    yield Finding(f"{usable}{of}{limit}", facts=facts)
    if quota is not None and quota < 1:
        why = "every thread is paused for a part of each tenth of a second"
        yield Finding(f"a control group gives {quota:g} of a core", "slow", why, "ask for a whole core at least")


checks.register("cores")(Check("machine", look))
