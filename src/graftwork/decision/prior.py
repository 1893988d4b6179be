"""The prior of the methods' scores on a new task, from earlier boards: a Gaussian process over tasks x methods.

A score is the task's level plus the method's effect. The unit of effects is the task's spread, sqrt(p (1 - p)), where p
is the landmark, the best score of a method that trains no network: scores near 0 or 100 points lie closer together. A
method's effect is a sum of normal terms. Some are shared by tasks, as far as their backbones and kinds agree: terms for
its sort, its name and its label, and for how these change with the task's size and shape. Others are independent for
every task: the gain from training the network (shared by all methods that do), and terms for the name and the label.
Levels are free, so only differences are learned. Kinds whose outputs are no logits (`OwnOutputs`, such as texts) train
the network in another way, from no fitted head, and no shipped board is of such a kind. So each method that trains the
network has one more, wide term there: what other kinds say about such methods is a weak hint until boards are added.

The standard deviations of these terms are fitted on our own committed boards (`benchmarks/decision/refit.py`) by their
marginal likelihood. This is the partial pooling of a hierarchical model (Gelman et al. 2013, Bayesian Data Analysis,
chapter 5); written as a covariance, it is conditioned in one step (Rasmussen & Williams 2006, chapter 2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from graftwork.core.kind import OwnOutputs
from graftwork.decision.earlier_boards import KNOWN_SEEDS, Experience, TaskRecord, own, shipped_prior
from graftwork.decision.traits import FLOOR, FROZEN, SIMPLE, TUNED, Arm, Traits
from graftwork.registry import kinds

Floats = NDArray[np.float64]
LEVEL = 5.0  # sd of a task's level, in spreads: practically uninformative
LEAST, MOST = 0.02, 0.98  # bounds of a landmark in the computation of its spread
FEATURES = ("rows", "outputs", "two_texts", "words", "simple", "signal")
JOINT = "cross_encoder"  # the method that reads both texts of a pair together
GAP = 0.3  # in spreads; bound of the difference between the simple baselines and the frozen backbone


@dataclass(frozen=True)
class PriorTask:
    """The representation of a task in the prior."""

    task: int  # index of the task
    traits: Traits
    features: Floats  # (F,), see `features_of`


def spread_of(landmark: float, least: float) -> float:
    """Return a task's spread, the unit of score differences, from its best landmark: sqrt(p (1 - p)) of a share p.

    `least` is the metric's lowest score. A correlation r, whose `least` is -1, has the share p = (1 + r) / 2 and a
    range that is twice as wide, so its unit is doubled.
    """
    share = min(max((landmark - least) / (1 - least), LEAST), MOST)
    return (1 - least) * math.sqrt(share * (1 - share))


def landmark_of(scores: Mapping[Arm, float]) -> float:
    """Return the best score of a method with a frozen backbone or with none; 0.5 if there is no such score."""
    return max((score for arm, score in scores.items() if arm.sort != TUNED), default=0.5)


def features_of(traits: Traits, scores: Mapping[Arm, float]) -> Floats:
    """Return the task features (F,) that methods' effects may depend on; 0 stands for a typical or an unknown value."""
    best = {
        sort: max(score for arm, score in scores.items() if arm.sort == sort)
        for sort in (FLOOR, SIMPLE, FROZEN)
        if any(arm.sort == sort for arm in scores)
    }
    spread = spread_of(landmark_of(scores), traits.least)
    gap = signal = 0.0
    if {SIMPLE, FROZEN} <= best.keys():
        gap = float(np.clip((best[SIMPLE] - best[FROZEN]) / spread, -GAP, GAP)) / GAP
    if {FLOOR, FROZEN} <= best.keys():
        signal = math.tanh((best[FROZEN] - best[FLOOR]) / spread) - 0.5
    return np.array([
        math.log10(max(1, traits.rows) / 1000),
        math.log2(max(2, traits.outputs) / 4) / 3,
        float(traits.two_texts),
        math.log2(traits.words / 12) / 2 if traits.words else 0.0,
        gap,
        signal,
    ])  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """The fitted hyper-parameters: standard deviations of the terms of a score, in spreads, and correlations."""

    tuned: float = 0.12  # mean gain from training the network; times the `loading` of a label
    sort: float = 0.1  # mean of a sort
    name: float = 0.02  # mean of a name, for methods that train the network
    label: float = 0.01  # mean of a label, for methods that train the network
    other_label: float = 1.0  # mean of a label, for all other methods
    tuned_by: tuple[float, ...] = (0.05,) * len(FEATURES)  # change of `tuned` per unit of each feature
    name_by: tuple[float, ...] = (0.02,) * len(FEATURES)
    task_tuned: float = 0.06  # gain from training the network on one task, beyond the terms above
    task_depth: float = 1.0  # effect on one task of a `loading` other than 1
    task_name: float = 0.01  # effect of a name on one task, for methods that train the network
    task_label: float = 0.01  # effect of a label on one task, for methods that train the network
    task_joint: float = 0.06  # the same, for `JOINT`, which may gain or lose more than the others
    task_frozen: float = 0.04  # effect of a label on one task, for methods with an unchanged backbone
    task_simple: float = 0.18  # the same, for methods without a backbone
    task_floor: float = 1.3  # the same, for the majority class
    alike_backbone: float = 0.7  # correlation between tasks on different backbones
    alike_kind: float = 0.7  # correlation between tasks of different kinds
    loadings: Mapping[str, float] = field(default_factory=dict)  # label -> its share of `tuned`; 1 if not listed
    kinds: tuple[str, ...] = ()  # kinds of the boards that the sizes were fitted on
    own_outputs: float = 0.2  # one more term of methods that train the network, in an `OwnOutputs` kind not in `kinds`:
    # half of its variance is shared by the tasks of the kind, and half by the settings of a name
    error: float = 1.0  # factor on the errors that boards report
    seed_tuned: float = 0.025  # sd over seeds, for methods that train the network
    seed_other: float = 0.002
    paired: float = 0.6  # correlation of two methods' luck with the examples

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Sizes:
        """Read sizes from JSON."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(**fields)


@dataclass(frozen=True)
class Belief:
    """A normal distribution over the scores of arms, as fractions."""

    arms: tuple[Arm, ...]
    mean: Floats  # (M,)
    covariance: Floats  # (M, M)

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """Return the mean and standard deviation of the score of arm `a` minus that of arm `b` (indices)."""
        variance = self.covariance[a, a] + self.covariance[b, b] - 2 * self.covariance[a, b]
        return float(self.mean[a] - self.mean[b]), math.sqrt(max(0.0, float(variance)))


class Prior:
    """The prior, conditioned on all tasks of an `Experience`."""

    def __init__(self, sizes: Sizes, experience: Experience):
        self.sizes, self.experience = sizes, experience

    @classmethod
    def load(cls, data: str = "") -> Prior:
        """Load the prior with the shipped boards and the user's own, except boards of the same rows (`data`, a
        `Dataset.digest`), which would leak their test scores."""
        sizes, ours = shipped_prior()
        theirs = own()
        tasks = (*ours.without(task.name for task in theirs.tasks).tasks, *theirs.tasks)
        return cls(Sizes.read(sizes), Experience(tuple(task for task in tasks if not data or task.data != data)))

    def belief(self, traits: Traits, arms: Sequence[Arm], landmarks: Mapping[Arm, float]) -> Belief:
        """Return the prior distribution of the arms' scores on a new task: an uninformative level, and differences.

        `landmarks` are the known validation scores, of any sort of method.
        """
        place = PriorTask(-1, traits, features_of(traits, landmarks))
        points = [(place, arm) for arm in arms]
        known, factor, scores = self._known
        own = covariance(self.sizes, points, points)
        mean = np.zeros(len(arms))
        if known:
            cross = covariance(self.sizes, points, known)  # (M, K)
            mean = cross @ cho_solve(factor, scores)
            own = own - cross @ cho_solve(factor, cross.T)
        spread = spread_of(landmark_of(landmarks), traits.least)
        return Belief(tuple(arms), mean * spread, own * spread**2)

    @cached_property
    def _known(self) -> tuple[list[tuple[PriorTask, Arm]], tuple[Floats, bool], Floats]:
        """The points of the experience, the Cholesky factor of their covariance, and the scores in spreads."""
        return condition(self.sizes, self.experience.tasks)


def condition(
    sizes: Sizes, tasks: Sequence[TaskRecord]
) -> tuple[list[tuple[PriorTask, Arm]], tuple[Floats, bool], Floats]:
    """Return the points (task, arm) of these tasks, the Cholesky factor of their noisy covariance, and their scores."""
    points, scores, noise = [], [], []
    for number, task in enumerate(tasks):
        means = {arm: score.mean for arm, score in task.scores.items()}
        spread = spread_of(landmark_of(means), task.traits.least)
        place = PriorTask(number, task.traits, features_of(task.traits, means))
        for arm, score in task.scores.items():
            seeds = math.inf if score.seeds >= KNOWN_SEEDS else score.seeds
            luck = (sizes.seed_tuned if arm.sort == TUNED else sizes.seed_other) ** 2 / seeds
            points.append((place, arm))
            scores.append(score.mean / spread)
            noise.append((sizes.error * score.error / spread) ** 2 + luck)
    if not points:
        return [], (np.zeros((0, 0)), True), np.zeros(0)
    full = covariance(sizes, points, points) + np.diag(noise)
    return points, cho_factor(full, lower=True), np.array(scores)


def covariance(sizes: Sizes, of: Sequence[tuple[PriorTask, Arm]], beside: Sequence[tuple[PriorTask, Arm]]) -> Floats:
    """Compute the prior covariance (len(of), len(beside)) between two lists of points, in squared spreads."""
    a, b = _Table(sizes, of), _Table(sizes, beside)
    task = a.same(b, "task")
    near = task + (1 - task) * sizes.alike_backbone ** (1 - a.same(b, "backbone")) * sizes.alike_kind ** (
        1 - a.same(b, "kind")
    )
    sort, name, label = a.same(b, "sort"), a.same(b, "name"), a.same(b, "label")
    tuned, loading = np.outer(a.tuned, b.tuned), np.outer(a.loading, b.loading)
    other = sort * (1 - tuned)
    by = [np.outer(one, two) for one, two in zip(a.features.T, b.features.T, strict=True)]
    moved = sum(w**2 * x for w, x in zip(sizes.tuned_by, by, strict=True))
    moved_name = sum(w**2 * x for w, x in zip(sizes.name_by, by, strict=True))
    own = np.outer(a.own, b.own)
    return np.asarray(
        LEVEL**2 * task
        + loading * (near * (sizes.tuned**2 + moved) + sizes.task_tuned**2 * task)
        + np.outer(a.lacking, b.lacking) * sizes.task_depth**2 * task
        + near * sort * sizes.sort**2
        + tuned * name * (near * (sizes.name**2 + moved_name) + sizes.task_name**2 * task)
        + tuned * label * near * sizes.label**2
        + other * label * near * sizes.other_label**2
        + label * task * own
        + a.same(b, "kind") * np.outer(a.new, b.new) * sizes.own_outputs**2 * (1 + task) / 2 * (name + label) / 2
    )


class _Table:
    """The attributes of P points (task, arm), as arrays."""

    def __init__(self, sizes: Sizes, points: Sequence[tuple[PriorTask, Arm]]):
        arms = [arm for _, arm in points]
        self.columns = {
            "task": np.array([place.task for place, _ in points]),
            "backbone": np.array([str(place.traits.backbone) for place, _ in points]),
            "kind": np.array([place.traits.kind for place, _ in points]),
            "sort": np.array([arm.sort for arm in arms]),
            "name": np.array([arm.name for arm in arms]),
            "label": np.array([arm.label for arm in arms]),
        }
        own = {TUNED: sizes.task_label, FROZEN: sizes.task_frozen, SIMPLE: sizes.task_simple, FLOOR: sizes.task_floor}
        self.features = np.array([place.features for place, _ in points])  # (P, F)
        self.tuned = np.array([float(arm.sort == TUNED) for arm in arms])
        self.loading = self.tuned * np.array([sizes.loadings.get(arm.label, 1.0) for arm in arms])
        self.lacking = self.tuned - self.loading
        self.own = np.array([sizes.task_joint if arm.name == JOINT else own[arm.sort] for arm in arms])
        new = {place.traits.kind: _is_new(place.traits.kind, sizes) for place, _ in points}
        self.new = self.tuned * np.array([float(new[place.traits.kind]) for place, _ in points])

    def same(self, other: _Table, column: str) -> Floats:
        """Return a matrix with 1 where the column's values are equal, else 0."""
        return np.asarray(self.columns[column][:, None] == other.columns[column][None], np.float64)


def _is_new(kind: str, sizes: Sizes) -> bool:
    """Return whether a kind's outputs are no logits, and the sizes were fitted on no board of this kind."""
    return kind not in sizes.kinds and kind in kinds.names() and isinstance(kinds.get(kind), OwnOutputs)
