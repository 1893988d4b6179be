"""Draws: subsets of a data set that simulate having fewer labels.

A draw is a pure function of (seed, draw, size) and of the rows' content. Every stratum (class) is ordered by a hash,
and a size takes the first rows of each: a size that takes more of every stratum contains the rows of one that takes
fewer, so that a curve over sizes shows the effect of more labels, not of other labels. The test split is the same for
all.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import plain
from graftwork.core.kind import OneClass, Scales
from graftwork.core.part_settings import split_words
from graftwork.core.task import Dataset, Split, Task
from graftwork.data.load import digest
from graftwork.errors import ConfigError, DataError, clip
from graftwork.io.files import canonical
from graftwork.registry import kinds

OF_CLASSES = ("8/class", "16/class", "64/class", "10%", "100%")  # default sizes of a curve, where there are classes
OF_SHARES = ("1%", "3%", "10%", "30%", "100%")
SALT = "graftwork draw 1"
_PER_CLASS, _PERCENT = re.compile(r"(\d{1,9})/class"), re.compile(r"(\d{1,3}(?:\.\d+)?)%")


@dataclass(frozen=True)
class Size:
    """A number of training rows: a count of each class, or a share of each stratum."""

    word: str  # "8/class", "10%"
    per_class: int | None = None
    share: float = 1.0  # used if `per_class` is None


@dataclass(frozen=True)
class SubsetDraw:
    """One draw at one size."""

    dataset: Dataset  # reduced train and validation, whole test split
    size: Size
    number: int  # index of the draw
    short: int  # number of classes with fewer rows than the size requests, all of which are used


@dataclass(frozen=True)
class DrawPlan:
    """The training rows that the draws of a size use."""

    taken: list[dict[Hashable, int]]  # per draw, the number of rows of every stratum: equal counts are the same rows
    short: int  # number of classes with fewer rows than requested

    @property
    def rows(self) -> list[int]:
        """Number of rows of each draw."""
        return [sum(counts.values()) for counts in self.taken]

    def is_within(self, other: DrawPlan) -> bool:
        """Return whether the rows of each draw are a subset of those of the same draw of `other`."""
        draws = zip(self.taken, other.taken, strict=True)
        return all(count <= theirs[stratum] for own, theirs in draws for stratum, count in own.items())


def parse_sizes(words: str | Sequence[str] | None, task: Task) -> list[Size]:
    """Parse sizes (one string: separated by commas), or return the defaults for the task.

    Raises `ConfigError` for an invalid or repeated size, and for rows per class where there are no classes.
    """
    if words is None:
        words = OF_CLASSES if _has_classes(task) else OF_SHARES
    sizes = [_parse(word.strip()) for word in split_words(words) if word.strip()]
    if not sizes:
        raise ConfigError("no size is named", expected="sizes like 8/class,10%,100%")
    twice = sorted(word for word, count in Counter(size.word for size in sizes).items() if count > 1)
    if twice:
        raise ConfigError("a size is named twice", got=", ".join(twice), do="name each once")
    per_class = [size.word for size in sizes if size.per_class is not None]
    if per_class and not _has_classes(task):
        raise ConfigError(
            f"a {task.kind} task has no classes to take rows of", got=", ".join(per_class), expected="sizes like 10%"
        )
    return sizes


def _has_classes(task: Task) -> bool:
    return isinstance(kinds.get(task.kind), OneClass)


def _parse(word: str) -> Size:
    found = _PER_CLASS.fullmatch(word)
    if found and int(found[1]) > 0:
        return Size(f"{int(found[1])}/class", per_class=int(found[1]))
    found = _PERCENT.fullmatch(word)
    share = f"{float(found[1]):g}" if found else ""
    if found and 0 < float(share) <= 100 and _PERCENT.fullmatch(f"{share}%"):
        return Size(f"{share}%", share=float(share) / 100)  # the share as `drawn_again` parses it, rounded
    raise ConfigError("not a size", got=clip(word), expected="rows per class like 8/class, or a share like 10% or 100%")


def draw(dataset: Dataset, size: Size, number: int, seed: int = 0) -> SubsetDraw:
    """Return the subset of `dataset` that draw `number` uses at `size`.

    A share p of a stratum of n rows is p x n rows, rounded up or down at random, and at least one row of a class. The
    validation split is drawn in the same way and limited to as many rows as train has (of each class, where there are
    classes): few labels also means few for validation. The scale of a numeric target is that of the drawn rows. Raises
    `DataError` if their targets are all equal.
    """
    chance, strata = _chance(number, seed), _strata(dataset, dataset.train)
    total = Counter(strata)
    taken = _rows_of_strata(dataset.task, total, size, chance)
    train = _first(dataset.train, strata, taken, chance)
    splits = {**dataset.splits, "train": train, "validation": _validation(dataset, taken, len(train.examples), chance)}
    task = dataset.task
    if isinstance(kinds.get(task.kind), Scales):
        task = _rescaled(task, train, f"draw {number} at {size.word}")
        splits = {name: _encoded(split, task) for name, split in splits.items()}
    report = {**dataset.report, "draw": {"size": size.word, "number": number, "seed": seed, "of": dataset.digest}}
    drawn = Dataset(task, splits, digest(splits), report)
    return SubsetDraw(drawn, size, number, _short(total, size))


def _rescaled(task: Task, train: Split, of: str) -> Task:
    """Return the task in the scale of the drawn rows. Raises `DataError`, naming the draw, if all targets are equal."""
    try:
        return kinds.get(task.kind).resolve(task, [example.target for example in train.examples])
    except DataError as error:
        do = "give larger --sizes, or another --seed"
        raise DataError(f"{error.what} ({of})", where=error.where, got=error.got, do=do) from None


def plan_draws(dataset: Dataset, sizes: Sequence[Size], draws: int, seed: int = 0) -> dict[Size, DrawPlan]:
    """Return the plan of the draws of each size, without making them."""
    total, task = Counter(_strata(dataset, dataset.train)), dataset.task
    return {
        size: DrawPlan(
            [_rows_of_strata(task, total, size, _chance(number, seed)) for number in range(draws)], _short(total, size)
        )
        for size in sizes
    }


def _rows_of_strata(task: Task, total: Mapping[Hashable, int], size: Size, chance: str) -> dict[Hashable, int]:
    """Return the number of rows drawn of each stratum."""
    least = int(_has_classes(task))
    return {stratum: _count(rows, size, _unit(f"{chance} {stratum!r}"), least) for stratum, rows in total.items()}


def _short(total: Mapping[Hashable, int], size: Size) -> int:
    """Count the classes with fewer rows than `size` requests."""
    return sum(rows < (size.per_class or 0) for rows in total.values())


def _chance(number: int, seed: int) -> str:
    return f"{SALT} {seed} {number}"


def drawn_again(dataset: Dataset, told: Mapping[str, Any] | None) -> Dataset:
    """Repeat the draw with a receipt's `size`, `number` and `seed` on the whole data set; for None return it as is."""
    return draw(dataset, _parse(told["size"]), told["number"], told["seed"]).dataset if told else dataset


def _validation(dataset: Dataset, taken: Mapping[Hashable, int], rows: int, chance: str) -> Split:
    """Return the drawn validation split: of each class at most as many rows as train, or a share that gives as many."""
    split = dataset.validation
    strata = _strata(dataset, split)
    total = Counter(strata)
    if _has_classes(dataset.task):
        cut = {stratum: min(count, taken.get(stratum, 0)) for stratum, count in total.items()}
    else:
        share = Size("", share=min(1.0, rows / len(split.examples)))
        luck = {stratum: _unit(f"{chance} {stratum!r}") for stratum in total}
        cut = {stratum: _count(count, share, luck[stratum], 0) for stratum, count in total.items()}
        surplus = max(0, sum(cut.values()) - rows)  # rows too many because more strata were rounded up than down
        for stratum in sorted((one for one in cut if cut[one]), key=lambda one: (luck[one], repr(one)))[:surplus]:
            cut[stratum] -= 1
    if not any(cut.values()):
        cut[max(total, key=lambda stratum: (total[stratum], repr(stratum)))] = 1
    return _first(split, strata, cut, f"{chance} validation")


def _strata(dataset: Dataset, split: Split) -> list[Hashable]:
    return kinds.get(dataset.task.kind).strata([example.target for example in split.examples])


def _count(rows: int, size: Size, luck: float, least: int) -> int:
    """Return how many of a stratum's `rows` to draw; `luck` in [0, 1) rounds, so that the mean over draws is exact."""
    if size.per_class is not None:
        return min(rows, size.per_class)
    return min(rows, max(least, math.ceil(round(size.share * rows, 9) - luck)))


def _unit(text: str) -> float:
    """Hash `text` to a number in [0, 1)."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def _first(split: Split, strata: Sequence[Hashable], taken: Mapping[Hashable, int], chance: str) -> Split:
    """Return the first rows of each stratum by this draw's hash, in the order of the split."""
    places: defaultdict[Hashable, list[tuple[bytes, int]]] = defaultdict(list)
    for row, (example, stratum) in enumerate(zip(split.examples, strata, strict=True)):
        key = hashlib.sha256(f"{chance} {canonical(plain(example.inputs))}".encode()).digest()
        places[stratum].append((key, row))
    rows = sorted(row for stratum, keyed in places.items() for _, row in sorted(keyed)[: taken[stratum]])
    kept: NDArray[np.int64] = np.array(rows, dtype=np.int64)
    return Split(split.name, tuple(split.examples[row] for row in rows), split.targets[kept])


def _encoded(split: Split, task: Task) -> Split:
    """Return the split with targets encoded in the scale of `task`."""
    targets: list[Any] = [example.target for example in split.examples]
    return replace(split, targets=kinds.get(task.kind).encode(targets, task))
