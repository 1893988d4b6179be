"""Word vectors: one vector per word, independent of context (Mikolov et al. 2013, arXiv:1301.3781)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graftwork.errors import DataError, clip, nearest
from graftwork.pretrained.known_words import find

NEAR_AMONG = 50_000  # first words of the table, the frequent ones, compared with an unknown word


@dataclass(frozen=True)
class WordVectors:
    """A table of V words with vectors of width D. A word is looked up as written, then in lower case."""

    words: Sequence[str]  # V of them, all different
    table: NDArray[np.float32]  # (V, D)
    dropped: int = 0  # lines of a file with a repeated word or none

    @property
    def width(self) -> int:
        """D."""
        return int(self.table.shape[1])

    @cached_property
    def digest(self) -> str:
        """sha256 of words and vectors, independent of the file format."""
        hashed = hashlib.sha256("\n".join(self.words).encode())
        hashed.update(np.ascontiguousarray(self.table, dtype="<f4").data)
        return hashed.hexdigest()

    @cached_property
    def rows(self) -> dict[str, int]:
        """Word -> its row."""
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int | None:
        """Return the row of `word`, else of its lower case; None for an unknown word."""
        return find(self.rows, word)

    def row_of(self, word: str) -> int:
        """Return the row of a word as `row` does. Raises `DataError` for an unknown word."""
        found = self.row(word)
        if found is None:
            near = nearest(word, self.words[:NEAR_AMONG])
            raise DataError(
                f"no vector of {clip(word)}",
                expected=f"one of the {len(self.words):,} words of the table",
                do=f"did you mean {near!r}?" if near else "",
            )
        return found

    @cached_property
    def directions(self) -> NDArray[np.float32]:
        """The vectors (V, D) scaled to length 1; zero vectors are unchanged."""
        lengths = np.sqrt(np.einsum("vd,vd->v", self.table, self.table, dtype=np.float64))[:, None]
        return np.asarray(self.table / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine of two words' vectors. Raises `DataError`."""
        a, b = (self.directions[self.row_of(word)] for word in (one, other))
        return float(a @ b)

    def neighbours(self, plus: Sequence[str], minus: Sequence[str] = (), count: int = 10) -> list[tuple[str, float]]:
        """Return the `count` nearest words by cosine to the sum of the directions of `plus` less those of `minus`.

        The query words are excluded. Two words less one is 3CosAdd: king + woman - man (Mikolov et al. 2013,
        "Linguistic Regularities in Continuous Space Word Representations"). Raises `DataError`.
        """
        asked = [self.row_of(word) for word in (*plus, *minus)]
        signs = np.repeat(np.array([1, -1], dtype=np.float32), [len(plus), len(minus)])  # (Q,)
        target = signs @ self.directions[asked]  # (D,)
        length = float(np.linalg.norm(target))
        cosines = self.directions @ (target / length if length else target)  # (V,)
        cosines[asked] = -np.inf
        nearest_rows = top(cosines, min(count, len(self.words) - len(set(asked))))
        return [(self.words[row], float(cosines[row])) for row in nearest_rows]


def top(scores: NDArray[np.float32], count: int) -> list[int]:
    """Return the indices of the `count` highest scores (V,), highest first; of equal ones the earlier."""
    if count <= 0:
        return []
    least = np.partition(scores, -count)[-count]
    among = np.flatnonzero(scores >= least)
    ordered: list[int] = among[np.argsort(-scores[among], kind="stable")].tolist()
    return ordered[:count]
