"""The characters that a tokenizer keeps: the common ones, so that a rare one costs no place in the vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

COVERAGE = 0.9999  # of the characters of a corpus


def alphabet(texts: Iterable[str], normalised: Callable[[str], str], most: int) -> list[str]:
    """The fewest characters, at most `most`, that make up `COVERAGE` of the texts; in the order of Unicode."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalised(text))
    counts = Counter({char: count for char, count in counts.items() if not char.isspace()})
    missing = counts.total() * COVERAGE
    kept = []
    for char in sorted(counts, key=lambda char: (-counts[char], char))[:most]:
        if missing <= 0:
            break
        kept.append(char)
        missing -= counts[char]
    return sorted(kept)
