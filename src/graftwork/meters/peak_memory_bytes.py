"""Peak memory that the process used during the run."""

from __future__ import annotations

import sys
from pathlib import Path

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.machine.environment import kernel_bytes
from graftwork.registry import meters

RESET = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")  # its VmHWM is the peak since the last reset


@meters.register("peak_memory_bytes")
class PeakMemoryBytes:
    """High-water mark of resident memory, of the network, data and interpreter together, without child processes."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("peak memory")

    def begin(self) -> bool:
        """Reset the kernel's high-water mark to the memory in use now; return False where that is not allowed."""
        try:
            RESET.write_text("5")
        except OSError:
            return False
        return True

    def stop(self, mark: bool) -> Cost:
        """Return the peak until now; the measurement of prediction speed, which follows, is excluded."""
        since_begin = kernel_bytes(STATUS, "VmHWM") if mark else None
        if since_begin is not None:
            return Cost(since_begin, "bytes", "counter")
        return Cost(lifetime_bytes(), "bytes", "model")

    def end(self, mark: bool | Cost, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in bytes; graded "model" when the peak may date from before the run."""
        return mark if isinstance(mark, Cost) else self.stop(mark)


def lifetime_bytes() -> int | None:
    """Return the peak over the life of the process; None where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
