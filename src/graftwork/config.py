"""The user's settings: the default backbone, and the dated price list for money and CO2e of a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from graftwork.errors import ConfigError, UnknownName
from graftwork.io.files import read_toml

DEFAULT_BACKBONE = "minilm"  # used where the user names none
JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Prices:
    """The user's prices of machine-hours, electricity and storage, and the CO2e of the electricity.

    Missing prices stay blank. The only guess is `watts_per_core`, for processors whose energy counters cannot be read:
    server processors are specified at 4 to 7 W per core (280 W / 64 for an AMD EPYC 7763, 270 W / 40 for an Intel Xeon
    8380), and 10 W adds a share of memory and power supply. It may be wrong by a factor of two; the grade is "guess".
    """

    currency: str = ""  # "EUR"; required with money
    per_hour: float | None = None  # money per hour of the machine; or
    per_kwh: float | None = None  # money per kWh of electricity
    per_gb_month: float | None = None  # money for keeping 10^9 bytes for a month
    date: str = ""  # date of the price, like 2026-11-21; required with money
    source: str = ""  # source of the price; required with money
    country: str = ""  # country of the electricity grid; required with grams_per_kwh
    grams_per_kwh: float | None = None  # g CO2e per kWh of that grid
    carbon_year: int | None = None  # year of that figure; required with it
    carbon_source: str = ""  # source of that figure; required with it
    pue: float = 1.0  # power usage effectiveness: energy of the building / energy of the machine
    watts_per_core: float = 10.0  # power of one busy core with its share of memory
    idle_watts: float = 0.0  # power of the idle machine, counted for the duration of the run

    @classmethod
    def from_file(cls, path: str | Path | None) -> Prices:
        """Read the price list in a TOML file whose keys are the fields of this class; None gives an empty list.

        Raises `ConfigError` for an unknown key (`UnknownName`), a wrong type, a number out of range, or a price
        without its currency, date and source; `StorageError` for a missing file.
        """
        if path is None:
            return cls()
        content, _ = _read(Path(path))
        return cls._checked(content, str(path))

    @classmethod
    def _checked(cls, content: Mapping[str, Any], where: str) -> Prices:
        for key, value in content.items():
            _check_value(key, value, where)
        _check_whole(content, where)
        return cls(**content)

    def as_json(self) -> dict[str, str]:
        """Return `{"prices": …}`: the given prices with their sources, as text; `{}` without prices."""
        money = (
            (self.per_hour, "hour of the machine"), (self.per_kwh, "kWh"), (self.per_gb_month, "GB and month"),
        )  # fmt: skip
        figures = [
            f"{price:g} {self.currency} per {unit} ({self.source}, {self.date})"
            for price, unit in money
            if price is not None
        ]
        if self.grams_per_kwh is not None:
            origin = f"{self.country} {self.carbon_year}, {self.carbon_source}"
            figures.append(f"{self.grams_per_kwh:g} g CO2e per kWh ({origin})")
        return {"prices": "; ".join([*figures, f"PUE {self.pue:g}"])} if figures else {}


@dataclass(frozen=True)
class Hardware:
    """A machine in the price list, table `[hardware.NAME]`, to which costs measured on another machine are converted.

    A price missing from its table is taken from the top level of the list. The user measures its speed and power.
    """

    prices: Prices = Prices()
    times_as_fast: float = 1.0  # speed relative to the machine on which the costs were measured
    watts: float | None = None  # power of the whole machine at work; None: unknown, so its energy is blank

    @classmethod
    def from_file(cls, path: str | Path, name: str) -> Hardware:
        """Read the machine `name` from a price list.

        Raises `UnknownName` if it is not listed, `ConfigError` without `times_as_fast`, else as `Prices.from_file`.
        """
        content, machines = _read(Path(path))
        if name not in machines:
            raise UnknownName("hardware", name, machines, where=str(path), else_do=f"add a table [hardware.{name}]")
        where = f"{path}, hardware.{name}"
        own = dict(machines[name])
        if "times_as_fast" not in own:
            raise ConfigError(
                "hardware without its speed",
                where=where,
                expected="times_as_fast, as the machine that measured",
                do="predict the same file on both machines, and write the ratio of the speeds",
            )
        of_machine = {key: own.pop(key) for key in ("times_as_fast", "watts") if key in own}
        for key, value in of_machine.items():
            if type(value) not in (int, float) or not 0 < value <= sys.float_info.max:
                raise ConfigError(
                    f"{key!r} has a wrong value", where=where, got=repr(value), expected="a number above 0"
                )
        other = [key for key in ("per_hour", "per_kwh") if key in own]  # either replaces both of the list's
        kept = {key: value for key, value in content.items() if not (other and key in ("per_hour", "per_kwh"))}
        return cls(Prices._checked(kept | own, where), **of_machine)


_TEXTS = ("currency", "date", "source", "country", "carbon_source")
_CURRENCY = re.compile("[A-Z]{3}")  # an ISO 4217 code, as in budgets
_LEAST: Mapping[str, float] = {  # number -> its minimum
    "per_hour": 0, "per_kwh": 0, "per_gb_month": 0, "grams_per_kwh": 0, "carbon_year": 1900, "pue": 1,
    "watts_per_core": 0, "idle_watts": 0,
}  # fmt: skip
_GOES_WITH: Mapping[str, tuple[str, ...]] = {  # price -> the keys that it requires
    "per_hour": ("currency", "date", "source"),
    "per_kwh": ("currency", "date", "source"),
    "per_gb_month": ("currency", "date", "source"),
    "grams_per_kwh": ("country", "carbon_year", "carbon_source"),
}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the prices of the list, and the tables of its hardware by name."""
    content = read_toml(path)
    machines = content.pop("hardware", {})
    if not isinstance(machines, dict) or not all(isinstance(one, dict) for one in machines.values()):
        raise ConfigError(
            "price setting 'hardware' has a wrong value",
            where=str(path),
            got=repr(machines),
            expected="tables such as [hardware.gpu]",
        )
    for table in (content, *machines.values()):
        if type(table.get("date")) is date:  # TOML has a date type: date = 2026-11-21
            table["date"] = table["date"].isoformat()
    return content, machines


def _check_value(key: str, value: Any, where: str) -> None:
    """Raise `ConfigError` unless the key is known and its value has the right type and range."""
    if key in _TEXTS:
        expected = {"date": "a date such as 2026-11-21", "currency": "three capital letters such as EUR"}.get(
            key, "a non-empty text"
        )
        good = isinstance(value, str) and bool(value.strip()) and (key != "date" or _is_date(value))
        good = good and (key != "currency" or bool(_CURRENCY.fullmatch(value)))
    elif key in _LEAST:
        kinds = (int,) if key == "carbon_year" else (int, float)
        expected = f"a {'whole ' if key == 'carbon_year' else ''}number, {_LEAST[key]} or more"
        good = type(value) in kinds and _LEAST[key] <= value <= sys.float_info.max
    else:
        raise UnknownName("price setting", key, [*_TEXTS, *_LEAST], where=where)
    if not good:
        raise ConfigError(f"price setting {key!r} has a wrong value", where=where, got=repr(value), expected=expected)


def _check_whole(content: Mapping[str, Any], where: str) -> None:
    """Raise `ConfigError` for per_hour with per_kwh, and for a price without the keys of `_GOES_WITH`."""
    if "per_hour" in content and "per_kwh" in content:
        raise ConfigError(
            "per_hour and per_kwh exclude each other",
            where=where,
            expected="per_hour or per_kwh",
            do="keep per_hour for a rented machine, or per_kwh for your own",
        )
    for figure, origin in _GOES_WITH.items():
        missing = [key for key in origin if key not in content]
        if figure in content and missing:
            raise ConfigError(
                f"{figure!r} without its {' and '.join(missing)}",
                where=where,
                expected=f"{figure} beside {', '.join(origin)}",
                do=f"add {', '.join(missing)}: a figure of unknown origin cannot be trusted",
            )


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
