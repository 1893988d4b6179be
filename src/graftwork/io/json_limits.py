"""Parsers of untrusted JSON and TOML, with limits that are checked before any object is built."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

MOST_TOML = 256 << 10  # bytes
DEEPEST_TOML = 16  # deepest nesting of tables and arrays, and most parts of a dotted key
_TOML_SILENT = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)  # strings and comments
_DOTTED = re.compile(rf"(?:[\w-]*+[ \t]*+\.[ \t]*+){{{DEEPEST_TOML}}}")


class BeyondLimits(ValueError):
    """A text that exceeds a limit; the message names the limit."""


@dataclass(frozen=True)
class JsonLimits:
    """Upper limits of a JSON text."""

    bytes: int
    lists: int  # number of lists and objects
    values: int  # approximate number of values of all lists and objects together
    depth: int = 64  # nesting of lists and objects
    text: int = 1 << 20  # characters of one string, keys included


DATA = JsonLimits(
    bytes=1 << 30, lists=30_000_000, values=100_000_000, text=1 << 28
)  # our own records and the user's data
SMALL = JsonLimits(bytes=4 << 20, lists=300_000, values=600_000)  # a model's description: labels of 21,000 classes
MODULE = JsonLimits(bytes=128 << 20, lists=2_000_000, values=8_000_000, text=1 << 24)  # may hold a vocabulary
TOKENIZER = JsonLimits(bytes=64 << 20, lists=2_000_000, values=8_000_000)


def parse_json(content: bytes, limits: JsonLimits) -> Any:
    """Parse a JSON text in UTF-8.

    Raises `BeyondLimits` with the limit it exceeds (also for a duplicate key or NaN), `ValueError` for invalid JSON.
    """
    if len(content) > limits.bytes:
        raise BeyondLimits(f"{len(content):,} bytes of JSON, where at most {limits.bytes:,} are read")
    lists = content.count(b"[") + content.count(b"{")
    values = content.count(b",") + lists
    if lists > limits.lists or values > limits.values:
        raise BeyondLimits(
            f"{lists:,} lists and {values:,} values, where at most {limits.lists:,} and {limits.values:,} are read"
        )
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise BeyondLimits(f"lists or objects in each other more than {limits.depth} deep") from None
    _require_modest(value, limits)
    return value


def parse_toml(content: bytes) -> dict[str, Any]:
    """Parse a TOML text. Raises `BeyondLimits` with the limit it exceeds, `ValueError` for invalid TOML."""
    if len(content) > MOST_TOML:
        raise BeyondLimits(f"{len(content):,} bytes of TOML, where at most {MOST_TOML:,} are read")
    text = content.decode("utf-8-sig")
    spoken = _TOML_SILENT.sub("x", text)
    depth = deepest = 0
    for sign in re.findall(r"[\[\]{}]", spoken):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST_TOML or _DOTTED.search(spoken):
        raise BeyondLimits(f"tables, arrays or parts of a key in each other more than {DEEPEST_TOML} deep")
    return tomllib.loads(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BeyondLimits(f"the key {twice[:80]!r} occurs twice in one object")
    return made


def _no_number(word: str) -> Any:
    raise BeyondLimits(f"{word}, which is not a JSON number")


def _require_modest(value: Any, limits: JsonLimits) -> None:
    """Raise `BeyondLimits` for too deep nesting or a too long string."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, str) and len(item) > limits.text:
                raise BeyondLimits(f"a text of {len(item):,} characters, where at most {limits.text:,} are read")
            if isinstance(item, dict):
                if item and max(map(len, item)) > limits.text:
                    raise BeyondLimits(f"a key of more than {limits.text:,} characters")
                below += item.values()
            elif isinstance(item, list):
                below += item
        level, depth = below, depth + 1
        if level and depth > limits.depth:
            raise BeyondLimits(f"lists or objects in each other more than {limits.depth} deep")
