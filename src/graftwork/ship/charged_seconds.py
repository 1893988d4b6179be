"""A price tag with further seconds of work: what compressing a module adds to the price of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOLLOWING = ("energy_joules", "co2e_grams", "money")  # costs that grow with the time, at the run's mean power


def charged(costs: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any]]:
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
