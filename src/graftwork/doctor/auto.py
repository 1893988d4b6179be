"""The choices of `--precision auto` and `--device auto` on this machine, as far as known without a measurement."""

from __future__ import annotations

from dataclasses import dataclass

from graftwork.machine.environment import multiplying, numerics
from graftwork.machine.faster_precision import MeasuredRates, stored_rates


@dataclass(frozen=True)
class Auto:
    """The automatic choices; on a processor with bf16 matrix products, the precision depends on a measurement."""

    device: str
    threads: int
    precision: str | None  # None: the first run will measure it
    weighed: MeasuredRates | None  # the stored measurement, if there is one


def auto() -> Auto:
    """Return the current automatic choices on this machine."""
    chosen = numerics("auto", "auto", network=False)
    device, threads = chosen["device"], chosen["threads"]
    if device == "cuda" or chosen["precision"] == "fp32":
        return Auto(device, threads, chosen["precision"], None)
    weighed = stored_rates(multiplying())
    return Auto(device, threads, weighed.precision if weighed else None, weighed)
