"""The most memory of a CUDA device that the process held at once during the run."""

from __future__ import annotations

import torch

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("peak_accelerator_bytes")
class PeakAcceleratorBytes:
    """High-water mark of torch's allocator on the device; unknown where the process has used none."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("peak GPU memory")

    def begin(self) -> None:
        """Bring the mark down to what is held now."""
        if in_use():
            torch.cuda.reset_peak_memory_stats()

    def stop(self, mark: None) -> Cost:
        """What was held at most until now: the measuring of the answers' speed is not part of it."""
        return Cost(torch.cuda.max_memory_allocated() if in_use() else None, "bytes", "counter")

    def end(self, mark: Cost | None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in bytes."""
        return mark if mark is not None else self.stop(None)


def in_use() -> bool:
    """Whether this process computes on a device; asking a device that is not in use would start it."""
    used: bool = torch.cuda.is_initialized()
    return used
