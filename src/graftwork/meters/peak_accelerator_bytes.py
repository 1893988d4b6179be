"""The most memory of a CUDA device that the process held at once during the run."""

from __future__ import annotations

from types import ModuleType

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.machine.torch_in_use import torch_in_use
from graftwork.registry import meters


@meters.register("peak_accelerator_bytes")
class PeakAcceleratorBytes:
    """High-water mark of torch's allocator on the device; unknown where the process has used none."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("peak GPU memory")

    def begin(self) -> None:
        """Bring the mark down to what is held now."""
        if (cuda := in_use()) is not None:
            cuda.reset_peak_memory_stats()

    def stop(self, mark: None) -> Cost:
        """What was held at most until now: the measuring of the answers' speed is not part of it."""
        cuda = in_use()
        return Cost(None if cuda is None else cuda.max_memory_allocated(), "bytes", "counter")

    def end(self, mark: Cost | None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in bytes."""
        return mark if mark is not None else self.stop(None)


def in_use() -> ModuleType | None:
    """torch's account of the device that this process computes on; None where it uses none: asking would start it."""
    torch = torch_in_use()
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
