"""JSON and TOML from elsewhere: parsed within limits that are known before anything is made of the text."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

MOST_TOML = 256 << 10  # bytes
DEEPEST_TOML = 16  # tables and arrays in each other, and parts of a dotted key
_TOML_SILENT = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)  # texts and comments
_DOTTED = re.compile(rf"(?:[\w-]*+[ \t]*+\.[ \t]*+){{{DEEPEST_TOML}}}")


class BeyondLimits(ValueError):
    """A text that breaks a rule; its message is the rule."""


@dataclass(frozen=True)
class JsonLimits:
    """What a JSON text may be at most."""

    bytes: int
    lists: int  # lists and objects
    values: int  # values of all lists and objects together, about
    depth: int = 64  # lists and objects in each other
    text: int = 1 << 20  # characters of one text, keys included


DATA = JsonLimits(
    bytes=1 << 30, lists=30_000_000, values=100_000_000, text=1 << 28
)  # our own records and the user's data
SMALL = JsonLimits(bytes=4 << 20, lists=300_000, values=600_000)  # what describes a model: the labels of 21,000 classes
MODULE = JsonLimits(bytes=128 << 20, lists=2_000_000, values=8_000_000, text=1 << 24)  # which may hold a vocabulary
TOKENIZER = JsonLimits(bytes=64 << 20, lists=2_000_000, values=8_000_000)
HEADER = JsonLimits(bytes=16 << 20, lists=150_100, values=600_000, depth=8, text=10_000)  # of 50,000 tensors


def parse_json(content: bytes, limits: JsonLimits) -> Any:
    """The value that a JSON text in UTF-8 stands for.

    Raises `BeyondLimits` with the rule that it breaks (a key twice and NaN are among them), `ValueError` for no JSON.
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
    """The table of a TOML text. Raises `BeyondLimits` with the rule that it breaks, `ValueError` for no TOML."""
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
        raise BeyondLimits(f"the key {twice[:80]!r} stands twice in one object")
    return made


def _no_number(word: str) -> Any:
    raise BeyondLimits(f"{word}, which is no number of JSON")


def _require_modest(value: Any, limits: JsonLimits) -> None:
    """Raises `BeyondLimits` for lists too deep in each other and for a text that is too long."""
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
