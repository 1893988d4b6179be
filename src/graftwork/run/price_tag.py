"""The price tag of a run: every registered meter, started before the first work and read after the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meter, Readings, Stops, meaning_of
from graftwork.core.run import RunResult
from graftwork.errors import UnknownName
from graftwork.registry import meters


def begin_all() -> dict[str, Any]:
    """Start every meter; return the marks for `read_costs`."""
    return {name: meters.get(name)().begin() for name in meters.names()}


def read_stopping_meters(marks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the marks for `read_costs` after a phase, with the meters that implement `Stops` read at this point."""
    parts: dict[str, Meter] = {name: meters.get(name)() for name in marks}
    can_stop = {name: meter for name, meter in parts.items() if isinstance(meter, Stops)}
    return {name: can_stop[name].stop(mark) if name in can_stop else mark for name, mark in marks.items()}


def read_costs(marks: Mapping[str, Any], readings: Readings, prices: Prices) -> dict[str, Cost]:
    """Return the price tag: a cost per meter of `marks`, sorted by name. A meter sees only the costs that it `needs`.

    Raises `UnknownName` if a needed cost has no meter, `graphlib.CycleError` if two meters need each other.
    """
    costs: dict[str, Cost] = {}
    for name, meter in by_need({name: meters.get(name)() for name in marks}).items():
        needed = {need: costs[need] for need in meter.needs}
        costs[name] = meter.end(marks[name], readings, needed, prices)
    return {name: costs[name] for name in sorted(costs)}


def with_prices(result: RunResult, prices: Prices) -> RunResult:
    """Return a finished run with its money and CO2e recomputed with `prices`. Energy stays as it was measured."""
    costs = dict(result.costs)
    for name in (name for name in result.costs if meaning_of(name).of_prices):
        meter = meters.get(name)()
        costs[name] = meter.end(None, Readings(), {need: costs[need] for need in meter.needs}, prices)
    kept = {name: value for name, value in result.environment.items() if name != "prices"}
    return replace(result, costs=costs, environment=kept | prices.as_json())


def by_need(parts: Mapping[str, Meter]) -> dict[str, Meter]:
    """Return the same meters, each after those it needs."""
    order = TopologicalSorter({name: meter.needs for name, meter in parts.items()}).static_order()
    sorted_parts = {}
    for name in order:
        if name not in parts:
            raise UnknownName("cost that a meter needs", name, parts)
        sorted_parts[name] = parts[name]
    return sorted_parts
