"""Targets of examples with several candidates, of which one or more are right: one row per candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged
from graftwork.errors import DataError, clip


def encode_marks(marks: Sequence[Sequence[int]]) -> Ragged:
    """Encode the marks, 1 or 0 per candidate of every example, as (W, 2) int64: mark and example number.

    In a batch, where the rows are concatenated, the second column tells which of them belong together.
    """
    rows = [[(mark, number) for mark in listed] for number, listed in enumerate(marks)]
    found = Ragged.of(rows, np.int64)
    return Ragged(found.flat.reshape(-1, 2), found.counts)


def place_shares(targets: Ragged) -> NDArray[np.float64]:
    """Return the log frequencies (places, 1) of the first, second, … candidate being right: a constant answer."""
    places = np.arange(len(targets.flat)) - np.repeat(targets.starts, targets.counts)
    right = np.bincount(places, weights=targets.flat[:, 0])
    return np.asarray(np.log(np.maximum(right / max(1, len(targets)), 1e-9)))[:, None]


def pairs_of(examples: Sequence[Example]) -> list[Example]:
    """Return one example per candidate, a pair of the text and that candidate."""
    return [
        Example(f"{example.id}/{place}", {"text_a": example.inputs["text"], "text_b": choice})
        for example in examples
        for place, choice in enumerate(example.inputs["choices"], 1)
    ]


def parse_marks(text: str | tuple[str, ...], where: str) -> tuple[int, ...]:
    """Parse the marks of an example's candidates, 1 where right, else 0. Raises `DataError` for anything else."""
    listed = (text,) if isinstance(text, str) else text
    for mark in listed:
        if mark not in ("0", "1"):
            raise DataError(
                "a candidate is right or not",
                where=where,
                got=clip(mark),
                expected="1 or 0",
                do="grades are not known here: write 1 for every relevant candidate" if mark.isdecimal() else "",
            )
    return tuple(map(int, listed))


def check_choices(choices: Sequence[str], where: str) -> None:
    """Raise `DataError` unless there are at least two candidates, none of them blank."""
    if len(choices) < 2:
        raise DataError(
            "a row with a single choice" if choices else "a row without choices",
            where=where,
            got=clip(" | ".join(choices)),
            expected="two or more",
            do="add the others or remove the row",
        )
    for place, choice in enumerate(choices, 1):
        if not choice.strip():
            raise DataError(
                f"choice {place} of {len(choices)} is empty",
                where=where,
                got=clip(" | ".join(choices)),
                expected="a text",
                do="fill it in or remove the row",
            )


def settle_marks(marks: tuple[int, ...], inputs: Mapping[str, Any], where: str) -> None:
    """Raise `DataError` unless there is one mark per choice, and equal choices have equal marks."""
    choices = inputs["choices"]
    check_choices(choices, where)
    if len(marks) != len(choices):
        raise DataError(
            "the numbers of choices and marks differ",
            where=where,
            got=f"{len(choices)} choices, {len(marks)} marks",
            expected="a mark, 0 or 1, for each choice",
            do="mend the row or remove it",
        )
    known: dict[str, int] = {}
    for choice, mark in zip(choices, marks, strict=True):
        if known.setdefault(choice, mark) != mark:
            raise DataError(
                "the same choice is right and wrong",
                where=where,
                got=clip(choice),
                do="remove one of the two or mend it",
            )


def scored(logits: Ragged) -> Ragged:
    """Map logits (W, 1) to (W, 2) float64: the scores and their example numbers."""
    return Ragged(np.stack([logits.flat[:, 0], logits.owners.astype(np.float64)], axis=1), logits.counts)
