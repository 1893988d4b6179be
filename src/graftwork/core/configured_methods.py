"""Parsing of method specifications: `adapter`, or with hyper-parameters `adapter:size=32:placement=pfeiffer`."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable

from graftwork.core.method import AS_IT_COMES, KnownBy, Method
from graftwork.core.part_settings import TOLD, chosen_settings
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.registry import methods

CELL = "cell"  # key of an identity: the hash of the cell that defines the method


@dataclass(frozen=True)
class ConfiguredMethod:
    """A method with its hyper-parameters resolved."""

    label: str  # as shown on the board: the name and the non-default settings
    method: Method
    config: Mapping[str, Any]  # {"name", "version", every hyper-parameter except `LATER` ones at their default}
    given: frozenset[str] = frozenset()  # the hyper-parameters given explicitly, even with their defaults

    @property
    def identity(self) -> dict[str, Any]:
        """`config` as part of a run's identity; it restores the method. Files are given by content, not by path, and
        a method of a notebook by its cell too.

        Raises `StorageError` for a missing file.
        """
        known = self.method.identity() if isinstance(self.method, KnownBy) else {}
        cell = cell_of(type(self.method))
        return {**self.config, **known, **({CELL: cell} if cell else {})}


def cell_of(part: type) -> str:
    """Return a hash of the notebook cell that defines a class, so that an edited cell is another method; "" without."""
    if part.__module__ != "__main__":
        return ""
    files = dict.fromkeys(code.co_filename for own in vars(part).values() if (code := getattr(own, "__code__", None)))
    cells = ["".join(linecache.getlines(file)) for file in files if not Path(file).exists()]
    return digest(cells)[:12] if any(cells) else ""


def parse_method(words: str) -> ConfiguredMethod:
    """Parse a method specification. Raises `UnknownName` for an unknown name, `ConfigError` for a bad value."""
    return configured(*chosen_settings(words, methods))


def configured(name: str, settings: Mapping[str, Any]) -> ConfiguredMethod:
    """Return the method with this name and these non-default settings."""
    make = cast(Any, methods.get(name))
    method = make(**settings)
    resolved = {item.name: getattr(method, item.name) for item in fields(make)}
    changed = {item.name for item in fields(make) if resolved[item.name] != item.default}
    told = [item.name for item in fields(make) if TOLD in item.metadata or item.name in changed]
    label = ":".join([name, *(f"{key}={resolved[key]}" for key in told)])
    kept = [item.name for item in fields(make) if "later" not in item.metadata or item.name in changed]
    config = {"name": name, "version": method.VERSION} | {key: resolved[key] for key in kept}
    return ConfiguredMethod(label, cast(Method, method), config, frozenset(settings))


def of_a(place: Literal["BOARD", "LADDER", "CURVE"]) -> list[ConfiguredMethod]:
    """Return the default methods of a board, ladder or curve: each method once per entry it declares for it.

    A method without a declaration is on boards once with its defaults, and on no ladder or curve.
    """
    unsaid = AS_IT_COMES if place == "BOARD" else ()
    entries = [(name, entry) for name in methods.names() for entry in getattr(methods.get(name), place, unsaid)]
    return [configured(name, settings) for name, settings in entries]


def configured_from(config: Mapping[str, Any]) -> ConfiguredMethod:
    """Return the method of a `ConfiguredMethod.config` with every hyper-parameter, as this version interprets it."""
    return configured(
        config["name"], {key: value for key, value in config.items() if key not in ("name", "version", CELL)}
    )


@runtime_checkable
class RestoresEarlier(Protocol):
    """A method that fits otherwise than earlier versions of it, and restores what these have stored."""

    RESTORES: ClassVar[tuple[int, ...]]  # these versions


def method_from_config(config: Mapping[str, Any]) -> Method:
    """Return the method of a stored `ConfiguredMethod.config`, to restore what it has fitted.

    Raises `ConfigError` if it was stored by another version, unless the method restores that one too.
    """
    made = configured_from(config)
    restored = made.method.RESTORES if isinstance(made.method, RestoresEarlier) else ()
    if config["version"] not in (made.config["version"], *restored):
        raise ConfigError(
            f"method {config['name']!r} has changed since this was stored",
            got=f"version {config['version']}",
            expected=f"version {made.config['version']}",
            do="train it again",
        )
    return made.method
