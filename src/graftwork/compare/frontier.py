"""The Pareto frontier: the methods that no other dominates in score and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graftwork.compare.statistics import DECIMALS
from graftwork.core.meter import meaning_of

DEFAULT_COST = "train_seconds"


@dataclass(frozen=True)
class Point:
    """A method's score (higher is better) and cost (lower is better)."""

    name: str
    score: float
    cost: float


def points(rows: Iterable[Mapping[str, Any]], metric: str, cost: str = DEFAULT_COST) -> list[Point]:
    """Return a point for each finished row of a leaderboard with a known cost, by its headline `metric`.

    Scores count failed runs, as the order of the rows does; on older boards, scores without failed runs are used. A
    cost is negated if more of it is better, such as predictions per second.
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
    """Return the names of the points that no other dominates, cheapest first. Equal points are all kept."""
    kept = [point for point in candidates if not any(_dominates(other, point) for other in candidates)]
    return [point.name for point in sorted(kept, key=lambda point: (point.cost, point.score))]


def _dominates(a: Point, b: Point) -> bool:
    """Return whether `a` is at least as good as `b` in score and cost, and better in one."""
    return a.score >= b.score and a.cost <= b.cost and (a.score > b.score or a.cost < b.cost)
