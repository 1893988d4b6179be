"""Choice of the processor's faster precision, fp32 or bf16: measured once and stored, so that run ids are stable."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftwork.errors import StorageError
from graftwork.io.cache_folder import cache_folder
from graftwork.io.files import canonical, digest, read_json, write_json
from graftwork.io.locks import hold_lock
from graftwork.machine.product_rates import PRECISIONS, product_rates

MUCH_FASTER = 1.15  # minimum ratio of fp32 speed to bf16 speed for which fp32 is chosen
SHAPE = (128, 384, 1536)  # (tokens, in, out): a short batch, with the same ratio as a long one (docs/log.md)
SECONDS = 0.08  # duration of a measurement


@dataclass(frozen=True)
class MeasuredRates:
    """The rates measured on one thread, and the precision chosen from them."""

    precision: str  # "fp32" or "bf16"
    flop_per_second: Mapping[str, float]  # rates of both precisions

    @classmethod
    def of(cls, rates: Mapping[str, float]) -> MeasuredRates:
        """Choose the faster precision; if the rates are close, bf16, which takes half the memory."""
        return cls("fp32" if rates["fp32"] >= MUCH_FASTER * rates["bf16"] else "bf16", rates)


def faster_precision(machine: Mapping[str, Any]) -> str:
    """Return the faster of "fp32" and "bf16"; `machine`, from `multiplying`, is all that the speed depends on, as JSON.

    The user's first process measures it in a tenth of a second and stores the result, which later processes read. If
    it cannot be stored, every process measures again.
    """
    return _read_or_measure(place_of(machine), canonical(machine)).precision


def stored_rates(machine: Mapping[str, Any]) -> MeasuredRates | None:
    """Return the stored measurement of this machine; None if there is none yet, or it cannot be read."""
    place = place_of(machine)
    return _read(place) if place is not None else None


def place_of(machine: Mapping[str, Any]) -> Path | None:
    """Return the file of the stored measurement; None if the user has no home folder.

    It is in the user's default cache even if a command names another, so that all commands share it.
    """
    try:
        return cache_folder().parent / "precision" / f"{digest(machine)[:16]}.json"
    except RuntimeError:  # neither environment variables nor a home
        return None


def measure_rates() -> MeasuredRates:
    """Measure both precisions on one thread: on busy cores, several would wait for one another and bias the rates."""
    return MeasuredRates.of(product_rates(SECONDS, shape=SHAPE, threads=1))


@functools.cache
def _read_or_measure(place: Path | None, machine: str) -> MeasuredRates:
    """Read the rates, or measure and store them; cached, so that the choice does not change within a process."""
    found = _read(place) if place is not None else None
    if found is not None:
        return found
    if place is not None:
        with contextlib.suppress(OSError, StorageError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with hold_lock(place.parent / ".lock"):
                found = _read(place)  # written by another process meanwhile
                if found is None:
                    found = measure_rates()
                    write_json(place, asdict(found) | {"machine": json.loads(machine)})
    return found or measure_rates()


def _read(place: Path) -> MeasuredRates | None:
    """Read a stored measurement; None if it is missing, truncated or not a measurement."""
    try:
        told = read_json(place)
        rates = {name: float(told["flop_per_second"][name]) for name in PRECISIONS}
        return MeasuredRates(told["precision"], rates) if told["precision"] in PRECISIONS else None
    except (StorageError, KeyError, TypeError, ValueError):
        return None
