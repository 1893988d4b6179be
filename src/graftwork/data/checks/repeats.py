"""Exact and near duplicates: within a split, across splits, with different targets; and removal of leaks from train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example, Input, text_of
from graftwork.core.media import Media
from graftwork.data.checks.near_duplicates import (
    Pairs,
    Partners,
    Rows,
    Sketch,
    clusters,
    partners,
    partners_across,
    sketch_texts,
)
from graftwork.targets.passages import Golds

EXAMPLES = 5
Inputs = tuple[tuple[str, Input | Media], ...]
MEASURES = {
    "text": "at least 0.8 of the words and word pairs of both, each counted once, are shared",
    "image": "4 of the 63 bits of a picture's hash differ, or fewer",
}


def inputs_of(inputs: Mapping[str, Any]) -> Inputs:
    """Return a hashable key that is equal for rows with the same inputs."""
    return tuple(sorted(inputs.items()))


class Distinct:
    """The distinct inputs of some rows, in order of first occurrence, and for each row the index of its input."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        known: dict[Inputs, int] = {}
        self.of_row: Rows = np.array([known.setdefault(inputs_of(row), len(known)) for row in rows], dtype=np.int64)
        self.inputs = list(known)

    def sketch(self) -> Sketch | None:
        """Return the sketch that finds near duplicates; None for sounds, which are only compared byte for byte."""
        if not self.inputs:
            return None
        roles = [role for role, _ in self.inputs[0]]
        if "sound" in roles:
            return None
        if "image" in roles:
            from graftwork.data.checks.near_images import sketch_images

            return sketch_images([given for one in self.inputs for _, given in one if isinstance(given, Media)])
        return sketch_texts([[text_of(one[place][1]) for one in self.inputs] for place in range(len(roles))])


def near_report(splits: Mapping[str, Sequence[Example]], reads: str, compared: bool = True) -> dict[str, Any]:
    """Report near but not exact duplicates: within each split, between train and the others, and conflicts.

    Empty for sounds (`Distinct.sketch`). With `compared=False`, as for texts to be written, no conflicts are reported.
    """
    everything = [example for examples in splits.values() for example in examples]
    distinct = Distinct([example.inputs for example in everything])
    sketch = distinct.sketch()
    if sketch is None:
        return {}
    ends = np.cumsum([len(examples) for examples in splits.values()])
    rows = dict(zip(splits, np.split(distinct.of_row, ends[:-1]), strict=True))
    ids = _first_ids(distinct, everything)
    within = {}
    for name, of_split in rows.items():  # the distinct inputs beyond one of every cluster
        groups = np.unique(of_split)
        within[name] = len(groups) - len(np.unique(clusters(sketch, groups)))

    def nearly(before: str, after: str) -> dict[str, Any]:
        """Count the rows of `after` that are near, but not equal to, one of `before`; with up to five pairs of ids."""
        held = rows[after]
        found = partners_across(sketch, np.unique(rows[before]), np.setdiff1d(held, rows[before]))
        own = [
            {int(group): splits[name][place].id for place, group in reversed(list(enumerate(rows[name])))}
            for name in (before, after)
        ]
        shown = [[own[0][a], own[1][b], round(value, 3)] for (a, b), value in _listed(found)[:EXAMPLES]]
        return {"rows": int(np.isin(held, found.pairs[:, 1]).sum()), "examples": shown}

    across = {name: nearly("train", name) for name in splits if name != "train"}
    pairs = [pair for repeats in reversed(across.values()) for pair in repeats["examples"]]
    return {
        "measure": MEASURES[reads],
        "within": within,
        "across": {"rows": {name: repeats["rows"] for name, repeats in across.items()}, "examples": pairs[:EXAMPLES]},
        "test_in_validation": nearly("validation", "test"),
        "conflicts": _conflicts(sketch, distinct, everything if compared else [], ids),
    }


def _first_ids(distinct: Distinct, examples: Sequence[Example]) -> dict[int, str]:
    """Map the number of each distinct input to the id of the first row that has it."""
    first: dict[int, str] = {}
    for group, example in zip(distinct.of_row.tolist(), examples, strict=True):
        first.setdefault(group, example.id)
    return first


def _listed(found: Partners) -> list[tuple[tuple[int, int], float]]:
    """Return pairs with their resemblance, the most alike first, ties in order of rows."""
    order = np.lexsort((found.pairs[:, 0], found.pairs[:, 1], -found.resemblance))
    return [
        ((a, b), value)
        for (a, b), value in zip(found.pairs[order].tolist(), found.resemblance[order].tolist(), strict=True)
    ]


def _conflicts(
    sketch: Sketch, distinct: Distinct, examples: Sequence[Example], ids: Mapping[int, str]
) -> dict[str, Any]:
    """Report near inputs with different targets; numbers differ if they are more than one standard deviation apart."""
    differ = _differing(distinct, examples)
    if differ is None:
        return {"rows": 0, "examples": []}
    found = partners(sketch, np.arange(len(distinct.inputs)), differ)
    shown = [[ids[a], ids[b], round(value, 3)] for (a, b), value in _listed(found)[:EXAMPLES]]
    return {"rows": int(np.isin(distinct.of_row, found.pairs).sum()), "examples": shown}


def _differing(distinct: Distinct, examples: Sequence[Example]) -> Callable[[Pairs], NDArray[np.bool_]] | None:
    """Return a test of whether the first targets of two distinct inputs differ; None for words and passages."""
    if not examples or "words" in examples[0].inputs or isinstance(examples[0].target, Golds):
        return None
    first: dict[int, Any] = {}
    for group, example in zip(distinct.of_row.tolist(), examples, strict=True):
        first.setdefault(group, example.target)
    if isinstance(examples[0].target, float):
        values = np.array([first[group] for group in range(len(first))], dtype=np.float64)
        spread = values.std()
        return lambda pairs: np.abs(values[pairs[:, 0]] - values[pairs[:, 1]]) > spread
    known: dict[Any, int] = {}
    codes = np.array([known.setdefault(first[group], len(known)) for group in range(len(first))], dtype=np.int64)
    return lambda pairs: codes[pairs[:, 0]] != codes[pairs[:, 1]]


def twins(rows: Sequence[Example], among: Sequence[Example]) -> dict[str, str]:
    """Map the id of each of `rows` that has an exact or near duplicate in `among` to the id of the duplicate."""
    distinct = Distinct([example.inputs for example in (*rows, *among)])
    own, held = distinct.of_row[: len(rows)], distinct.of_row[len(rows) :]
    names = {group: example.id for group, example in reversed(list(zip(held.tolist(), among, strict=True)))}
    like, sketch = {group: group for group in names}, distinct.sketch()
    if sketch is not None:
        found = partners_across(sketch, np.setdiff1d(own, held), np.unique(held))
        like |= {a: b for (a, b), _ in reversed(_listed(found))}
    return {row.id: names[like[group]] for row, group in zip(rows, own.tolist(), strict=True) if group in like}


def leaking(inputs: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return a mask of the rows of train that also occur in validation or test, and the exact and near counts."""
    exact, near = standing(inputs["train"], [*inputs["validation"], *inputs["test"]])
    return exact | near, {"exact": int(exact.sum()), "near": int(near.sum())}


def standing(
    rows: Sequence[Mapping[str, Any]], among: Sequence[Mapping[str, Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two masks (N,) of `rows`: rows with an exact duplicate in `among`, and rows with only a near duplicate."""
    distinct = Distinct([*rows, *among])
    own, held = distinct.of_row[: len(rows)], np.unique(distinct.of_row[len(rows) :])
    exact = np.isin(own, held)
    near = np.zeros(len(rows), dtype=bool)
    sketch = distinct.sketch()
    while sketch is not None:  # a crowded bucket is sampled: what one pass missed, the next finds
        left = np.unique(own[~(exact | near)])
        found = partners_across(sketch, left, held).pairs[:, 0]
        if not len(found):
            break
        near |= np.isin(own, found) & ~exact
    return exact, near
