"""Tokens of a mixed batch: examples shared by several tasks, tokenised once, and the units that the network runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded, WordPlaces
from graftwork.core.example import Example

Route = tuple[int, int] | None  # shelf (stacked adapters of equal shapes) and slot of a row's adapters; None: none
Roles = tuple[str, ...]


class Encodes(Protocol):
    """A tokenising part: a backbone, or its reader alone."""

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise."""


@dataclass
class Unit:
    """An example on one route: one or more sequences. Without a route it serves all tasks that have it."""

    number: int  # index among the units
    group: Roles  # key of its tokens in `groups`
    example: int  # index within the group
    tasks: list[str]


@dataclass(frozen=True)
class TaskTokens:
    """The tokens and units of one call. Units are ordered by route, and within a route by task."""

    groups: Mapping[Roles, Encoded]
    offsets: Mapping[Roles, int]  # the first sequence of each group in `merged`
    merged: Encoded  # all sequences, for collation; does not map them to examples
    units: list[Unit]
    roles: Mapping[str, Roles]  # task -> group
    asked: Mapping[str, list[int]]  # task -> the unit of each of its examples
    sizes: NDArray[np.int64]  # (units,) tokens when padded to the longest of their sequences

    def sequences(self, unit: Unit) -> range:
        """Return the sequences of a unit, as indices into `merged`."""
        encoded, offset = self.groups[unit.group], self.offsets[unit.group]
        start = offset + int(encoded.starts[unit.example])
        return range(start, start + int(encoded.sequences_of[unit.example]))

    def of_task(self, name: str) -> Encoded:
        """Return the tokens of the group that holds the task's examples."""
        return self.groups[self.roles[name]]

    def answered(self, name: str, order: Sequence[int]) -> tuple[Encoded, NDArray[np.int64], list[int] | None]:
        """Return the data that map logits of units, computed in this order, to the task's examples.

        These are the tokens of its units, the position of each unit among them, and the unit position of each example,
        or None if every example has a unit of its own.
        """
        own = list(dict.fromkeys(self.asked[name]))
        places = {unit: place for place, unit in enumerate(own)}
        encoded = self.of_task(name)
        if encoded.answers is not None:
            encoded = encoded.some([self.units[unit].example for unit in own])
        asked = None if len(own) == len(self.asked[name]) else [places[unit] for unit in self.asked[name]]
        return encoded, np.array([places[unit] for unit in order], dtype=np.int64), asked


def tokens_of(
    backbone: Encodes, wanted: Mapping[str, Sequence[Example]], roles: Mapping[str, Roles], routes: Mapping[str, Route]
) -> TaskTokens:
    """Tokenise the examples of `wanted`, task -> examples."""
    known: dict[tuple[Any, ...], int] = {}  # content -> index in its group
    texts: dict[Roles, list[Example]] = {}
    units: dict[tuple[Any, ...], Unit] = {}
    asked: dict[str, list[int]] = {}
    for name in sorted(wanted, key=lambda name: routes[name] or (-1, -1)):
        group, route = roles[name], routes[name]
        listed = texts.setdefault(group, [])
        for example in wanted[name]:
            content = (group, *(example.inputs[role] for role in group))
            place = known.setdefault(content, len(listed))
            if place == len(listed):
                listed.append(example)
            unit = units.setdefault((route, group, place), Unit(len(units), group, place, []))
            if name not in unit.tasks:
                unit.tasks.append(name)
            asked.setdefault(name, []).append(unit.number)
    groups = {group: backbone.encode(listed) for group, listed in texts.items()}
    counts = np.cumsum([0, *(len(encoded.ids) for encoded in groups.values())]).tolist()
    listed_units = list(units.values())
    sizes = [
        groups[unit.group].lengths[unit.example] * groups[unit.group].sequences_of[unit.example]
        for unit in listed_units
    ]
    offsets = dict(zip(groups, counts, strict=False))
    return TaskTokens(
        groups, offsets, _merged(list(groups.values())), listed_units, roles, asked, np.array(sizes, np.int64)
    )


def _merged(groups: Sequence[Encoded]) -> Encoded:
    """Concatenate the sequences of all groups."""
    if len(groups) == 1:
        return groups[0]
    ids = [own for encoded in groups for own in encoded.ids]
    types = [own for encoded in groups for own in encoded.types]
    media = tuple(own for encoded in groups for own in encoded.media or ())
    words = None
    if any(encoded.words is not None for encoded in groups):
        first = [
            own for encoded in groups for own in (encoded.words.first if encoded.words else [[]] * len(encoded.ids))
        ]
        words = WordPlaces(first, first, np.array([len(own) for own in first], dtype=np.int64))
    return Encoded(ids, types, 1, 0, words, media=media or None)
