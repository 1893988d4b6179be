"""Formatting and parsing of quantities. Internally all are in base units: seconds, bytes, joules, fractions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from graftwork.errors import ConfigError, clip

OF_ONE_CLASS = ("f1",)  # metrics that score only the positive class
ERROR_RATES = {"word_accuracy": "wer", "character_accuracy": "cer"}  # metric -> usual name of 1 - score
LONGEST_CLASS = 40  # maximum characters of a class name that are shown with a score
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}  # powers of 1,000, or of 1,024 with an i
_CARRIES = 0.9995  # share of a unit from which a value, rounded to three digits, is shown as 1 of that unit
_SPENT = {  # unit as the user writes it -> (factor, SI unit)
    "s": (1.0, "s"), "min": (60.0, "s"), "h": (3600.0, "s"), "d": (86400.0, "s"), "w": (604800.0, "s"),
    "J": (1.0, "J"), "kJ": (1e3, "J"), "MJ": (1e6, "J"), "Wh": (3.6e3, "J"), "kWh": (3.6e6, "J"),
}  # fmt: skip
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")


def show(value: float | None, unit: str) -> str:
    """Format `value` with three significant digits and a prefix: `show(4.7e12, "FLOP")` is `4.7 TFLOP`; None is `–`."""
    if value is None:
        return "–"
    if unit == "s":
        return duration(value)
    if unit == "bytes":
        return with_prefix(value, "B")
    if unit in ("FLOP", "J", "parameters"):
        return with_prefix(value, "" if unit == "parameters" else unit)
    return f"{_digits(value)} {unit}".strip()


def with_prefix(value: float, unit: str) -> str:
    """Format a value with decimal prefixes (k = 1,000), as is usual for parameters, FLOPs and file sizes."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= _CARRIES * factor:
            return f"{_digits(value / factor)} {prefix}{unit}".strip()
    return f"{_digits(value)} {unit}".strip()


def several(count: int, noun: str) -> str:
    """Format a count with its noun: `1 row`, `2,000 rows`, `3 passes`."""
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


def duration(seconds: float) -> str:
    """Format a duration: `0.0042` is `4.2 ms`, `75` is `1 min 15 s`, `7300` is `2 h 1 min`, `200000` is `2 d 7 h`."""
    if 0 < seconds < _CARRIES / 1000:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < _CARRIES:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24:,} d {hours % 24} h"


def _digits(value: float) -> str:
    """Format three significant digits, or all digits of a thousand and more: never `1e+03`."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def percent(fraction: float, digits: int = 1) -> str:
    """Format a score, a fraction inside the program, in points: `0.9612` is `96.1`."""
    return f"{100 * fraction:.{digits}f}"


def metric_title(metric: str, positive: str | None) -> str:
    """Return a metric's name for display: with the positive class if it scores only that, as in `f1 of 'spam'`."""
    return f"{metric} of {clip(positive, LONGEST_CLASS)}" if metric in OF_ONE_CLASS and positive is not None else metric


def error_rate(metric: str, score: float) -> str:
    """Return ` (wer 12.3)`, the error rate 1 - score in points, for the metrics of `ERROR_RATES`; "" for others."""
    return f" ({ERROR_RATES[metric]} {percent(1 - score)})" if metric in ERROR_RATES else ""


def named_scores(
    scores: Mapping[str, float], interval: Sequence[float] | None = None, *, positive: str | None = None
) -> str:
    """Format a run's metrics in points, the first with its interval: `accuracy 96.1 [94.9, 97.2], macro_f1 95.8`.

    Scores are fractions. `positive` is the task's positive class, named beside f1.
    """
    told = [f"{metric_title(metric, positive)} {percent(score)}" for metric, score in scores.items()]
    if interval:
        told[0] += f" [{', '.join(map(percent, interval))}]"
    rates = [error_rate(metric, score) for metric, score in scores.items()]
    return ", ".join(map("".join, zip(told, rates, strict=True)))


def read_amount(words: str) -> tuple[float, str]:
    """Parse a time in s, an energy in J, or money: `"5min"` is `(300.0, "s")`, `"0.02EUR"` is `(0.02, "EUR")`.

    Raises `ConfigError` for anything else, a number without a unit included.
    """
    found = _AMOUNT.fullmatch(words.strip())
    value, unit = (float(found[1]), found[2]) if found else (math.nan, "")
    if unit in _SPENT:
        factor, unit = _SPENT[unit]
        value *= factor
    elif not (len(unit) == 3 and unit.isupper()) or unit.lower() in map(str.lower, _SPENT):  # MIN is not a currency
        value = math.nan
    if not 0 < value < math.inf:
        raise ConfigError(
            "not an amount of time, energy or money",
            got=repr(words),
            expected="a number above 0 and its unit: 90s, 5min, 1h, 7d, 2w; 500J, 20kJ, 3Wh, 1kWh; 0.02EUR, 1USD",
        )
    return value, unit


def parse_bytes(text: str) -> int:
    """Parse a size: `"10GB"` is 10,000,000,000, `"1.5 GiB"` is 1,610,612,736, `"0"` is 0. Raises `ConfigError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
    size = float(found[1]) * (1024 if found[3] else 1000) ** _BYTES[found[2] or ""] if found else math.inf
    if size == math.inf:
        raise ConfigError("not a size", got=repr(text), expected="a number and a unit, like 10GB or 500MB; 0 for none")
    return int(size)
