"""Tokenizers with a smaller vocabulary; a text whose tokens are all kept is tokenised as before.

This holds for the four models of tokenizers. WordPiece takes the longest piece that it has, so that unused pieces have
no effect. BPE merges pairs, and every merge that can lead to a kept token is kept, with both its parts. Unigram takes
the likeliest segmentation, which is still among the fewer that are left. WordLevel looks words up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import Tokenizer

BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # byte pieces, the fallback for unknown characters
CONTINUES = ("##", "\u2581", "\u0120", "@@")  # marks before or after a piece, which are no characters of it


def fewer_tokens(tokenizer: Tokenizer, used: Iterable[int]) -> tuple[Tokenizer, list[int]]:
    """Return a tokenizer with the `used` tokens and those that it can't do without, and the old ids of all, in order.

    The new id of a token is its index in that list. It can't do without added and special tokens, single characters and
    bytes, into which unknown words are cut, and the parts of kept tokens. Raises `ValueError` for an unknown model.
    """
    told = json.loads(tokenizer.to_str())
    model = told["model"]
    ids = dict(tokenizer.get_vocab(with_added_tokens=True))
    kept = set(used) | {number for token, number in ids.items() if _single(token)}
    kept |= {one["id"] for one in told["added_tokens"]}
    kept |= {ids[model[key]] for key in ("unk_token",) if model.get(key) in ids}
    if model["type"] == "Unigram":
        scores = [score for _, score in model["vocab"]]
        kept |= {model["unk_id"]} if model.get("unk_id") is not None else set()
        kept.add(scores.index(min(scores)))  # the score of unknown characters is derived from it
    elif model["type"] == "BPE":
        kept |= _built_from(model, ids, kept)
    elif model["type"] not in ("WordPiece", "WordLevel"):
        raise ValueError(model["type"])
    order = sorted(kept & set(ids.values()))
    return Tokenizer.from_str(json.dumps(_renumbered(told, {old: new for new, old in enumerate(order)}))), order


def _single(token: str) -> bool:
    """Return whether a piece is one character or byte, apart from a mark of `CONTINUES`."""
    bare = token
    for mark in CONTINUES:
        bare = bare.removeprefix(mark).removesuffix(mark)
    return len(bare) <= 1 or len(token) <= 1 or BYTE.fullmatch(token) is not None


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs; older files have each as one string."""
    return [
        (one[0], one[1]) for one in (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
    ]


def _result(model: Mapping[str, Any], left: str, right: str) -> str:
    """Return the token that a pair becomes."""
    return left + right.removeprefix(model.get("continuing_subword_prefix") or "")


def _built_from(model: Mapping[str, Any], ids: Mapping[str, int], kept: set[int]) -> set[int]:
    """Return the ids of the kept tokens and of all parts that BPE merges them from, recursively."""
    parts: dict[str, set[str]] = {}
    for left, right in _merges(model):
        parts.setdefault(_result(model, left, right), set()).update((left, right))
    of = {number: token for token, number in ids.items()}
    found, waiting = set(kept), [of[number] for number in kept if number in of]
    while waiting:
        for part in parts.get(waiting.pop(), ()):
            if part in ids and ids[part] not in found:
                found.add(ids[part])
                waiting.append(part)
    return found


def _renumbered(told: dict[str, Any], new: Mapping[int, int]) -> dict[str, Any]:
    """Return the content of tokenizer.json with only the tokens whose old id has a new one."""
    model = told["model"]
    if model["type"] == "Unigram":
        listed = [entry for old, entry in enumerate(model["vocab"]) if old in new]
        unknown = model.get("unk_id")
        model = model | {"vocab": listed, "unk_id": None if unknown is None else new[unknown]}
    else:
        vocabulary = {token: new[old] for token, old in model["vocab"].items() if old in new}
        model = model | {"vocab": vocabulary}
        if model["type"] == "BPE":
            pairs = [(a, b) for a, b in _merges(model) if {a, b, _result(model, a, b)} <= vocabulary.keys()]
            model = model | {"merges": pairs}
    added = [one | {"id": new[one["id"]]} for one in told["added_tokens"]]
    return told | {"model": model, "added_tokens": added, "post_processor": _processor(told["post_processor"], new)}


def _processor(told: Any, new: Mapping[int, int]) -> Any:
    """Return a post-processor, or each of several, with the new ids of its special tokens."""
    if not isinstance(told, dict):
        return told
    if told["type"] == "Sequence":
        return told | {"processors": [_processor(one, new) for one in told["processors"]]}
    if told["type"] == "TemplateProcessing":
        special = {
            name: one | {"ids": [new[old] for old in one["ids"]]} for name, one in told["special_tokens"].items()
        }
        return told | {"special_tokens": special}
    pairs = {key: [told[key][0], new[told[key][1]]] for key in ("sep", "cls") if isinstance(told.get(key), list)}
    return told | pairs
