"""Word vectors: one vector per word, whatever stands beside it (Mikolov et al. 2013, arXiv:1301.3781)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graftwork.errors import DataError, clip, nearest
from graftwork.pretrained.known_words import find

NEAR_AMONG = 50_000  # words that an unknown one is compared with: the first of the table, which are the frequent ones


@dataclass(frozen=True)
class WordVectors:
    """A table of V words, D numbers each. A word is looked up as it stands, then in lower case."""

    words: Sequence[str]  # V of them, all different
    table: NDArray[np.float32]  # (V, D)
    dropped: int = 0  # lines of a file whose word had stood before, or that had none

    @property
    def width(self) -> int:
        """D."""
        return int(self.table.shape[1])

    @cached_property
    def digest(self) -> str:
        """sha256 of words and vectors, the same in whatever format they are kept."""
        hashed = hashlib.sha256("\n".join(self.words).encode())
        hashed.update(np.ascontiguousarray(self.table, dtype="<f4").data)
        return hashed.hexdigest()

    @cached_property
    def rows(self) -> dict[str, int]:
        """Word -> its row."""
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int | None:
        """The row of `word`, or of it in lower case; None for a word that is not known."""
        return find(self.rows, word)

    def row_of(self, word: str) -> int:
        """`row` of a word that has to be known. Raises `DataError`."""
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
        """(V, D) the vectors scaled to length 1; a vector of zeros stays one."""
        lengths = np.sqrt(np.einsum("vd,vd->v", self.table, self.table, dtype=np.float64))[:, None]
        return np.asarray(self.table / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two words' vectors. Raises `DataError`."""
        a, b = (self.directions[self.row_of(word)] for word in (one, other))
        return float(a @ b)

    def neighbours(self, plus: Sequence[str], minus: Sequence[str] = (), count: int = 10) -> list[tuple[str, float]]:
        """The `count` words that are nearest by cosine to the sum of these words' directions, less those of `minus`.

        The words asked about are left out. With two and one it is 3CosAdd: king, woman less man (Mikolov et al. 2013,
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
    """(V,) -> the places of the `count` highest, highest first; of equal ones the earlier."""
    if count <= 0:
        return []
    least = np.partition(scores, -count)[-count]
    among = np.flatnonzero(scores >= least)
    ordered: list[int] = among[np.argsort(-scores[among], kind="stable")].tolist()
    return ordered[:count]
