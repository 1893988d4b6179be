"""Costs as straight lines over the number of predictions: a fixed part plus a part for each; and their crossings.

Everything here is arithmetic on numbers that were measured elsewhere. A value that is unknown stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from graftwork.core.meter import GRADES

# The band of a value by its grade, which is how the value is known: from value / factor to value x factor.
BANDS = {
    "meter": 1.1,  # two runs of one program on one machine differ by some percent in time
    "counter": 1.05,  # the processor's energy counters; a count of bytes is exact
    "model": 1.3,  # computed from other costs, as the energy of a prediction from the power of the run
    "guess": 2.0,  # assumed, such as watts per core
}


@dataclass(frozen=True)
class Amount:
    """A cost with its uncertainty band, from `low` to `high`; its grade decides how wide the band is."""

    value: float | None  # None: unknown
    unit: str  # "s", "J", "g", a currency
    grade: str
    low: float | None = None
    high: float | None = None

    @classmethod
    def graded(cls, value: float | None, unit: str, grade: str) -> Amount:
        """Return a value with the band of its grade."""
        if value is None:
            return cls(None, unit, grade)
        return cls(value, unit, grade, value / BANDS[grade], value * BANDS[grade])

    def times(self, count: float) -> Amount:
        """Return `count` such amounts; `count` is 0 or more and exactly known."""
        if self.value is None or self.low is None or self.high is None:
            return self
        return Amount(count * self.value, self.unit, self.grade, count * self.low, count * self.high)


def sum_amounts(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of one or more amounts in one unit, unknown if one is; its grade is the worst of nonzero parts.

    Lows and highs are added: the parts may all be wrong in the same direction.
    """
    parts = list(amounts)
    assert parts and len({part.unit for part in parts}) == 1, "amounts of one unit are added"
    counted = [part for part in parts if part.value != 0] or parts
    grade = max((part.grade for part in counted), key=GRADES.index)
    known = [(part.value, part.low, part.high) for part in parts]
    sums = [None if None in column else sum(column) for column in zip(*known, strict=True)]
    return Amount(sums[0], parts[0].unit, grade, sums[1], sums[2])


@dataclass(frozen=True)
class CostLine:
    """The cost of a row against the number of predictions N: `fixed` + N x `each`."""

    name: str
    fixed: Amount
    each: Amount

    def at(self, predictions: float) -> Amount:
        """Return the cost of N predictions, what is paid once included."""
        return sum_amounts((self.fixed, self.each.times(predictions)))


@dataclass(frozen=True)
class Crossing:
    """The crossing of two rows' lines: `below` is cheaper for fewer than `at` predictions, `above` for more."""

    unit: str
    below: str
    above: str
    at: float | None  # None: they never cross, and `below` is never more expensive
    open_from: float | None  # from here to `open_to` the bands overlap: which is cheaper is open
    open_to: float | None  # None: there is no upper end; if `open_from` is None too, the bands never overlap


def crossing(one: CostLine, other: CostLine) -> Crossing | None:
    """Return where two lines cross; None if a number is unknown, the units differ, or the lines are the same.

    Lines that meet only at 0 predictions cross there: `at` is 0. Parallel lines never do.
    """
    numbers = (one.fixed.value, one.each.value, other.fixed.value, other.each.value)
    if one.fixed.unit != other.fixed.unit or one.each.unit != other.each.unit or None in numbers:
        return None
    fixed_one, each_one, fixed_other, each_other = (float(number or 0.0) for number in numbers)
    if (fixed_one, each_one) == (fixed_other, each_other):
        return None
    if fixed_one == fixed_other:
        below, above = (one, other) if each_one > each_other else (other, one)
    else:
        below, above = (one, other) if fixed_one < fixed_other else (other, one)
    rise, gap = (
        float(below.each.value or 0.0) - float(above.each.value or 0.0),
        float(above.fixed.value or 0.0) - float(below.fixed.value or 0.0),
    )
    at = gap / rise if rise > 0 else None
    return Crossing(one.fixed.unit, below.name, above.name, at, *_open(below, above))


def _open(below: CostLine, above: CostLine) -> tuple[float | None, float | None]:
    """Return the interval of N where the bands overlap: `(None, None)` if they never do; an end of None is open."""
    ends = [_positive(_gap(below, above)), _positive(_gap(above, below))]
    low, high = max(end[0] for end in ends), min(end[1] for end in ends)
    return (None, None) if low >= high else (low, high if high < math.inf else None)


def _gap(high: CostLine, low: CostLine) -> tuple[float, float]:
    """Return the upper end of one band minus the lower end of the other, as a line: (value at 0, slope)."""
    return (
        float(high.fixed.high or 0.0) - float(low.fixed.low or 0.0),
        float(high.each.high or 0.0) - float(low.each.low or 0.0),
    )


def _positive(line: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of N >= 0 in which the line (value at 0, slope) is positive; an empty one if it never is."""
    start, rise = line
    if rise > 0:
        return max(0.0, -start / rise), math.inf
    if start <= 0:
        return 0.0, 0.0
    return 0.0, -start / rise if rise < 0 else math.inf
