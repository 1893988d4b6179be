"""Ragged arrays: targets, predictions and logits of examples with several rows, one per word or choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example, answers_of


@dataclass(frozen=True, eq=False)
class Ragged:
    """The rows of N examples, concatenated."""

    flat: NDArray[Any]  # (W, …)
    counts: NDArray[np.int64]  # (N,) rows per example; their sum is W
    about: NDArray[np.object_] | None = None  # (N,) additional data that the kind's metrics need

    @classmethod
    def of(cls, examples: Sequence[Any], dtype: type) -> Ragged:
        """Build from a list of rows per example."""
        flat = [row for rows in examples for row in rows]
        return cls(np.array(flat, dtype=dtype), np.array([len(rows) for rows in examples], dtype=np.int64))

    def __len__(self) -> int:
        """Return N."""
        return len(self.counts)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Iterate over the rows of each example."""
        return iter(np.split(self.flat, np.cumsum(self.counts)[:-1])) if len(self) else iter(())

    def __getitem__(self, examples: Any) -> Ragged:
        """Select examples by indices or a slice, in that order."""
        counts = self.counts[examples]
        about = None if self.about is None else self.about[examples]
        return Ragged(self.flat[places(self.starts[examples], counts)], counts, about)

    @property
    def starts(self) -> NDArray[np.int64]:
        """(N,) index of each example's first row."""
        return np.cumsum(self.counts) - self.counts

    @property
    def owners(self) -> NDArray[np.int64]:
        """(W,) index of each row's example."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Sum values (W,) over each example's rows, to (N,)."""
        return np.bincount(self.owners, weights=np.asarray(values, np.float64), minlength=len(self)).astype(np.float64)

    def tolist(self) -> list[list[Any]]:
        """Return a list of rows per example, for JSON."""
        return [rows.tolist() for rows in self]


Numbers = NDArray[Any] | Ragged  # a row per example, or one per word or choice


def places(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the integer ranges `start … start + count - 1`."""
    before = np.cumsum(counts) - counts
    total = int(counts.sum())
    return np.asarray(np.arange(total, dtype=np.int64) + np.repeat(starts - before, counts), dtype=np.int64)


def flat(numbers: Numbers) -> NDArray[Any]:
    """Return a plain array with a row per example (N, …), or per word or choice (W, …)."""
    return numbers.flat if isinstance(numbers, Ragged) else numbers


def add_to_first_rows(logits: Numbers, shift: NDArray[np.float64]) -> Numbers:
    """Add (C,) to (N, C); if examples have several rows, to the first row of each."""
    if not isinstance(logits, Ragged):
        return np.asarray(logits + shift)
    moved = logits.flat.copy()
    moved[logits.starts[logits.counts > 0]] += shift
    return replace(logits, flat=moved)


def from_lists(rows: Sequence[Any]) -> Numbers:
    """Convert logits from JSON: a list of numbers per example, or a list of rows per example."""
    if rows and isinstance(rows[0], list) and rows[0] and isinstance(rows[0][0], list):
        return Ragged.of(rows, np.float64)
    return np.array(rows, dtype=np.float64)


def repeated(answer: NDArray[np.float64], examples: Sequence[Example]) -> Numbers:
    """Repeat constant logits (C,) for these examples: a row per example, or per word or choice.

    If `answer` is (places, C), row i of every example gets `answer[i]`, and all further rows get the last one.
    """
    counts = [answers_of(example) for example in examples]
    if None in counts or not examples:
        return _tiled(answer, len(examples))
    return _of_counts(answer, np.array(counts, dtype=np.int64))


def repeated_as(answer: NDArray[np.float64], targets: Numbers) -> Numbers:
    """As `repeated`, for the examples with these encoded targets."""
    return _of_counts(answer, targets.counts) if isinstance(targets, Ragged) else _tiled(answer, len(targets))


def _tiled(answer: NDArray[Any], rows: int) -> NDArray[Any]:
    """Repeat one answer (C,) as (rows, C); a structured array (1,), as of texts, as (rows,)."""
    return np.repeat(answer, rows) if answer.dtype.names else np.tile(answer, (rows, 1))


def _of_counts(answer: NDArray[np.float64], rows: NDArray[np.int64]) -> Ragged:
    if answer.ndim == 2:
        return Ragged(answer[np.minimum(places(np.zeros_like(rows), rows), len(answer) - 1)], rows)
    return Ragged(np.tile(answer, (int(rows.sum()), 1)), rows)


def concatenated(parts: Sequence[Numbers]) -> Numbers:
    """Concatenate the arrays of one or more groups of examples."""
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([flat(part) for part in parts])
    about = [part.about for part in ragged if part.about is not None]
    return Ragged(
        np.concatenate([part.flat for part in ragged]),
        np.concatenate([part.counts for part in ragged]),
        np.concatenate(about) if about else None,
    )
