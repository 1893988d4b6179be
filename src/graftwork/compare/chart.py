"""Charts as static SVG: they need no script and load nothing, follow the page's colours, and print as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from markupsafe import Markup

WIDTH = 800  # width of a chart in SVG pixels; the page scales it
LETTER = 7.0  # average width of a letter, in pixels, at the charts' font size
COLOURS = tuple(f"var(--chart{at})" for at in range(8))
INK, ACCENT, FAINT = "var(--ink)", "var(--accent)", "var(--faint)"
_TOP, _RIGHT, _BOTTOM = 16.0, 32.0, 54.0  # margins


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with `ticks` as (value, text); `log`: a log axis, whose values are positive."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]] | None = None  # None: round numbers; ticks outside the axis are left out
    log: bool = False
    grid: bool = True

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at `low`, 1 at `high`."""
        low, high, at = (math.log10(one) if self.log else one for one in (self.low, self.high, value))
        return (at - low) / (high - low)


@dataclass(frozen=True)
class Label:
    """Text beside a mark; its centre is `right` pixels to the right of the mark and `up` pixels above it."""

    text: str
    right: float
    up: float
    colour: str = INK


@dataclass(frozen=True)
class Series:
    """N points in one style."""

    x: Sequence[float]
    y: Sequence[float]
    titles: Sequence[str] = ()  # one per point: its tooltip
    name: str = ""  # in the legend; empty: not listed
    colour: str = FAINT
    mark: str = "dot"  # "dot", "diamond", "open" (a diamond that is not filled), "specks" (bare dots), or "" for none
    line: str = ""  # "solid", "dotted", "steps" (across, then up or down), or "" for none
    size: float = 3.0  # radius of the marks, in pixels
    opacity: float = 1.0
    spans: Sequence[tuple[float, float]] = ()  # an interval (low, high) per point, of y or, with `across`, of x
    across: bool = False
    labels: Sequence[Label] = ()  # one per point


def draw(series: Sequence[Series], x: Axis, y: Axis, height: int, about: str, width: int = WIDTH) -> Markup:
    """Return a chart as SVG, with a legend of the named series; `about` describes it for screen readers.

    `width` and `height` are in pixels. Points outside the axes are left out, intervals are cut. All text is escaped.
    """
    frame = _Frame.around(x, y, height, width)
    parts = [_axes(frame), *(_series(one, frame) for one in series)]
    picture = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        width, height, about, Markup("").join(parts)
    )
    return picture + _legend([one for one in series if one.name])


@dataclass(frozen=True)
class _Frame:
    """The inner rectangle of a chart, in pixels from its upper left corner."""

    x: Axis
    y: Axis
    left: float
    width: float
    height: float

    @classmethod
    def around(cls, x: Axis, y: Axis, height: int, width: int = WIDTH) -> _Frame:
        longest = max((len(text) for _, text in ticks_of(y)), default=0)
        left = 44 + LETTER * min(longest, 48)
        return cls(x, y, left, width - left - _RIGHT, height - _TOP - _BOTTOM)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return a point in pixels, cut at the frame."""
        across, up = (min(1.0, max(0.0, share)) for share in (self.x.share(x), self.y.share(y)))
        return round(self.left + across * self.width, 1), round(_TOP + (1 - up) * self.height, 1)

    def holds(self, x: float, y: float) -> bool:
        """Return whether the point is inside."""
        return all(-1e-9 <= share <= 1 + 1e-9 for share in (self.x.share(x), self.y.share(y)))


def inner_size(y: Axis, height: int) -> tuple[float, float]:
    """Return the width and height of the rectangle inside the axes of a chart, in pixels."""
    frame = _Frame.around(y, y, height)
    return frame.width, frame.height


def ticks_of(axis: Axis) -> list[tuple[float, str]]:
    """Return the ticks of an axis that lie on it, as (value, text): about six round numbers, if none are given."""
    ticks = axis.ticks
    if ticks is None:
        raw = (axis.high - axis.low) / 6
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw)
        first, last = math.ceil(axis.low / step), math.floor(axis.high / step)
        ticks = [(at * step, f"{round(at * step, 10):,g}") for at in range(first, last + 1)]
    return [(value, text) for value, text in ticks if -1e-9 <= axis.share(value) <= 1 + 1e-9]


def _axes(frame: _Frame) -> Markup:
    parts = []
    bottom, right = _TOP + frame.height, frame.left + frame.width
    for value, text in ticks_of(frame.x):
        at, _ = frame.place(value, frame.y.low)
        if frame.x.grid:
            parts.append(_line([(at, _TOP), (at, bottom)], "grid"))
        for number, line in enumerate(text.split("\n")):
            parts.append(_text(line, at, bottom + 18 + 15 * number, "middle"))
    for value, text in ticks_of(frame.y):
        _, at = frame.place(frame.x.low, value)
        if frame.y.grid:
            parts.append(_line([(frame.left, at), (right, at)], "grid"))
        parts.append(_text(text, frame.left - 8, at + 4, "end"))
    parts.append(_line([(frame.left, _TOP), (frame.left, bottom), (right, bottom)], "axis"))
    parts.append(_text(frame.x.title, frame.left + frame.width / 2, bottom + 46, "middle", "title"))
    if frame.y.title:
        middle = _TOP + frame.height / 2
        turned = Markup('<text class="title" text-anchor="middle" transform="translate(14 {}) rotate(-90)">{}</text>')
        parts.append(turned.format(round(middle, 1), frame.y.title))
    return Markup("").join(parts)


def _series(one: Series, frame: _Frame) -> Markup:
    parts = []
    if one.line:
        parts.append(_joined(one, frame))
    if one.mark == "specks":
        parts.append(_specks(one, frame))
    for at, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
        if not frame.holds(x, y):
            continue
        if one.spans:
            parts.append(_span(one, one.spans[at], x, y, frame))
        spot = frame.place(x, y)
        if one.mark and one.mark != "specks":
            title = Markup("<title>{}</title>").format(one.titles[at]) if one.titles else ""
            parts.append(_mark(one, spot, title))
        if one.labels:
            label = one.labels[at]
            written = _text(label.text, spot[0] + label.right, spot[1] - label.up + 4, "middle", colour=label.colour)
            parts.append(written)
    look = Markup('<g style="color:{}"{}>{}</g>')
    faded = Markup(' opacity="{:g}"').format(one.opacity) if one.opacity < 1 else ""
    return look.format(one.colour, faded, Markup("").join(parts)) if parts else Markup("")


def _specks(one: Series, frame: _Frame) -> Markup:
    """Return all points as one path with round line caps as the dots: a tenth of the bytes of circles."""
    places = [frame.place(x, y) for x, y in zip(one.x, one.y, strict=True) if frame.holds(x, y)]
    return Markup('<path class="specks" stroke-width="{:g}" d="{}"/>').format(
        2 * one.size, "".join(f"M{x:g} {y:g}h0" for x, y in places)
    )


def _joined(one: Series, frame: _Frame) -> Markup:
    places = [frame.place(x, y) for x, y in zip(one.x, one.y, strict=True) if frame.holds(x, y)]
    if one.line == "steps":
        corners = [((x, level), (x, y)) for (_, level), (x, y) in pairwise(places)]
        places = [*places[:1], *chain.from_iterable(corners)]
    return _line(places, "dotted" if one.line == "dotted" else "solid")


def _span(one: Series, span: tuple[float, float], x: float, y: float, frame: _Frame) -> Markup:
    ends = [frame.place(end, y) if one.across else frame.place(x, end) for end in span]
    return _line(ends, "span")


def _mark(one: Series, spot: tuple[float, float], title: Markup | str) -> Markup:
    x, y = spot
    if one.mark == "dot":
        made = Markup('<circle class="mark dot" cx="{:g}" cy="{:g}" r="{:g}">{}</circle>')
        return made.format(x, y, one.size, title)
    corners = (
        f"M{x - one.size:g} {y:g}l{one.size:g} {-one.size:g}l{one.size:g} {one.size:g}l{-one.size:g} {one.size:g}z"
    )
    return Markup('<path class="mark {}" d="{}">{}</path>').format(one.mark, corners, title)


def _line(places: Sequence[tuple[float, float]], sort: str) -> Markup:
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in places) if places else ""
    return Markup('<path class="{}" d="{}"/>').format(sort, path)


def _text(text: str, x: float, y: float, anchor: str, sort: str = "", colour: str = "") -> Markup:
    style = Markup(' style="fill:{}"').format(colour) if colour else ""
    sort = Markup(' class="{}"').format(sort) if sort else ""
    made = Markup('<text{}{} x="{:g}" y="{:g}" text-anchor="{}">{}</text>')
    return made.format(sort, style, round(x, 1), round(y, 1), anchor, text)


def _legend(series: Sequence[Series]) -> Markup:
    if not series:
        return Markup("")
    sample = Markup('<svg viewBox="0 0 28 8" aria-hidden="true" style="color:{}">{}</svg>')
    lines = (_line([(0, 4), (28, 4)], "dotted" if one.line == "dotted" else "solid") for one in series)
    items = [
        Markup("<li>{}{}</li>").format(sample.format(one.colour, line), one.name)
        for one, line in zip(series, lines, strict=True)
    ]
    return Markup('<ul class="chart-legend">{}</ul>').format(Markup("").join(items))
