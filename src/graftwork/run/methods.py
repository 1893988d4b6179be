"""Methods as a person names them: `adapter`, or with hyper-parameters `adapter:size=32:placement=pfeiffer`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from graftwork.core.method import Method
from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import Registry, methods


@dataclass(frozen=True)
class Named:
    """A method with its hyper-parameters resolved."""

    label: str  # as the board shows it: the name, and what differs from the defaults
    method: Method
    config: Mapping[str, Any]  # {"name", "version", every hyper-parameter but the `LATER` ones that are as by default}
    given: frozenset[str] = frozenset()  # the hyper-parameters that were named, be it with their defaults


def parse_method(words: str) -> Named:
    """Raises `UnknownName` for a method or hyper-parameter that does not exist, `ConfigError` for a bad value."""
    return named(*chosen_settings(words, methods))


def chosen_settings(words: str, parts: Registry[Any]) -> tuple[str, dict[str, Any]]:
    """The name in `name:field=value:…`, and the fields of the dataclass registered under it that are given a value.

    Raises as `parse_method` does.
    """
    name, *settings = words.strip().split(":")
    defaults = {item.name: item.default for item in fields(parts.get(name))}
    chosen: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key not in defaults:
            raise UnknownName(f"hyper-parameter of {name}", key, defaults)
        if key in chosen:
            raise ConfigError(f"{name}: {key} is set twice", got=words)
        if not equals:
            raise ConfigError("a hyper-parameter needs a value", got=setting, expected=f"{key}=VALUE")
        chosen[key] = _convert(name, key, text, type(defaults[key]))
    return name, chosen


def _convert(name: str, key: str, text: str, kind: type) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        words = {int: "a whole number", float: "a finite number"}.get(kind, kind.__name__)
        raise ConfigError(f"{name}: {key} must be {words}", got=repr(text))
    return value


def named(name: str, settings: Mapping[str, Any]) -> Named:
    """A method from its name and what differs from the defaults."""
    make = cast(Any, methods.get(name))
    method = make(**settings)
    resolved = {item.name: getattr(method, item.name) for item in fields(make)}
    changed = [item.name for item in fields(make) if resolved[item.name] != item.default]
    label = ":".join([name, *(f"{key}={resolved[key]}" for key in changed)])
    told = [item.name for item in fields(make) if "later" not in item.metadata or item.name in changed]
    config = {"name": name, "version": make.VERSION} | {key: resolved[key] for key in told}
    return Named(label, cast(Method, method), config, frozenset(settings))


def named_from_config(config: Mapping[str, Any]) -> Named:
    """The method that `Named.config` describes, every hyper-parameter given, as this version understands it."""
    return named(config["name"], {key: value for key, value in config.items() if key not in ("name", "version")})


def method_from_config(config: Mapping[str, Any]) -> Method:
    """The method that `Named.config` describes. Raises `ConfigError` when this version has changed its meaning."""
    made = named_from_config(config)
    if made.config["version"] != config["version"]:
        raise ConfigError(
            f"method {config['name']!r} has changed since this was stored",
            got=f"version {config['version']}",
            expected=f"version {made.config['version']}",
            do="train it again",
        )
    return made.method
