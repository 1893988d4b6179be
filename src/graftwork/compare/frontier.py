"""The Pareto frontier: the methods that nothing else beats in both score and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graftwork.compare.statistics import DECIMALS
from graftwork.core.meter import meaning_of

DEFAULT_COST = "train_seconds"


@dataclass(frozen=True)
class Point:
    """A method's place: score up, cost down."""

    name: str
    score: float
    cost: float


def points(rows: Iterable[Mapping[str, Any]], metric: str, cost: str = DEFAULT_COST) -> list[Point]:
    """The rows of a leaderboard that ran through and whose cost is known, by its headline `metric`.

    Runs that failed count, as they do in the order of the rows; boards of before don't say what they count as.
    """
    found, sign = [], -1 if meaning_of(cost).more_is_better else 1
    for row in rows:
        score = row.get("counted")
        if score is None:
            score = row["scores"].get(metric, {}).get("mean")
        price = row["costs"].get(cost, {}).get("value")
        if row["status"] == "ok" and score is not None and price is not None:
            found.append(Point(row["method"], round(score, DECIMALS), sign * price))
    return found


def frontier(candidates: Sequence[Point]) -> list[str]:
    """Names of the points that no other dominates, cheapest first. Equal points are all kept."""
    kept = [point for point in candidates if not any(_dominates(other, point) for other in candidates)]
    return [point.name for point in sorted(kept, key=lambda point: (point.cost, point.score))]


def _dominates(a: Point, b: Point) -> bool:
    """`a` is nowhere worse than `b`, and better in score or in cost."""
    return a.score >= b.score and a.cost <= b.cost and (a.score > b.score or a.cost < b.cost)
