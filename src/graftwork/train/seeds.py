"""Seeds per purpose, derived from the run's seed: initialisation and data order never share a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from graftwork.core.part_settings import split_words
from graftwork.errors import ConfigError, UnknownName

SOURCES = ("init", "order", "augmentation")  # of variation in a run: initial weights, data order, image augmentation
DRAWN = ("templates", "shots")  # of variation in the runs of methods that say so (`core.method.Draws`)
_ELSEWHERE = {
    "dropout": "that of a network that learns to write goes with the order; other blocks run in eval mode",
    "split": "it is drawn before any run: --split-seed draws another one",
}


def derive(seed: int, purpose: str) -> int:
    """Derive a 63-bit seed for `purpose` (one of `SOURCES`, …), the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{purpose}".encode()).digest()[:8], "big") >> 1


def chosen_sources(words: str | Sequence[str] | None, drawn: Sequence[str] = ()) -> tuple[str, ...]:
    """Parse the sources to vary (a string is comma-separated), in the order of `SOURCES` and `DRAWN`.

    None: all `SOURCES` and `drawn`, those that the methods draw besides. Raises `ConfigError` for an empty list or a
    fixed source, `UnknownName` for an unknown one.
    """
    known = (*SOURCES, *DRAWN)
    if words is None:
        return (*SOURCES, *drawn)
    words = split_words(words)
    for word in words:
        if word in _ELSEWHERE:
            raise ConfigError(f"{word!r} cannot be varied: {_ELSEWHERE[word]}", expected=", ".join(known))
        if word not in known:
            raise UnknownName("source of variation", word, known)
    if not words:
        raise ConfigError("no source of variation is named", expected=", ".join(known), do="omit --vary to vary all")
    return tuple(source for source in known if source in words)


def held_of(varied: Sequence[str], seed: int, drawn: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the sources held at seed 0; none for seed 0 itself, where it makes no difference to the run."""
    return tuple(source for source in (*SOURCES, *drawn) if seed and source not in varied)


def seeds_of(seed: int, held: Sequence[str], drawn: Sequence[str] = ()) -> dict[str, int]:
    """Return, for the receipt, the derived seed of each source."""
    return {source: derive(0 if source in held else seed, source) for source in (*SOURCES, *drawn)}
