"""The inputs of the prior: a task's size and shape, and what a method leaves frozen."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.example import text_of
from graftwork.core.method import NetworkMethod
from graftwork.core.metric import BelowZero
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.train.wrapper_method import innermost

MAJORITY = "majority"
FLOOR, SIMPLE, FROZEN, TUNED = "floor", "simple", "frozen", "tuned"  # sorts of an `Arm`
WORDS_READ = 1_000  # training examples from which the median length is computed, at most


@dataclass(frozen=True)
class Arm:
    """One option of the choice, an arm as in a bandit problem: a method with its settings."""

    label: str  # as the board shows it, e.g. "top_layers:k=3"
    name: str  # the registered name, e.g. "top_layers"
    sort: str  # FLOOR: the majority class; SIMPLE: no backbone; FROZEN: an unchanged backbone; TUNED: a changed one

    @classmethod
    def of(cls, item: ConfiguredMethod) -> Arm:
        """Return the arm of a method."""
        name = str(item.config["name"])
        if name == MAJORITY:
            return cls(item.label, name, FLOOR)
        if not item.method.uses_backbone:
            return cls(item.label, name, SIMPLE)
        return cls(item.label, name, TUNED if isinstance(innermost(item.method), NetworkMethod) else FROZEN)


def least_of(metric: str) -> float:
    """Return the lowest possible score of a metric: -1 for correlations, 0 for shares."""
    found = metrics.get(metric)
    return found.least if isinstance(found, BelowZero) else 0.0


@dataclass(frozen=True)
class Traits:
    """The properties of a task that are known before any method has run."""

    rows: int  # training rows
    outputs: int  # classes; 1 for a number
    two_texts: bool
    words: float  # median words of an input; 0 without text
    kind: str
    backbone: str | None
    least: float = 0.0  # the lowest score of the headline metric

    @classmethod
    def of(cls, dataset: Dataset, backbone: str | None) -> Traits:
        """Return the traits of a data set on a backbone (its id; None for no backbone)."""
        task, examples = dataset.task, dataset.train.examples
        lengths = [sum(len(text_of(part).split()) for part in one.inputs.values()) for one in examples[:WORDS_READ]]
        return cls(
            rows=len(examples),
            outputs=kinds.get(task.kind).outputs(task),
            two_texts=len(examples[0].inputs) > 1,
            words=float(statistics.median(lengths)) if any(lengths) else 0.0,
            kind=task.kind,
            backbone=backbone,
            least=least_of(task.metrics[0]),
        )
