"""What further seconds add to a price tag."""

from __future__ import annotations

import pytest

from graftwork.ship.compressed_costs import with_search_cost


def test_energy_grows_with_the_time_and_what_was_charged_can_be_taken_off() -> None:
    tag = {"total_seconds": {"value": 10.0}, "energy_joules": {"value": 200.0}, "money": {"value": None}}
    more = with_search_cost(tag, 5.0)
    assert [more[name]["value"] for name in tag] == [15.0, 300.0, None]
    assert tag["total_seconds"]["value"] == 10.0
    back = with_search_cost(more, -5.0)
    assert back["energy_joules"]["value"] == pytest.approx(200.0) and back["total_seconds"]["value"] == 10.0
    assert with_search_cost({"total_seconds": {"value": None}}, 5.0) == {"total_seconds": {"value": None}}
