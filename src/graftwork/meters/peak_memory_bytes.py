"""The most memory that the process held at once during the run."""

from __future__ import annotations

import sys
from pathlib import Path

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters

RESET = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")


@meters.register("peak_memory_bytes")
class PeakMemoryBytes:
    """High-water mark of resident memory: the network, the data and the interpreter with them; no child process."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("peak memory")

    def begin(self) -> bool:
        """Bring the kernel's high-water mark down to what is held now; False where that is not allowed."""
        try:
            RESET.write_text("5")
        except OSError:
            return False
        return True

    def stop(self, mark: bool) -> Cost:
        """What was held at most until now: the measuring of the answers' speed is not part of it."""
        since_begin = high_water_bytes() if mark else None
        if since_begin is not None:
            return Cost(since_begin, "bytes", "counter")
        return Cost(lifetime_bytes(), "bytes", "model")

    def end(self, mark: bool | Cost, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in bytes; graded "model" when it may date from before the run."""
        return mark if isinstance(mark, Cost) else self.stop(mark)


def high_water_bytes() -> int | None:
    """`VmHWM`, the peak since it was last reset; None where the kernel does not tell."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def lifetime_bytes() -> int | None:
    """The peak over the life of the process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
