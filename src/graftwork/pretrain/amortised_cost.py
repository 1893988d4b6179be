"""What a pre-training costs each of the tasks that build on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.core.meter import meaning_of

COUNTS = (1, 10, 100, 1000)


def amortised(costs: Mapping[str, Mapping[str, Any]], tasks: int) -> dict[str, dict[str, Any]]:
    """The costs that are paid once, divided over `tasks` of them; what is unknown stays so."""
    assert tasks > 0
    return {
        name: {**cost, "value": None if cost["value"] is None else cost["value"] / tasks}
        for name, cost in costs.items()
        if meaning_of(name).shared
    }
