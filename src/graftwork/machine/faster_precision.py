"""Whether bf16 is the faster arithmetic of this processor: measured once, and kept, so that runs keep their ids."""

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
from graftwork.io.locks import held
from graftwork.machine.product_rates import PRECISIONS, product_rates

MUCH_FASTER = 1.15  # what fp32 must be, times bf16, to be taken
SHAPE = (128, 384, 1536)  # (tokens, in, out): a short batch, whose ratio is that of a long one (docs/log.md)
SECONDS = 0.08


@dataclass(frozen=True)
class Weighed:
    """What was measured on one thread, and what followed from it."""

    precision: str  # "fp32" or "bf16"
    flop_per_second: Mapping[str, float]  # of both

    @classmethod
    def of(cls, rates: Mapping[str, float]) -> Weighed:
        """The faster one; where they are near each other bf16, which takes half the memory."""
        return cls("fp32" if rates["fp32"] >= MUCH_FASTER * rates["bf16"] else "bf16", rates)


def faster_precision(machine: Mapping[str, Any]) -> str:
    """The word for whichever of fp32 and bf16 is faster; `machine` is all that a measurement depends on, as JSON.

    Measured by the first process that asks, in a tenth of a second, and read by all others of this user. Where nothing
    can be kept every process measures for itself.
    """
    return _weighed(place_of(machine), canonical(machine)).precision


def kept(machine: Mapping[str, Any]) -> Weighed | None:
    """What is kept of this machine; None where it was not measured yet, or what is there can't be read."""
    place = place_of(machine)
    return _read(place) if place is not None else None


def place_of(machine: Mapping[str, Any]) -> Path | None:
    """The file that keeps it, in the user's usual cache whatever a command names: one answer for all commands.

    None where this user has no folder.
    """
    try:
        return cache_folder().parent / "precision" / f"{digest(machine)[:16]}.json"
    except RuntimeError:  # neither variables nor a home
        return None


def measured() -> Weighed:
    """On one thread: several wait for one another where others use the cores, which tells nothing of the arithmetic."""
    return Weighed.of(product_rates(SECONDS, shape=SHAPE, threads=1))


@functools.cache
def _weighed(place: Path | None, machine: str) -> Weighed:
    """Asked once per process and place, so that a process has one answer."""
    found = _read(place) if place is not None else None
    if found is not None:
        return found
    if place is not None:
        with contextlib.suppress(OSError, StorageError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with held(place.parent / ".lock"):
                found = _read(place)  # of another process, meanwhile
                if found is None:
                    found = measured()
                    write_json(place, asdict(found) | {"machine": json.loads(machine)})
    return found or measured()


def _read(place: Path) -> Weighed | None:
    """None for what is missing, torn or nothing of ours."""
    try:
        told = read_json(place)
        rates = {name: float(told["flop_per_second"][name]) for name in PRECISIONS}
        return Weighed(told["precision"], rates) if told["precision"] in PRECISIONS else None
    except (StorageError, KeyError, TypeError, ValueError):
        return None
