"""Memory: total, free, and the limit of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.machine.cgroup import memory_limit, memory_used
from graftwork.machine.environment import kernel_bytes, memory_bytes
from graftwork.registry import checks
from graftwork.units import show

NEEDED = 1_500_000_000  # bytes: a run of `full` on minilm takes 1.46 GB (README.md)
INFO = Path("/proc/meminfo")


def own_limit() -> int | None:
    """Return the limit of `ulimit -v` in bytes; None without one."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "fails" where a run cannot fit, "slow" where the system would have to swap or kill processes."""
    free = kernel_bytes(INFO, "MemAvailable")  # available without swapping
    whole, group, held, own = memory_bytes(), memory_limit(), memory_used(), own_limit()
    limit = min((size for size in (whole, group, own) if size is not None), default=None)
    facts = {"bytes": whole, "free_bytes": free, "group_limit_bytes": group, "group_used_bytes": held}
    told = f"{show(free, 'bytes')} of {show(whole, 'bytes')} free"
    bounded = limit is not None and limit != whole
    yield Finding(f"{told}; limited to {show(limit, 'bytes')}" if bounded else told, facts=facts | {"ulimit": own})
    if limit is not None and limit < NEEDED:
        why = f"training the whole of minilm takes {show(NEEDED, 'bytes')}"
        yield Finding(
            f"at most {show(limit, 'bytes')} of memory", "fails", why, "raise the limit, or take linear_probe"
        )
    elif free is not None and free < NEEDED:
        why = "the system swaps, or kills the process that takes most memory"
        yield Finding(f"{show(free, 'bytes')} of memory are free", "slow", why, "end what else is running")


checks.register("memory")(Check("machine", look))
