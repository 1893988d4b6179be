"""Peak memory of a CUDA device that the process used during the run."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.machine.torch_in_use import cuda_in_use
from graftwork.registry import meters


@meters.register("peak_accelerator_bytes")
class PeakAcceleratorBytes:
    """High-water mark of torch's allocator on the device; unknown where the process has used no device."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("peak GPU memory")

    def begin(self) -> None:
        """Reset the high-water mark to the memory in use now."""
        if (cuda := cuda_in_use()) is not None:
            cuda.reset_peak_memory_stats()

    def stop(self, mark: None) -> Cost:
        """Return the peak until now; the measurement of prediction speed, which follows, is excluded."""
        cuda = cuda_in_use()
        return Cost(None if cuda is None else cuda.max_memory_allocated(), "bytes", "counter")

    def end(self, mark: Cost | None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in bytes."""
        return mark if mark is not None else self.stop(None)
