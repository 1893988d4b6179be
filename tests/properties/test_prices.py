"""Price tags add up: phases to the whole, parts of a phase to the phase, and what was charged to both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase, Readings
from graftwork.core.profile import PHASES, REST, Profile
from graftwork.meters import energy_joules
from graftwork.registry import meters

SECONDS = st.floats(0, 1e6)
PHASE = st.tuples(SECONDS, SECONDS)
NAMES = ("load", "fit", "evaluate", "save")
ADD_UP = ("total_seconds", "energy_joules", "money", "co2e_grams")


@pytest.fixture(autouse=True, scope="module")
def without_counters() -> object:
    """Energy is guessed of seconds: counters of the processor tell of this process, and of no reading here."""
    patch = pytest.MonkeyPatch()
    patch.setattr(energy_joules, "read_zones", dict)
    yield patch
    patch.undo()


def readings(phases: dict[str, tuple[float, float]], charged: tuple[float, float] = (0.0, 0.0)) -> Readings:
    return Readings({name: Phase(*seconds) for name, seconds in phases.items()}, Phase(*charged))


def price_tag(given: Readings, prices: Prices) -> dict[str, Cost]:
    costs: dict[str, Cost] = {}
    for name in ("total_seconds", "train_seconds", "train_cpu_seconds", "energy_joules", "money", "co2e_grams"):
        meter = meters.get(name)()
        costs[name] = meter.end(meter.begin(), given, costs, prices)
    return costs


def value(costs: dict[str, Cost], name: str) -> float:
    found = costs[name].value
    assert found is not None
    return found


PRICES = st.builds(
    lambda per_hour, grams, watts, idle: Prices(currency="EUR", per_hour=per_hour, grams_per_kwh=grams,
                                                watts_per_core=watts, idle_watts=idle),
    st.floats(0, 100), st.floats(0, 1000), st.floats(0, 100), st.floats(0, 100),
)  # fmt: skip


@given(phases=st.dictionaries(st.sampled_from(NAMES), PHASE), charged=PHASE, prices=PRICES)
def test_phases_and_what_is_charged_add_up(
    phases: dict[str, tuple[float, float]], charged: tuple[float, float], prices: Prices
) -> None:
    whole = price_tag(readings(phases, charged), prices)
    assert value(whole, "total_seconds") == pytest.approx(sum(wall for wall, _ in phases.values()) + charged[0])
    fit = phases.get("fit", (0.0, 0.0))
    assert value(whole, "train_seconds") == pytest.approx(fit[0] + charged[0])
    assert value(whole, "train_cpu_seconds") == pytest.approx(fit[1] + charged[1])
    parts = [price_tag(readings({name: seconds}), prices) for name, seconds in phases.items()]
    parts.append(price_tag(readings({}, charged), prices))
    for name in ADD_UP:
        assert value(whole, name) == pytest.approx(sum(value(part, name) for part in parts), rel=1e-9, abs=1e-9)


@given(phases=st.dictionaries(st.sampled_from(NAMES), PHASE, min_size=1), more=PHASE, prices=PRICES, data=st.data())
def test_a_longer_phase_never_costs_less(
    phases: dict[str, tuple[float, float]], more: tuple[float, float], prices: Prices, data: st.DataObject
) -> None:
    before, after = readings(phases), readings(phases)
    after.phases[data.draw(st.sampled_from(sorted(phases)))].add(Phase(*more))
    small, large = price_tag(before, prices), price_tag(after, prices)
    assert all(value(large, name) >= value(small, name) for name in small)


@given(steps=st.lists(st.tuples(st.sampled_from(PHASES), st.floats(0, 100), st.floats(0, 100))), end=st.floats(0, 100))
def test_a_profile_charges_every_second_once(steps: list[tuple[str, float, float]], end: float) -> None:
    now = [1000.0]
    profile = Profile(lambda: now[0])
    expected = dict.fromkeys((*PHASES, REST), 0.0)
    for name, outside, inside in steps:
        now[0] += outside
        expected[REST] += outside
        with profile.phase(name):
            now[0] += inside / 2
            with profile.phase("write"):
                now[0] += inside
            now[0] += inside / 2
        expected[name] += inside
        expected["write"] += inside
    now[0] += end
    expected[REST] += end
    found = profile.read()
    assert sum(found.values()) == pytest.approx(now[0] - 1000.0)
    assert all(found.get(name, 0.0) == pytest.approx(seconds, abs=1e-6) for name, seconds in expected.items())
