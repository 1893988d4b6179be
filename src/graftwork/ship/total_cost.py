"""`price`: the total cost of ownership of a method or a module, for any number of predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from graftwork.config import JOULES_PER_KWH, Hardware, Prices
from graftwork.core.arguments import told_arguments
from graftwork.core.meter import GRADES
from graftwork.errors import ConfigError, StorageError
from graftwork.io.display import ShownJson
from graftwork.io.files import read_json
from graftwork.ship.amortised_cost import amortise
from graftwork.ship.cost_line import BANDS, Amount, CostLine, crossing, sum_amounts
from graftwork.ship.priced_rows import RESULT, PricedRow, PricedSource, priced_source
from graftwork.units import show

FORMAT = 1
TOLD = 10  # rows at most in the result's text display in Python
MONTHS_A_YEAR = 12
PERIODS: Mapping[str, float] = {"day": 365.25, "month": MONTHS_A_YEAR}  # how many of them a year has
SECONDS_PER_HOUR, SECONDS_PER_YEAR, BYTES_PER_GB = 3600, 365.25 * 86400, 1e9
WAYS = ("in_batches", "one_at_a_time")  # predictions in full batches, or in batches of one, as for single requests
QUANTITIES = ("seconds", "energy", "co2e", "money")
UNITS: Mapping[str, str] = {"seconds": "s", "energy": "J", "co2e": "g"}  # money: the price list's currency


@dataclass(frozen=True)
class Scenario:
    """The question: how many predictions, over how long, on which machine, at which prices."""

    predictions: float  # in all
    years: float  # that the module is stored
    hardware: Hardware
    elsewhere: bool = False  # the hardware is not the machine that the costs were measured on
    pretraining: Mapping[str, Amount] | None = None  # quantity -> each task's share of its cost

    @property
    def prices(self) -> Prices:
        """The price list."""
        return self.hardware.prices


@told_arguments
def price(
    source: str | Path | Sequence[str | Path],
    predictions: float,
    *,
    per: str | None = None,
    years: float = 1.0,
    prices: str | Path | None = None,
    hardware: str | None = None,
    pretraining: str | Path | None = None,
    tasks: int = 1,
) -> dict[str, Any]:
    """Return the total cost of `predictions` predictions, as JSON, for each row of `source`: boards, modules and runs.

    `source` is one folder or several. A row's cost is training (of all runs of it on a board), storage for `years`, and
    the predictions, in full batches and one at a time: in seconds, joules, g CO2e and money, with uncertainty bands.
    `crossings` has the number of predictions from which one row is cheaper than another.

    `predictions` is the total number, or the number per day or month if `per` is "day" or "month", for `years`.
    `prices` is a price list; without it money and CO2e are None. `hardware` names a machine of that list. `pretraining`
    is the folder of a pre-training, whose cost `tasks` tasks share.

    Raises `ConfigError` for a wrong number, a price without its date or a folder without a price tag; `StorageError`
    for a folder that is no board, module or run.
    """
    sources = [source] if isinstance(source, str | Path) else list(source)
    scenario = _scenario(predictions, per, years, prices, hardware)
    if pretraining is not None:
        shares = _shares(Path(pretraining), tasks, scenario)
        scenario = Scenario(scenario.predictions, years, scenario.hardware, scenario.elsewhere, shares)
    elif tasks != 1:
        raise ConfigError("tasks share a pre-training, and none is named", do="name it with --pretraining")
    found = [priced_source(Path(folder)) for folder in sources]
    rows = _named(sources, found)
    asked = {"predictions": predictions, "per": per, "years": years, "hardware": hardware, "tasks": tasks}
    lines = {way: {row.name: _parts(row, way, scenario) for row in rows} for way in WAYS}
    content = {
        "format": FORMAT,
        "predictions": scenario.predictions,
        "asked": asked,
        "prices": scenario.prices.as_json().get("prices", ""),
        "bands": dict(BANDS),
        "by": "money" if _priced(lines["in_batches"]) else "seconds",
        "chosen": next((one.chosen for one in found if one.chosen), None),
        "search_seconds": _search_seconds(found),
        "rows": [_row(row, {way: lines[way][row.name] for way in WAYS}, scenario) for row in rows],
        "crossings": [one for way in WAYS for one in _crossings(lines[way], way)],
        "left_out": [{"name": name, "reason": reason} for one in found for name, reason in one.left_out],
    }
    return ShownJson(content, _lines)


def _lines(content: Mapping[str, Any]) -> list[str]:
    """Return the total of each row in full batches, cheapest first, in at most a dozen lines."""
    by = content["by"]
    totals = [(row["name"], row["in_batches"][by]["total"]) for row in content["rows"]]
    totals.sort(key=lambda row: math.inf if row[1]["value"] is None else row[1]["value"])
    lines = [f"  {name}: {show(total['value'], total['unit'])}" for name, total in totals[:TOLD]]
    more = [f"  and {len(totals) - TOLD} more"] if len(totals) > TOLD else []
    return [f"{by} of {content['predictions']:,.0f} predictions in full batches, training included", *lines, *more]


def _scenario(
    predictions: float, per: str | None, years: float, prices: str | Path | None, hardware: str | None
) -> Scenario:
    for name, number in (("predictions", predictions), ("years", years)):
        if not 0 <= number < math.inf:
            raise ConfigError(f"{name} must be a number, 0 or more", got=f"{number:g}")
    if per is not None and per not in PERIODS:
        raise ConfigError("unknown period", got=repr(per), expected="day or month")
    if hardware is not None and prices is None:
        raise ConfigError("hardware is a machine of a price list, and none is named", do="name it with --prices")
    machine = Hardware(Prices.from_file(prices))
    if hardware is not None and prices is not None:
        machine = Hardware.from_file(prices, hardware)
    whole = predictions if per is None else predictions * PERIODS[per] * years
    return Scenario(whole, years, machine, elsewhere=hardware is not None)


def _named(sources: Sequence[str | Path], found: Sequence[PricedSource]) -> list[PricedRow]:
    """Return all rows; a name that occurs twice has its folder after it."""
    rows = [(str(folder), row) for folder, one in zip(sources, found, strict=True) for row in one.rows]
    names = [row.name for _, row in rows]
    told = [
        row if names.count(row.name) == 1 else PricedRow(**{**vars(row), "name": f"{row.name} ({folder})"})
        for folder, row in rows
    ]
    if len({row.name for row in told}) < len(told):
        raise ConfigError("a folder is named twice", got=", ".join(map(str, sources)), do="name each once")
    return told


def _shares(folder: Path, tasks: int, scenario: Scenario) -> dict[str, Amount]:
    """Return each task's share of a pre-training, by quantity."""
    if tasks < 1:
        raise ConfigError("tasks must be at least 1", got=str(tasks))
    if not (folder / RESULT).is_file():
        raise StorageError(
            "not a pre-training", where=str(folder), expected=f"a folder with {RESULT}", do="name a folder of runs/"
        )
    costs = amortise(read_json(folder / RESULT)["costs"], tasks)
    return _quantities(_measured(costs, "total_seconds", "s"), _measured(costs, "energy_joules", "J"), scenario)


def _measured(costs: Mapping[str, Mapping[str, Any]], name: str, unit: str) -> Amount:
    cost = costs.get(name, {"value": None, "grade": "model"})
    return Amount.graded(cost["value"], unit, cost["grade"])


def _quantities(seconds: Amount, joules: Amount, scenario: Scenario) -> dict[str, Amount]:
    """Return time, energy, CO2e and money of some work, from its seconds and joules on the measured machine."""
    prices, machine = scenario.prices, scenario.hardware
    if scenario.elsewhere:
        seconds = _as(seconds.times(1 / machine.times_as_fast), "s", "guess")
        joules = (
            Amount(None, "J", "guess") if machine.watts is None else _as(seconds.times(machine.watts), "J", "guess")
        )
    grams = prices.grams_per_kwh
    if prices.per_hour is not None:
        money = _priced_as(seconds.times(prices.per_hour / SECONDS_PER_HOUR), prices.currency)
    elif prices.per_kwh is not None:
        money = _priced_as(joules.times(prices.per_kwh * prices.pue / JOULES_PER_KWH), prices.currency)
    else:
        money = Amount(None, prices.currency, "model")
    co2e = (
        Amount(None, "g", "model")
        if grams is None
        else _priced_as(joules.times(grams * prices.pue / JOULES_PER_KWH), "g")
    )
    return {"seconds": seconds, "energy": joules, "co2e": co2e, "money": money}


def _priced_as(amount: Amount, unit: str) -> Amount:
    """Return an amount, already multiplied by a given price, in `unit`, with the same band, graded "model" at best."""
    return Amount(amount.value, unit, max("model", amount.grade, key=GRADES.index), amount.low, amount.high)


def _as(amount: Amount, unit: str, at_best: str = "model") -> Amount:
    """Return the amount in another unit, graded no better than `at_best`, with the band of that grade."""
    return Amount.graded(amount.value, unit, max(at_best, amount.grade, key=GRADES.index))


def _parts(row: PricedRow, way: str, scenario: Scenario) -> dict[str, dict[str, Amount]]:
    """Return, by quantity, the parts of a row's cost: training, storage, pre-training, and each prediction."""
    run, energy = _measured(row.costs, "total_seconds", "s"), _measured(row.costs, "energy_joules", "J")
    trained = _quantities(run.times(row.runs), energy.times(row.runs), scenario)
    each = _each_seconds(row, way)
    watts = None if energy.value is None or not run.value else energy.value / run.value
    joules = Amount(None, "J", energy.grade) if watts is None else _as(each.times(watts), "J", energy.grade)
    joules = _as(joules, "J")  # computed from the run's mean power
    once = _quantities(each, joules, scenario)
    stored = _storage(row, scenario)
    zero = {quantity: Amount(0.0, once[quantity].unit, "counter", 0.0, 0.0) for quantity in QUANTITIES}
    shares = scenario.pretraining if scenario.pretraining is not None and row.pretrained else zero
    return {
        quantity: {
            "training": trained[quantity],
            "storage": stored if quantity == "money" else zero[quantity],
            "pretraining": shares[quantity],
            "each": once[quantity],
        }
        for quantity in QUANTITIES
    }


def _each_seconds(row: PricedRow, way: str) -> Amount:
    if way == "one_at_a_time":
        return _measured(row.costs, "predict_latency_seconds", "s")
    speed = row.costs["predict_per_second"]
    return Amount.graded(1 / speed["value"] if speed["value"] else None, "s", speed["grade"])


def _storage(row: PricedRow, scenario: Scenario) -> Amount:
    """Return the money for keeping the module; unknown without its price."""
    prices, size = scenario.prices, _measured(row.costs, "stored_bytes", "bytes")
    if prices.per_gb_month is None:
        return Amount(None, prices.currency, "model")
    month = size.times(prices.per_gb_month / BYTES_PER_GB)
    return _priced_as(month.times(MONTHS_A_YEAR * scenario.years), prices.currency)


def line_of(name: str, parts: Mapping[str, Amount]) -> CostLine:
    """Return the cost line of a row from its parts; storage is left out if its price is unknown."""
    fixed = [
        parts["training"],
        parts["pretraining"],
        *([parts["storage"]] if parts["storage"].value is not None else []),
    ]
    return CostLine(name, sum_amounts(fixed), parts["each"])


def _row(row: PricedRow, ways: Mapping[str, Mapping[str, Mapping[str, Amount]]], scenario: Scenario) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": row.name,
        "task": row.task,
        "metric": row.metric,
        "score": row.score,
        "runs": row.runs,
    }
    told["above_floor"] = row.above_floor
    told["stored_bytes"] = row.costs.get("stored_bytes", {}).get("value")
    for way, by_quantity in ways.items():
        told[way] = {}
        for quantity, parts in by_quantity.items():
            line = line_of(row.name, parts)
            sums = {"fixed": line.fixed, "predictions": line.each.times(scenario.predictions)}
            whole = {**parts, **sums, "total": line.at(scenario.predictions)}
            told[way][quantity] = {name: asdict(amount) for name, amount in whole.items()}
        busy = line_of(row.name, by_quantity["seconds"]).each.times(scenario.predictions).value
        time = SECONDS_PER_YEAR * scenario.years
        told[way]["machines"] = None if busy is None or not time else busy / time
    return told


def _crossings(rows: Mapping[str, Mapping[str, Mapping[str, Amount]]], way: str) -> list[dict[str, Any]]:
    found = []
    for quantity in QUANTITIES:
        lines = [line_of(name, parts[quantity]) for name, parts in rows.items()]
        for one, other in combinations(lines, 2):
            at = crossing(one, other)
            if at is not None:
                found.append({"way": way, "quantity": quantity} | asdict(at))
    return found


def _priced(rows: Mapping[str, Mapping[str, Mapping[str, Amount]]]) -> bool:
    return all(parts["money"]["each"].value is not None for parts in rows.values())


def _search_seconds(found: Sequence[PricedSource]) -> float | None:
    known = [one.search_seconds for one in found if one.search_seconds is not None]
    return sum(known) if known else None
