"""A run: one task x backbone x method x recipe x seed, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graftwork.core.meter import Cost, Phase
from graftwork.io.files import digest

ENGINE = 5  # raised when the same spec would give another result; 5: equal texts go through a frozen network once


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train: the same rule for every method (see `train/recipe.py`)."""

    epochs: int | None = None  # None: chosen from rows and classes
    batch_size: int = 32  # rows a step
    learning_rate: float | None = None  # None: the method's own
    augment: bool = True  # show images otherwise every epoch, where they run through the whole network
    part: float = 1.0  # of the steps; below 1 where a budget pays for no more
    varied: tuple[str, ...] | None = (
        None  # sources of variation that the seed decides, the others being seed 0's; None: all
    )


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides a result, hence its identity. Two equal specs are the same run. Pure data."""

    question: Mapping[str, Any]  # Task.question()
    data: str  # Dataset.digest
    backbone: str | None  # BackboneCard.revision; None for a method that uses none
    method: Mapping[str, Any]  # {"name": "lora", "version": 1, "rank": 8, …}, every field resolved
    recipe: Mapping[str, Any]  # resolved
    seed: int
    numerics: Mapping[str, Any]  # {"precision": "bf16", "threads": 2, "device": "cpu"}
    held: tuple[str, ...] = ()  # sources of variation drawn as by seed 0, where `seed` is another
    words: int = 1  # the rule of `targets.words` that texts are cut by; 1 too where nothing depends on which it is

    @property
    def id(self) -> str:
        """12 hexadecimal digits: the run's folder name."""
        return digest({"engine": ENGINE} | self.content())[:12]

    def content(self) -> dict[str, Any]:
        """As JSON; what came after the first runs stands there only where it is not as it was for them."""
        return {
            name: value for name, value in asdict(self).items() if (name, value) not in (("held", ()), ("words", 1))
        }


@dataclass(frozen=True)
class RunResult:
    """What a run came to. Failed runs are results too, with a price tag."""

    id: str
    seed: int
    status: str  # "ok" | "failed" | "diverged" | "out_of_memory" | "dropped"
    scores: Mapping[str, float] = field(default_factory=dict)  # metric -> test score, a fraction
    validation: Mapping[str, float] = field(default_factory=dict)  # metric -> validation score
    costs: Mapping[str, Cost] = field(default_factory=dict)  # the price tag: what it would cost alone
    spent: Phase = field(default_factory=Phase)  # what it really took, without the shared work that was there already
    shared: Phase = field(default_factory=Phase)  # that work: what it would have taken more, all by itself
    opening: Phase = field(default_factory=Phase)  # of the backbone, once for all runs of a process
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON: chosen block, epochs run, tokens, head start …
    profile: Mapping[str, float] = field(default_factory=dict)  # phase -> wall seconds; they add up to the run's
    environment: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""  # why it failed
    failure: str = ""  # the class of that error
    interval: tuple[float, float] | None = None  # 95 % of the first test score over other examples; None: not known
