"""Linux limits of a process: the cores and the memory of its control groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

OWN = Path("/proc/self/cgroup")  # lists the groups of this process
MOUNT = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60  # bytes; cgroup v1 writes a number near 2^63 where there is no limit


def core_quota() -> float | None:
    """Return the CPU quota in cores that the processes of the group share; None without a limit."""
    found = [quota for folder in _folders("cpu") if (quota := _quota(folder)) is not None]
    return min(found, default=None)


def memory_limit() -> int | None:
    """Return the bytes of memory at which the group's processes are killed; None without a limit."""
    files = ("memory.max", "memory.limit_in_bytes")
    found = [_number(folder / file) for folder in _folders("memory") for file in files]
    return min((limit for limit in found if limit is not None), default=None)


def memory_used() -> int | None:
    """Return the bytes that the innermost limited group uses now, page cache included; None without a limit."""
    for folder in _folders("memory"):
        if (_number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")) is not None:
            return _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
    return None


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's group and its ancestors, innermost first, in cgroup v1 and v2."""
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = MOUNT / controller if controllers else MOUNT
        folder = root / path.lstrip("/")
        while folder != root and root in folder.parents:
            yield folder
            folder = folder.parent
        yield root


def _number(path: Path) -> int | None:
    """Read a number; None where there is no such file, or no limit ("max", or `NO_LIMIT` and above)."""
    try:
        number = int(path.read_text())
    except (OSError, ValueError):
        return None
    return number if number < NO_LIMIT else None


def _quota(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    quota_us, period_us = (_number(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return quota_us / period_us if quota_us is not None and quota_us > 0 and period_us else None
