"""Validation of an untrusted tokenizer.json: only known parts, and no unbounded expansion or run time.

A tokenizer is a small program: it can replace one letter by a thousand again and again, repeat a text in a template, or
search by a pattern that takes years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from graftwork.errors import StorageError, clip
from graftwork.io.files import storage_errors
from graftwork.io.json_limits import TOKENIZER, BeyondLimits, parse_json
from graftwork.io.plain_files import read_plain

MODELS = ("BPE", "WordPiece", "Unigram", "WordLevel")
SECTIONS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
KNOWN = {
    "Sequence", "BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "Strip", "StripAccents", "Replace",
    "Prepend", "Precompiled", "ByteLevel", "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Metaspace", "Split",
    "Punctuation", "Digits", "CharDelimiterSplit", "UnicodeScripts", "FixedLength", "TemplateProcessing",
    "BertProcessing", "RobertaProcessing", "WordPiece", "BPEDecoder", "ByteFallback", "Fuse", "CTC", "WordLevel",
}  # fmt: skip
MOST_PARTS = 64
MOST_TOKENS = 2_000_000
LONGEST_TOKEN = 10_000  # characters
LONGEST_WORD = 10_000  # characters of a word for WordPiece: its time grows with the square
LONGEST_PATTERN = 4_000  # characters
MOST_LONGER = 64  # maximum factor by which all replacements together may lengthen a text
LONGEST_TEMPLATE = 64  # texts and special tokens
MOST_ADDED = 100_000
REPEATS = r"(?:[+*]|\{\d*,\})"  # unbounded repetition
GROUP = re.compile(rf"\((?:\?[a-z-]*[:=!]|\?<[=!])?((?:[^()\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*)\)({REPEATS})?", re.DOTALL)
ATOM = re.compile(rf"(?:\\.|\[(?:[^\]\\]|\\.)*\]|[^\\\[])(?:({REPEATS})|(\?|\{{[\d,]*\}}))?[?+]?", re.DOTALL)
IN_CLASS = re.compile(r"\\.|\[(?:[^\]\\]|\\.)*\]", re.DOTALL)


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer.json. Raises `StorageError` for a file that breaks a rule or is corrupt."""
    content = checked_tokenizer(path)
    try:
        return Tokenizer.from_buffer(content)
    except BaseException as error:  # the library's panic class is not an Exception
        raise unreadable(error, path) from None


def unreadable(error: BaseException, path: Path) -> StorageError:
    """Convert an error or panic of the library to a `StorageError`; re-raise any other BaseException."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
    told = str(error).strip().splitlines() or [type(error).__name__]
    return StorageError(
        f"no tokenizer can be read: {told[0][:200]}", where=str(path), do="use the files as save_pretrained writes them"
    )


def checked_tokenizer(path: Path) -> bytes:
    """Return the bytes of a tokenizer.json after checking every rule of this module. Raises `StorageError`."""
    with storage_errors(path):
        content = read_plain(path, TOKENIZER.bytes)
    try:
        told = parse_json(content, TOKENIZER)
        if not isinstance(told, dict) or not isinstance(told.get("model"), dict):
            raise BeyondLimits("it has no model")
        _require_model(told["model"])
        added = told.get("added_tokens") or []
        if not isinstance(added, list) or len(added) > MOST_ADDED:
            raise BeyondLimits(f"more than {MOST_ADDED:,} added tokens")
        _require_parts([part for section in SECTIONS for part in _parts(told.get(section))])
    except (ValueError, TypeError, KeyError, IndexError) as rule:
        raise StorageError(
            f"no tokenizer can be read: {rule}",
            where=str(path),
            do="get the file again from where it comes, if you trust that",
        ) from None
    return content


def _require_model(model: dict[str, Any]) -> None:
    vocabulary = model.get("vocab")
    kind = model.get("type", "BPE" if "merges" in model else "WordLevel")  # absent from old files
    if kind not in MODELS:
        raise BeyondLimits(f"the unknown model {clip(str(kind))}")
    if not isinstance(vocabulary, dict | list) or len(vocabulary) > MOST_TOKENS:
        raise BeyondLimits(f"it has no vocabulary of at most {MOST_TOKENS:,} tokens")
    if isinstance(vocabulary, dict):
        ids = vocabulary.values()
        if vocabulary and not all(type(one) is int for one in ids):
            raise BeyondLimits("a token whose id is no number")
        if vocabulary and not (min(ids) >= 0 and max(ids) <= 2 * MOST_TOKENS):
            raise BeyondLimits(f"a token whose id is not between 0 and {2 * MOST_TOKENS:,}")
    tokens = vocabulary if isinstance(vocabulary, dict) else [str(one[0]) for one in vocabulary if one]
    if max(map(len, tokens), default=0) > LONGEST_TOKEN:
        raise BeyondLimits(f"a token of more than {LONGEST_TOKEN:,} characters")
    for key in ("max_input_chars_per_word", "unk_id"):
        most = LONGEST_WORD if key.startswith("max") else len(vocabulary) - 1
        value = model.get(key)
        if value is not None and not (type(value) is int and 0 <= value <= most):
            raise BeyondLimits(f"{key} is {clip(str(value))}, where at most {most:,} is read")


def _parts(told: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a section, nested ones included."""
    waiting = [told] if told is not None else []
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise BeyondLimits("a part that does not say its type")
        yield part
        for inner in ("normalizers", "pretokenizers", "processors", "decoders"):
            listed = part.get(inner, [])
            waiting += listed if isinstance(listed, list) else [listed]


def _require_parts(parts: list[dict[str, Any]]) -> None:
    if len(parts) > MOST_PARTS:
        raise BeyondLimits(f"{len(parts):,} parts, where at most {MOST_PARTS} are read")
    longer = 1.0
    for part in parts:
        if part["type"] not in KNOWN:
            raise BeyondLimits(f"a part of the unknown type {clip(part['type'])}")
        pattern = part.get("pattern")
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if regex is not None:
            _require_quick(str(regex))
        if part["type"] == "Replace":
            sought = len(str(pattern.get("String") or "x")) if isinstance(pattern, dict) else 1
            longer *= max(1.0, len(str(part.get("content", ""))) / sought)
        if part["type"] == "Prepend" and len(str(part.get("prepend", ""))) > LONGEST_TEMPLATE:
            raise BeyondLimits("it puts a long text before every other")
        if part["type"] == "TemplateProcessing":
            _require_short(part)
    if longer > MOST_LONGER:
        raise BeyondLimits(
            f"its replacements make a text up to {longer:,.0f} times as long, where {MOST_LONGER} is most"
        )


def _require_quick(pattern: str) -> None:
    """Raise `BeyondLimits` for a pattern with exponential backtracking: "(a+)+" tries every way to cut a word."""
    if len(pattern) > LONGEST_PATTERN:
        raise BeyondLimits(f"a pattern of {len(pattern):,} characters, where at most {LONGEST_PATTERN:,} are read")
    left = pattern
    while (group := GROUP.search(left)) is not None:
        if group[2] and any(map(_all_repeated, _alternatives(group[1]))):
            raise BeyondLimits(f"a pattern that repeats what repeats: {clip(pattern)}")
        left = f"{left[: group.start()]}g{group[2] or ''}{left[group.end() :]}"


def _alternatives(body: str) -> list[str]:
    return IN_CLASS.sub(lambda one: one[0].replace("|", "/"), body).split("|")


def _all_repeated(alternative: str) -> bool:
    """Return whether every atom is repeated or optional and one is repeated: the repetition is ambiguous."""
    atoms = ATOM.findall(alternative)
    return any(repeats for repeats, _ in atoms) and all(repeats or optional for repeats, optional in atoms)


def _require_short(template: dict[str, Any]) -> None:
    for form in ("single", "pair"):
        pieces = template.get(form, [])
        if not isinstance(pieces, list) or len(pieces) > LONGEST_TEMPLATE:
            raise BeyondLimits(f"a template of more than {LONGEST_TEMPLATE} texts and special tokens")
        if sum(isinstance(piece, dict) and "Sequence" in piece for piece in pieces) > (1 if form == "single" else 2):
            raise BeyondLimits("a template that repeats a text")
    special = template.get("special_tokens") or {}
    listed = special.values() if isinstance(special, dict) else ()
    if any(isinstance(one, dict) and len(one.get("ids") or ()) > LONGEST_TEMPLATE for one in listed):
        raise BeyondLimits(f"a special token that becomes more than {LONGEST_TEMPLATE} ids")
