"""What a person writes: words between commas, and a part with its settings, `adapter:size=32:placement=pfeiffer`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import Registry

TOLD = "told"  # in the metadata of a field whose value the label tells, be it the default
TRUTHS = {"true": True, "false": False}
BY = "by"  # the field that names another part; it is the last, and what follows belongs to that part


def split_words(words: str | Iterable[str]) -> list[str]:
    """`"a, b"` is `["a", "b"]`; words in a list are as they are there."""
    return [word.strip() for word in words.split(",") if word.strip()] if isinstance(words, str) else list(words)


def chosen_settings(words: str, parts: Registry[Any]) -> tuple[str, dict[str, Any]]:
    """The name in `name:field=value:…`, and the fields of the dataclass registered under it that are given a value.

    Raises `UnknownName` for a part or a field that does not exist, `ConfigError` for a bad value.
    """
    name, *settings = _split(words.strip())
    defaults = {item.name: item.default for item in fields(parts.get(name))}
    chosen: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if key not in defaults:
            raise UnknownName(f"hyper-parameter of {name}", key, defaults)
        if key in chosen:
            raise ConfigError(f"{name}: {key} is set twice", got=words, do="leave one of them out")
        if not equals:
            raise ConfigError("a hyper-parameter needs a value", got=setting, expected=f"{key}=VALUE")
        chosen[key] = _convert(name, key, text, type(defaults[key]))
    return name, chosen


def described_settings(name: str, parts: Registry[Any]) -> Iterator[tuple[str, Any, str]]:
    """Of each setting of the part: its name, its default, and what it is, the comment behind it; "" without one.

    Nothing of a part that can't be set. Raises `UnknownName`.
    """
    part = parts.get(name)
    if not (isinstance(part, type) and is_dataclass(part)):
        return
    try:
        source = inspect.getsource(part)
    except OSError:  # typed at a prompt
        source = ""
    comments = dict(re.findall(r"^    (\w+): .*?  # (.+)$", source, re.MULTILINE))
    for item in fields(part):
        yield item.name, item.default, comments.get(item.name, "")


def _split(words: str) -> list[str]:
    """The name, then a setting each; from `by=` on the rest is one."""
    before, by, rest = words.partition(f":{BY}=")
    return before.split(":") + ([f"{BY}={rest}"] if by else [])


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
