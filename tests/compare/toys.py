"""Methods that answer as well as they are told to, and comparisons of them.

What a run of one takes, and what its training costs, stands in `SECONDS`: no test hangs on how fast a machine is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from graftwork.compare import leaderboard
from graftwork.compare.grid import Grid, MethodRuns, Runner
from graftwork.compare.search import Search
from graftwork.compare.workers import Crew, RunOrder
from graftwork.config import Prices
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.meter import Phase
from graftwork.core.method import Setting, Workbench
from graftwork.core.run import Recipe
from graftwork.decision.earlier_boards import Experience
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import methods
from graftwork.run.score_interval import Evidence
from graftwork.run.session import Session
from graftwork.run.store import RunStore
from graftwork.testing import tiny_dataset
from graftwork.train.frozen_pass import FrozenStore

DATA = tiny_dataset(rows=240)  # 120 rows of validation, 120 of test
BACKBONE = open_backbone("tiny_text", precision="fp32")
RECIPE = Recipe(epochs=1, batch_size=8)
SKILLS = {"simple": 0.65, "probe": 0.7, "poor": 0.55, "fair": 0.8, "near": 0.94, "able": 0.95}
SECONDS = {"majority": 0.001, "simple": 0.01, "probe": 0.1, "poor": 5.0, "fair": 6.0, "near": 8.0, "able": 40.0}
SECONDS_OF = Search.seconds  # as it is without these
# No earlier boards, and methods that change the network may differ much: what nobody has looked at is worth a look.
OPEN = Prior(Sizes(tuned=0.4, name=0.4, task_name=0.3), Experience())


@dataclass
class Answers:
    """Right on a share of the examples: those of a lesser skill are among those of a greater."""

    skill: float
    on_test: float
    seed: int
    labels: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    trained_parameters: int = 1

    def logits(self, examples: Sequence[Example]) -> Any:
        rows = [np.eye(2)[self.labels.index(str(example.target))] for example in examples]
        right = map(self.right, examples)
        return np.array([row if well else 1 - row for row, well in zip(rows, right, strict=True)])

    def right(self, example: Example) -> bool:
        luck = (zlib.crc32(example.id.encode()) / 2**32 + 0.003 * self.seed) % 1
        return luck < (self.on_test if example.id.startswith("test/") else self.skill)

    def delta(self) -> dict[str, Any]:
        return {"x": torch.zeros(1)}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        return 1.0, "model"


@dataclass(frozen=True)
class Simple:
    """A method without a backbone."""

    skill: float = SKILLS["simple"]
    later: float = -1.0  # its skill from the second seed on, where that is another
    on_test: float = -1.0  # its skill on test, where that is another
    fails_from: int = 99  # the first seed of which the run fails

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False

    def unfit(self, task: Any, card: Any) -> str:
        return ""

    def fit(self, bench: Workbench) -> Answers:
        if bench.seed >= self.fails_from:
            raise RuntimeError("no luck")
        skill = self.skill if self.later < 0 or bench.seed == 0 else self.later
        return Answers(skill, skill if self.on_test < 0 else self.on_test, bench.seed, bench.setting.task.labels)

    def restore(self, setting: Setting, delta: Any, facts: Mapping[str, Any]) -> Answers:
        raise AssertionError("nothing is restored here")


def on_the_backbone(share: float, tuned: bool) -> type:
    """The same as a method that reads the backbone, or, for all that anybody can see, changes it."""

    @dataclass(frozen=True)
    class Reads:
        skill: float = share
        later: float = -1.0
        on_test: float = -1.0
        fails_from: int = 99
        learning_rate: float = 1e-3
        epochs: int = 0  # from which it says that it kept the first; 0: it says nothing

        VERSION: ClassVar[int] = 1
        uses_backbone: ClassVar[bool] = True

        def unfit(self, task: Any, card: Any) -> str:
            return ""

        def fit(self, bench: Workbench) -> Answers:
            made = Simple(self.skill, self.later, self.on_test, self.fails_from).fit(bench)
            return replace(made, facts={"best_epoch": 1, "epochs": self.epochs}) if self.epochs else made

        def restore(self, setting: Setting, delta: Any, facts: Mapping[str, Any]) -> Answers:
            raise AssertionError("nothing is restored here")

    if tuned:
        Reads.attach = lambda self, model: None  # type: ignore[attr-defined]
    return Reads


@dataclass(frozen=True)
class Over:
    """A method over another one: it shows something of that one, and is no use by itself."""

    skill: float = 0.99
    by: str = "able"

    CONTROL: ClassVar[bool] = True
    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Any, card: Any) -> str:
        return ""

    def fit(self, bench: Workbench) -> Answers:
        return Simple(self.skill).fit(bench)

    def restore(self, setting: Setting, delta: Any, facts: Mapping[str, Any]) -> Answers:
        raise AssertionError("nothing is restored here")


def open_session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """With these methods registered, their seconds as `SECONDS` says, and a prior that knows nothing."""
    for name in ("runs", "here"):
        (folder / name).mkdir()
    monkeypatch.chdir(folder / "here")  # the data's folder, of which every file is recorded
    monkeypatch.setitem(methods._parts, "simple", Simple)
    monkeypatch.setitem(methods._parts, "over", Over)
    for name in ("probe", "poor", "fair", "near", "able"):
        monkeypatch.setitem(methods._parts, name, on_the_backbone(SKILLS[name], tuned=name != "probe"))
    add = Standing.add

    def priced(self: Standing, arm: Arm, evidence: Evidence, seconds: float | None, kept_best_epoch: bool) -> None:
        add(self, arm, evidence, SECONDS[arm.name], kept_best_epoch)

    monkeypatch.setattr(Standing, "add", priced)
    monkeypatch.setattr(Search, "seconds", lambda self, arm: SECONDS[arm.name])
    monkeypatch.setattr(Prior, "load", lambda data="": OPEN)
    numerics = {"precision": "fp32", "threads": 1, "device": "cpu"}
    return Session(DATA, BACKBONE, 0, Phase(), RunStore(folder / "runs"), FrozenStore(), numerics, Prices())


@dataclass
class Comparison:
    """One over a session, and what it did."""

    session: Session
    words: str  # the methods, separated by commas
    seeds: int = 5
    worth: float = 0.005
    crew: Crew | None = None
    begun: list[tuple[str, int]] = field(default_factory=list)  # (label, seed) of every run, in the order of beginning
    ended: list[str] = field(default_factory=list)  # the label of every run that has ended
    when_begun: Callable[[RunOrder], None] = lambda order: None

    def __post_init__(self) -> None:
        self.runner = Runner(self.session, [parse_method(word) for word in self.words.split(",")], RECIPE, self.crew)
        self.search = Search(self.runner, self.seeds, self.worth, self.told, self.has_ended)

    def told(self, order: RunOrder, done: float, text: str) -> None:
        if text == "starting":
            self.begun.append((order.label, order.seed))
            self.when_begun(order)

    def has_ended(self, entry: MethodRuns) -> None:
        self.ended.append(entry.item.label)

    def chosen(self) -> str:
        """The label of the method to use."""
        return self.runner.standing.choice(self.worth).chosen.label

    def runs(self) -> dict[str, int]:
        """How many runs of each method went through."""
        return {entry.item.label: sum(run.status == "ok" for run in entry.runs) for entry in self.runner.entries}

    def board(self, grid: Grid) -> dict[str, Any]:
        """What is written of it."""
        sources = ("init", "order", "augmentation")
        page = leaderboard._Page(self.session, self.session.store.root, self.worth, (), sources, sources)
        return page._content(grid, grid.rows(self.session), 200)
