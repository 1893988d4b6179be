"""Numbers as a person reads them: three digits, a prefix that fits, never an exponent."""

from __future__ import annotations

import pytest

from graftwork.errors import ConfigError
from graftwork.units import metric_title, named_scores, parse_bytes, percent, read_amount, several, show


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "s", "–"),
        (0, "s", "0 ms"),
        (1.34e-6, "s", "1.34 µs"),
        (0.0042, "s", "4.2 ms"),
        (0.99961, "s", "1 s"),
        (59.94, "s", "59.9 s"),
        (59.97, "s", "1 min 0 s"),
        (75, "s", "1 min 15 s"),
        (3599.7, "s", "1 h 0 min"),
        (7300, "s", "2 h 1 min"),
        (200_000, "s", "2 d 7 h"),
        (4.7e12, "FLOP", "4.7 TFLOP"),
        (999.4, "bytes", "999 B"),
        (999.6, "bytes", "1 kB"),
        (999_900, "FLOP", "1 MFLOP"),
        (2e18, "FLOP", "2,000 PFLOP"),
        (0, "parameters", "0"),
        (22_565_376, "parameters", "22.6 M"),
        (12_345.6, "per second", "12,346 per second"),
        (999.7, "g", "1,000 g"),
        (0.01234, "EUR", "0.0123 EUR"),
    ],
)
def test_quantities(value: float | None, unit: str, shown: str) -> None:
    assert show(value, unit) == shown


def test_how_many() -> None:
    assert [several(0, "row"), several(1, "class"), several(2000, "class")] == ["0 rows", "1 class", "2,000 classes"]


def test_scores_are_points() -> None:
    assert percent(0.9612) == "96.1"


@pytest.mark.parametrize(
    ("words", "amount"),
    [
        ("90s", (90, "s")),
        ("5min", (300, "s")),
        (" 1.5 h ", (5400, "s")),
        ("7d", (604_800, "s")),
        ("1.5 w", (907_200, "s")),
        ("500J", (500, "J")),
        ("20kJ", (20_000, "J")),
        ("3Wh", (10_800, "J")),
        ("0.5kWh", (1.8e6, "J")),
        ("0.02EUR", (0.02, "EUR")),
    ],
)
def test_amounts_are_read_in_si(words: str, amount: tuple[float, str]) -> None:
    assert read_amount(words) == (pytest.approx(amount[0]), amount[1])


@pytest.mark.parametrize(
    "words",
    [
        "",
        "5",
        "d",
        "0s",
        "-3s",
        "5 minutes",
        "5m",
        "5Min",
        "1h30min",
        "1,5h",
        "1.2.3h",
        "nans",
        "1e3s",
        "2eur",
        "20KJ",
        "5MIN",
        "5KWH",
    ],
)
def test_no_amount_is_guessed(words: str) -> None:
    with pytest.raises(ConfigError, match="a number above 0 and its unit: 90s, 5min, 1h"):
        read_amount(words)


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GB", 10**10), ("500 mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("2k", 2000), ("0", 0), ("123", 123), ("7B", 7)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "ten GB", "-1GB", "1.2.3GB", ".GB", "10 GBit", "5i", "1e3", "9" * 400 + "GB"]
)
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ConfigError, match="like 10GB"):
        parse_bytes(text)


def test_the_class_that_a_metric_is_of_stands_beside_it() -> None:
    assert metric_title("f1", "not spam") == "f1 of 'not spam'"
    assert metric_title("f1", None) == "f1" and metric_title("macro_f1", "spam") == "macro_f1"
    assert metric_title("f1", "x" * 50) == f"f1 of '{'x' * 40}'… (50 characters)"
    scores = {"f1": 0.5, "accuracy": 0.75}
    assert named_scores(scores, (0.25, 1.0), positive="0") == "f1 of '0' 50.0 [25.0, 100.0], accuracy 75.0"
