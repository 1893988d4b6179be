"""The price tag (costs with units and grades) of a compressed module, derived from that of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN = ("stored_parameters", "predict_flops")  # costs that are not measured again
SPEEDS = ("predict_per_second", "predict_latency_seconds")
FOLLOWING = ("energy_joules", "co2e_grams", "money")  # costs that grow with the time, at the run's mean power


def with_search_cost(costs: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any]]:
    """Return the price tag `costs` with `seconds` more in `total_seconds`, and energy, CO2e and money in proportion.

    A price tag without `total_seconds` stays as it is. Negative seconds take off what was charged.
    """
    made = {name: dict(cost) for name, cost in costs.items()}
    before = made.get("total_seconds", {}).get("value")
    if not before:
        return made
    made["total_seconds"]["value"] = before + seconds
    for name in FOLLOWING:
        if name in made and made[name]["value"] is not None:
            made[name]["value"] *= (before + seconds) / before
    return made


def compressed_costs(
    of: Mapping[str, Mapping[str, Any]], seconds: float, size: int, speed: float, latency: float
) -> dict[str, dict[str, Any]]:
    """Return the price tag of a compressed module: the run's `of`, with `seconds` of compression and `size` in bytes.

    `speed` and `latency` are ratios to the original, measured in alternation with it, so that other load on the machine
    affects both alike. The run's own values are multiplied by them.
    """
    costs = with_search_cost(of, seconds)
    for name, ratio in zip(SPEEDS, (speed, latency), strict=True):
        if name in costs and costs[name]["value"] is not None:
            costs[name] |= {"value": costs[name]["value"] * ratio, "grade": "model"}
    costs["stored_bytes"] = {"value": size, "unit": "bytes", "grade": "counter"}
    return costs | _unknown(costs, UNKNOWN)


def without_speeds(of: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a price tag without prediction speed and latency, which were measured with another program."""
    return {**of, **_unknown(of, SPEEDS)}


def _unknown(costs: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {name: {**costs[name], "value": None} for name in names if name in costs}
