"""A run: one task x backbone x method x recipe x seed, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graftwork.core.meter import Cost, Phase
from graftwork.io.files import digest

ENGINE = 5  # incremented when the same spec would give another result; 5: equal texts pass a frozen network once


@dataclass(frozen=True)
class Recipe:
    """Training length and learning rate: the same rule for every method (see `train/recipe.py`)."""

    epochs: int | None = None  # None: chosen from rows and classes
    batch_size: int = 32  # rows per step
    learning_rate: float | None = None  # None: the method's default
    augment: bool = True  # augment images anew every epoch, if training runs the whole network
    part: float = 1.0  # fraction of the steps; below 1 if the budget allows no more
    varied: tuple[str, ...] | None = None  # sources of variation that use the seed, the others use seed 0; None: all


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a result, hence the run's identity. Equal specs are the same run. Pure data."""

    question: Mapping[str, Any]  # Task.question()
    data: str  # Dataset.digest
    backbone: str | None  # BackboneCard.revision; None for a method that uses none
    method: Mapping[str, Any]  # {"name": "lora", "version": 1, "rank": 8, …}, every field resolved
    recipe: Mapping[str, Any]  # resolved
    seed: int
    numerics: Mapping[str, Any]  # {"precision": "bf16", "threads": 2, "device": "cpu"}
    held: tuple[str, ...] = ()  # sources of variation drawn with seed 0, if `seed` is not 0
    words: int = 1  # version of the word-splitting rule in `targets.words`; also 1 if no result depends on it

    @property
    def id(self) -> str:
        """12 hexadecimal digits: the run's folder name."""
        return digest({"engine": ENGINE} | self.content())[:12]

    def content(self) -> dict[str, Any]:
        """Return the spec as JSON; fields added after the first runs are included only if not the default."""
        return {
            name: value for name, value in asdict(self).items() if (name, value) not in (("held", ()), ("words", 1))
        }


@dataclass(frozen=True)
class RunResult:
    """The result of a run. Failed runs have a result too, with a price tag."""

    id: str
    seed: int
    status: str  # "ok" | "failed" | "diverged" | "out_of_memory"
    scores: Mapping[str, float] = field(default_factory=dict)  # metric -> test score, a fraction
    validation: Mapping[str, float] = field(default_factory=dict)  # metric -> validation score
    costs: Mapping[str, Cost] = field(default_factory=dict)  # the price tag: the cost of the run by itself
    spent: Phase = field(default_factory=Phase)  # time actually spent, without shared work computed earlier
    shared: Phase = field(default_factory=Phase)  # time of that shared work
    opening: Phase = field(default_factory=Phase)  # time to open the backbone, once for all runs of a process
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON: chosen block, epochs run, tokens, head start …
    profile: Mapping[str, float] = field(default_factory=dict)  # phase -> wall seconds; their sum is the run's
    environment: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""  # message of the failure
    failure: str = ""  # class of that error
    interval: tuple[float, float] | None = None  # 95 % interval of the first test score over examples; None: unknown

    @property
    def kept_best_epoch(self) -> bool:
        """Whether it kept the best of several epochs by its validation score, or is a mean of runs that did.

        Not so a network that writes, which keeps the epoch of the least loss; nor one that keeps weights half-way to
        the best epoch, whose own score on validation was never compared (`kept_share`).
        """
        if "validation_is" in self.facts or self.facts.get("kept_share", 1.0) < 1:
            return False
        return ("best_epoch" in self.facts and self.facts.get("epochs") != 1) or "averaged" in self.facts
