"""Targets of examples with several candidates, of which one or more are right: one row per candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graftwork.core.example import Example
from graftwork.errors import DataError, clip

if TYPE_CHECKING:
    from graftwork.core.ragged import Ragged


def encode_marks(marks: Sequence[Sequence[int]]) -> Ragged:
    """Encode the marks, 1 or 0 per candidate of every example, as (W, 2) int64: mark and example number.

    In a batch, where the rows are concatenated, the second column tells which of them belong together.
    """
    import numpy as np

    from graftwork.core.ragged import Ragged

    rows = [[(mark, number) for mark in listed] for number, listed in enumerate(marks)]
    found = Ragged.of(rows, np.int64)
    return Ragged(found.flat.reshape(-1, 2), found.counts)


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
