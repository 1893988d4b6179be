"""Splits by content: each stratum is ordered by a hash of its rows' inputs, and its first rows are held out.

The file order has no effect, the same rows are always split alike, and an added row moves few of them.

No seed is needed. One may be given, to measure the effect of another split on the scores.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.example import plain
from graftwork.core.task import SPLITS, Task
from graftwork.errors import ConfigError, DataError
from graftwork.io.files import canonical
from graftwork.units import several

SALT = "graftwork split 1"


def salt_of(seed: int | None) -> str:
    """Return the salt of the rows' hashes. Another seed gives another split of the same rows; 0 equals no seed."""
    return f"{SALT}, drawn by seed {seed}" if seed else SALT


def seed_words(task: Task) -> str:
    """Return a phrase on the split seed for the description of the splits; empty without a seed."""
    return f" and the split seed {task.split_seed}" if task.split_seed else ""


def require_drawn(task: Task, files: Mapping[str, Path]) -> None:
    """Raise `ConfigError` for a split seed that is below 0, or that draws nothing since every split has a file."""
    if task.split_seed is None:
        return
    if task.split_seed < 0:
        raise ConfigError("the split seed must be 0 or more", got=str(task.split_seed))
    if not set(SPLITS) - files.keys():
        raise ConfigError(
            "a split seed is given, and no split is drawn: each has a file of its own",
            got=", ".join(path.name for path in files.values()),
            do="leave --split-seed out, or one of the files",
        )


def require_enough(count: int, noun: str, least: int, fractions: Iterable[str], path: Path) -> None:
    """Raise `DataError` for fewer than `least` rows to draw the splits of `fractions` from."""
    if count < least:
        raise DataError(
            f"too few {noun} to draw {' and '.join(fractions)} from",
            where=str(path),
            got=several(count, noun.removesuffix("s")),
            expected=f"{least} or more",
            do=f"add {noun}, or give files: {' and '.join(f'--{name} FILE' for name in fractions)}",
        )


def made_told(given: Mapping[str, str], counts: Mapping[str, int], noun: str, drawn_from: Path, by: str) -> str:
    """Describe where the splits come from, with counts; `given` maps each split that has a file to its description."""
    counted = {split: f"{split} {counts[split]:,} {noun}" for split in SPLITS}
    listed = "; ".join(f"{counted[split]} from {told}" for split, told in given.items())
    drawn = [counted[split] for split in SPLITS if split not in given]
    return f"{listed}; {' and '.join(drawn)} drawn from {drawn_from.name} by a hash of {by}." if drawn else f"{listed}."


def draw(
    inputs: Sequence[Mapping[str, Any]], strata: Sequence[Hashable], fractions: Mapping[str, float], salt: str = SALT
) -> list[str]:
    """Return the split of every row: a name of `fractions`, which maps to its share of rows, or `train`.

    Each stratum is ordered by sha256(salt + inputs) and cut. Rows with the same inputs stay together. Unless these are
    too many, a stratum of two rows or more gives at least one to the first split named, and one of three or more to the
    second too. Train always keeps one. The result does not depend on the order of the rows.
    """
    keys = _keys(inputs, salt)
    strata_of: defaultdict[bytes, Counter[Hashable]] = defaultdict(Counter)
    for key, stratum in zip(keys, strata, strict=True):
        strata_of[key][stratum] += 1
    groups: defaultdict[Hashable, list[bytes]] = defaultdict(list)
    for key in sorted(strata_of):
        groups[_most_common(strata_of[key])].append(key)
    chosen: dict[bytes, str] = {}
    for members in groups.values():
        chosen |= _cut({key: strata_of[key].total() for key in members}, fractions)
    return [chosen[key] for key in keys]


def with_every_label(
    inputs: Sequence[Mapping[str, Any]], names: Sequence[str], labels: Sequence[Collection[str]], salt: str = SALT
) -> list[str]:
    """Return the splits as drawn, changed so that train has a row of every label: others could not be learnt.

    Rows with labels that train lacks are moved to train in the order of their hashes, together with rows of the same
    inputs, until train has all labels.
    """
    trained = {label for name, found in zip(names, labels, strict=True) if name == "train" for label in found}
    if all(label in trained for found in labels for label in found):
        return list(names)
    keys = _keys(inputs, salt)
    labels_of: defaultdict[bytes, set[str]] = defaultdict(set)
    for key, found in zip(keys, labels, strict=True):
        labels_of[key].update(found)
    back: set[bytes] = set()
    for key in sorted(labels_of):
        if not labels_of[key] <= trained:
            back.add(key)
            trained |= labels_of[key]
    return ["train" if key in back else name for key, name in zip(keys, names, strict=True)]


def _keys(inputs: Sequence[Mapping[str, Any]], salt: str) -> list[bytes]:
    return [hashlib.sha256((salt + canonical(plain(item))).encode()).digest() for item in inputs]


def _most_common(counts: Counter[Hashable]) -> Hashable:
    """Return the stratum of most of a group's rows; ties are broken by name, so that row order has no effect."""
    return min(counts, key=lambda stratum: (-counts[stratum], repr(stratum)))


def _cut(sizes: Mapping[bytes, int], fractions: Mapping[str, float]) -> dict[bytes, str]:
    """Assign groups (key -> rows) of one stratum, in order of keys, each to the first split with enough quota left."""
    rows = sum(sizes.values())
    free = rows - 1  # one row stays in train
    quota = {}
    for name, fraction in fractions.items():
        quota[name] = min(max(1, round(fraction * rows)), free)
        free -= quota[name]
    chosen = {}
    for key, size in sizes.items():
        name = next((name for name, left in quota.items() if size <= left), "train")
        if name != "train":
            quota[name] -= size
        chosen[key] = name
    return chosen
