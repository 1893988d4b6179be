"""The alphabet of a tokenizer: the common characters only, so that rare ones take no place in the vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

COVERAGE = 0.9999  # share of a corpus's characters that the alphabet covers


def alphabet(texts: Iterable[str], normalised: Callable[[str], str], most: int) -> list[str]:
    """Return the fewest characters, at most `most`, that cover `COVERAGE` of all but white space, sorted."""
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
