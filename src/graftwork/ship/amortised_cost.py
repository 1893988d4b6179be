"""The share of a pre-training's cost that each task building on it bears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.core.meter import meaning_of

COUNTS = (1, 10, 100, 1000)


def amortise(costs: Mapping[str, Mapping[str, Any]], tasks: int) -> dict[str, dict[str, Any]]:
    """Divide the costs that are paid once by the number of tasks; unknown values stay None."""
    assert tasks > 0
    return {
        name: {**cost, "value": None if cost["value"] is None else cost["value"] / tasks}
        for name, cost in costs.items()
        if meaning_of(name).shared
    }
