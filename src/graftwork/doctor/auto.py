"""What `--precision auto` and `--device auto` are here, as far as is known without measuring anything."""

from __future__ import annotations

from dataclasses import dataclass

from graftwork.machine.environment import multiplying, numerics
from graftwork.machine.faster_precision import Weighed, kept


@dataclass(frozen=True)
class Auto:
    """As chosen; a processor with bf16 products has a choice, which hangs on a measurement."""

    device: str
    threads: int
    precision: str | None  # None: the first run will measure it
    weighed: Weighed | None  # what that measured and kept, where it did


def auto() -> Auto:
    """Of this machine, now."""
    chosen = numerics("auto", "auto", network=False)
    device, threads = chosen["device"], chosen["threads"]
    if device == "cuda" or chosen["precision"] == "fp32":
        return Auto(device, threads, chosen["precision"], None)
    weighed = kept(multiplying())
    return Auto(device, threads, weighed.precision if weighed else None, weighed)
