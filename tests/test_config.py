"""The price list: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftwork.config import Prices
from graftwork.errors import ConfigError, StorageError, UnknownName

ROOT = Path(__file__).parents[1]
MONEY = 'currency = "EUR"\ndate = "2026-11-21"\nsource = "a page"\n'
CARBON = 'country = "DEU"\ncarbon_year = 2023\ncarbon_source = "a table"\n'


def read(folder: Path, text: str) -> Prices:
    path = folder / "prices.toml"
    path.write_text(text)
    return Prices.from_file(path)


def test_no_file_leaves_money_and_carbon_blank() -> None:
    prices = Prices.from_file(None)
    assert (prices.per_hour, prices.per_kwh, prices.grams_per_kwh, prices.currency) == (None, None, None, "")
    assert (prices.pue, prices.watts_per_core, prices.idle_watts) == (1.0, 10.0, 0.0)


def test_every_key_is_read(tmp_path: Path) -> None:
    extra = "per_hour = 2\ngrams_per_kwh = 381.5\npue = 1.2\nwatts_per_core = 7\nidle_watts = 3.5\n"
    assert read(tmp_path, MONEY + CARBON + extra) == Prices(
        currency="EUR", per_hour=2, date="2026-11-21", source="a page", country="DEU", grams_per_kwh=381.5,
        carbon_year=2023, carbon_source="a table", pue=1.2, watts_per_core=7, idle_watts=3.5,
    )  # fmt: skip


def test_a_date_may_be_written_as_toml_writes_dates(tmp_path: Path) -> None:
    text = 'currency = "EUR"\nper_kwh = 0.3\ndate = 2026-11-21\nsource = "a bill"\n'
    assert read(tmp_path, text).date == "2026-11-21"


def test_the_example_is_a_price_list() -> None:
    prices = Prices.from_file(ROOT / "docs" / "prices.example.toml")
    assert prices.per_hour is not None and prices.grams_per_kwh == 380.95 and prices.carbon_year == 2023


def test_an_unknown_key_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="per_hour") as caught:
        read(tmp_path, MONEY + "per_huor = 1\n")
    assert "did you mean 'per_hour'?" in str(caught.value) and "prices.toml" in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        'per_hour = "1"', "per_hour = -0.1", "per_hour = true", "per_hour = nan", "per_kwh = inf", "pue = 0.9",
        "watts_per_core = -1", "idle_watts = []", "carbon_year = 2023.0", "carbon_year = 23", "currency = 1",
        'currency = "s"', 'currency = "€"', f"per_hour = {10**400}",
        'source = " "', 'date = "21.11.2026"', 'date = "20261121"', "date = 2026-11-21T10:00:00",
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_name(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, line + "\n")
    assert f"{line.split()[0]!r} has a wrong value" in str(caught.value) and "expected" in str(caught.value)


@pytest.mark.parametrize("figure", ["per_hour = 1\n", "per_kwh = 1\n"])
@pytest.mark.parametrize("left_out", ["currency", "date", "source"])
def test_money_needs_its_origin(tmp_path: Path, figure: str, left_out: str) -> None:
    rest = "".join(line + "\n" for line in MONEY.splitlines() if not line.startswith(left_out))
    with pytest.raises(ConfigError, match=f"without its {left_out}"):
        read(tmp_path, rest + figure)


@pytest.mark.parametrize("left_out", ["country", "carbon_year", "carbon_source"])
def test_carbon_needs_its_origin(tmp_path: Path, left_out: str) -> None:
    rest = "".join(line + "\n" for line in CARBON.splitlines() if not line.startswith(left_out))
    with pytest.raises(ConfigError, match=f"without its {left_out}"):
        read(tmp_path, rest + "grams_per_kwh = 381\n")


def test_two_sorts_of_price_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="per_hour and per_kwh exclude each other"):
        read(tmp_path, MONEY + "per_hour = 1\nper_kwh = 1\n")


def test_a_torn_file_and_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a TOML file"):
        read(tmp_path, "per_hour = \n")
    with pytest.raises(StorageError):
        Prices.from_file(tmp_path / "nowhere.toml")
