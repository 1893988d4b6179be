"""The page of a price at scale: one self-contained HTML file in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from graftwork.compare.chart import COLOURS, Axis, Series, draw
from graftwork.compare.leaderboard_report import page
from graftwork.compare.page_table import PageTable, named
from graftwork.compare.plots import price_axis
from graftwork.compare.price_lines import (
    TITLES,
    WAY_NAMES,
    answer_lines,
    band,
    crossing_sentences,
    legend,
    number,
    table_columns,
)
from graftwork.units import show

HEIGHT, POINTS = 480, 60
DECADES = 3  # drawn on either side of the number that was asked for


def render_price_page(content: Mapping[str, Any]) -> str:
    """Return the page's HTML. All text from data is escaped, in the page and in the charts."""
    ways = [
        {
            "name": name,
            "chart": cost_chart(content, way),
            "table": _table(f"Costs {name}", table_columns(content, way)),
            "crossings": crossing_sentences(content, way),
        }
        for way, name in WAY_NAMES.items()
    ]
    told = {
        "title": f"{number(content['predictions'])} predictions",
        "answer": answer_lines(content),
        "ways": ways,
        "legend": legend(content),
        "left_out": content["left_out"],
    }
    return page("price.html.j2", told)


def _table(label: str, columns: Sequence[Sequence[str]]) -> PageTable:
    """Return the table; the cheapest row is on top."""
    titles, *rows = zip(*columns, strict=True)
    return named(label, titles, rows)


def cost_chart(content: Mapping[str, Any], way: str) -> Markup:
    """Return total cost against the number of predictions, both on log axes: a line for each row, by money or time.

    The diamond on a line marks the requested number of predictions, with the band of its cost.
    """
    by, asked = content["by"], max(content["predictions"], 1.0)
    low, high = max(0.0, math.log10(asked) - DECADES), math.log10(asked) + DECADES
    counts = [10 ** (low + (high - low) * at / (POINTS - 1)) for at in range(POINTS)]
    series: list[Series] = []
    for place, row in enumerate(content["rows"]):
        parts = row[way][by]
        fixed, each, whole = (parts[name]["value"] for name in ("fixed", "each", "total"))
        if fixed is None or each is None or not fixed + each:
            continue  # unknown, or free: a log axis has no zero
        colour = COLOURS[place % len(COLOURS)]
        costs = [fixed + count * each for count in counts]
        series.append(Series(counts, costs, name=row["name"], colour=colour, mark="", line="solid"))
        title = f"{row['name']}\n{show(whole, parts['total']['unit'])} ({band(parts['total'])})"
        ends = (parts["total"]["low"], parts["total"]["high"])
        series.append(Series([asked], [whole], [title], colour=colour, mark="diamond", size=5, spans=[ends]))
    values = [value for one in series for value in (*one.y, *(end for span in one.spans for end in span)) if value > 0]
    unit = content["rows"][0][way][by]["total"]["unit"]
    y = price_axis(f"total {TITLES[by]}", values or [1.0, 10.0], min(values, default=1.0), unit)
    x = Axis(
        "predictions", counts[0], counts[-1], [(10.0**at, number(10.0**at)) for at in _powers(low, high)], log=True
    )
    return draw(series, x, y, HEIGHT, f"total {TITLES[by]} against the number of predictions, {WAY_NAMES[way]}")


def _powers(low: float, high: float) -> range:
    return range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
