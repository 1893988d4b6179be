"""Parsing of user input: comma-separated words, and parts with settings, `adapter:size=32:placement=pfeiffer`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import Registry

TOLD = "told"  # metadata key of a field whose value the label always shows, even the default
TRUTHS = {"true": True, "false": False}
BY = "by"  # the field that names another part; it comes last, and the rest of the string belongs to that part


def split_words(words: str | Iterable[str]) -> list[str]:
    """Split `"a, b"` into `["a", "b"]`; return the words of an iterable unchanged, as a list."""
    return [word.strip() for word in words.split(",") if word.strip()] if isinstance(words, str) else list(words)


def chosen_settings(words: str, parts: Registry[Any]) -> tuple[str, dict[str, Any]]:
    """Parse `name:field=value:…` to the name and the given fields of the dataclass registered under it.

    Raises `UnknownName` for an unknown part or field, `ConfigError` for a bad value.
    """
    name, *settings = _split(words.strip())
    defaults = {item.name: item.default for item in fields(parts.get(name))}
    chosen: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key not in defaults:
            raise UnknownName(f"hyper-parameter of {name}", key, defaults)
        if key in chosen:
            raise ConfigError(f"{name}: {key} is set twice", got=words, do="omit one of them")
        if not equals:
            raise ConfigError("a hyper-parameter needs a value", got=setting, expected=f"{key}=VALUE")
        chosen[key] = _convert(name, key, text, type(defaults[key]))
    return name, chosen


def described_settings(name: str, parts: Registry[Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield name, default and description of each setting of a part; the description is the field's comment, or "".

    Yields nothing for a part without settings. Raises `UnknownName`.
    """
    part = parts.get(name)
    if isinstance(part, type) and is_dataclass(part):
        comments = comments_of(part)
        for item in fields(part):
            yield item.name, item.default, comments.get(item.name, "")


def comments_of(part: type) -> dict[str, str]:
    """Return field -> the comment after or below it; empty for a dataclass defined at an interactive prompt."""
    try:
        source = inspect.getsource(part)
    except OSError:
        return {}
    return dict(re.findall(r"^    (\w+): .*?(?:  |\n    )# (.+)$", source, re.MULTILINE))


def _split(words: str) -> list[str]:
    """Split into the name and the settings, whose values may have colons; from `by=` on the rest is one setting."""
    before, by, rest = words.partition(f":{BY}=")
    found: list[str] = []
    for piece in before.split(":"):
        if found and "=" in found[-1] and not re.match(r"\w+=", piece):
            found[-1] += f":{piece}"  # as in student=hf:FOLDER
        else:
            found.append(piece)
    return found + ([f"{BY}={rest}"] if by else [])


def _convert(name: str, key: str, text: str, kind: type) -> Any:
    try:
        value = TRUTHS[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        words = {int: "a whole number", float: "a finite number", bool: "true or false"}.get(kind, kind.__name__)
        raise ConfigError(f"{name}: {key} must be {words}", got=repr(text))
    if key == "learning_rate" and value <= 0:
        raise ConfigError(f"{name}: {key} must be above 0", got=repr(text))
    return value
