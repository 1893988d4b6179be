"""One seed per purpose, all derived from the run's: initialisation and data order never share a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from graftwork.core.part_settings import split_words
from graftwork.errors import ConfigError, UnknownName

SOURCES = ("init", "order", "augmentation")  # of variation, in a run: weights, order of the data, how images are shown
_ELSEWHERE = {
    "dropout": "nothing is dropped out: frozen and trained blocks run in eval mode",
    "split": "it is drawn before any run: --split-seed draws another one",
}


def derive(seed: int, purpose: str) -> int:
    """A 63-bit seed for `purpose` (one of `SOURCES`, …), the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{purpose}".encode()).digest()[:8], "big") >> 1


def chosen_sources(words: str | Sequence[str] | None) -> tuple[str, ...]:
    """The sources that runs draw anew (one string: separated by commas), in the order of `SOURCES`; all for None.

    Raises `ConfigError` for none, `UnknownName` for one that there isn't.
    """
    if words is None:
        return SOURCES
    words = split_words(words)
    for word in words:
        if word in _ELSEWHERE:
            raise ConfigError(f"{word!r} cannot be varied: {_ELSEWHERE[word]}", expected=", ".join(SOURCES))
        if word not in SOURCES:
            raise UnknownName("source of variation", word, SOURCES)
    if not words:
        raise ConfigError("no source of variation is named", expected=", ".join(SOURCES), do="leave --vary out for all")
    return tuple(source for source in SOURCES if source in words)


def held_of(varied: Sequence[str], seed: int) -> tuple[str, ...]:
    """The sources that are drawn as by seed 0. For seed 0 that is how all are drawn: it is the same run either way."""
    return tuple(source for source in SOURCES if seed and source not in varied)


def seeds_of(seed: int, held: Sequence[str]) -> dict[str, int]:
    """For the receipt: the seed that each source is drawn by."""
    return {source: derive(0 if source in held else seed, source) for source in SOURCES}
