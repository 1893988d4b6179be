"""Data augmentation for distillation: texts made from given ones, for a teacher to predict (Tang et al. 2019,
arXiv:1903.12136)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graftwork.core.example import Example

REPLACED, DROPPED, CUT = 0.15, 0.1, 0.25  # shares: of words replaced, of words dropped, of texts cut to a part
SHORTEST = 3  # words of such a part, at least


def invent_examples(examples: Sequence[Example], times: int, seed: int) -> tuple[Example, ...]:
    """Return `times` new examples for each given one: words are replaced or dropped, or a text is cut to a part.

    Replacements are drawn from the words of all examples, by frequency. Each text of an example is changed separately.
    """
    random = np.random.default_rng(seed)
    words = np.array([word for example in examples for given in example.inputs.values() for word in _words(given)])
    made = []
    for time in range(times):
        for example in examples:
            inputs = {role: _changed(given, words, random) for role, given in example.inputs.items()}
            made.append(Example(f"{example.id}/{time + 1}", inputs))
    return tuple(made)


def readable(inputs: Mapping[str, Any]) -> bool:
    """Return whether every input is a text or a list of words, from which others can be made."""
    return all(isinstance(given, str | tuple) for given in inputs.values())


def _words(given: str | tuple[str, ...]) -> Sequence[str]:
    return given.split() if isinstance(given, str) else given


def _changed(given: str | tuple[str, ...], words: Any, random: np.random.Generator) -> str | tuple[str, ...]:
    own = list(_words(given))
    if not own:
        return given
    if len(own) > SHORTEST and random.random() < CUT:
        length = int(random.integers(SHORTEST, len(own)))
        start = int(random.integers(0, len(own) - length + 1))
        own = own[start : start + length]
    drawn = random.random(len(own))
    kept = [
        str(words[random.integers(len(words))]) if draw < REPLACED else word
        for word, draw in zip(own, drawn, strict=True)
        if draw < 1 - DROPPED
    ] or own
    return " ".join(kept) if isinstance(given, str) else tuple(kept)
