"""What tests of runs share: toy data as files, and an open session over them."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting, Workbench
from graftwork.core.task import Task
from graftwork.methods.majority import Constant, Majority
from graftwork.registry import methods
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.testing import tiny_dataset

Write = Callable[..., Path]
OpenSession = Callable[..., Session]
DURING: dict[str, Callable[[Workbench], None]] = {}  # what the method `staged` does while it fits


@dataclass(frozen=True)
class Staged:
    """The majority baseline, with whatever a test wants to happen in the middle of it."""

    act: str = "nothing"

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False

    def unfit(self, task: Any, card: Any) -> str:
        return "it was told not to" if self.act == "unfit" else ""

    def fit(self, bench: Workbench) -> Constant:
        DURING.get(self.act, lambda bench: None)(bench)
        fitted = Majority().fit(bench)
        if self.act == "odd facts":
            fitted.facts = {"a": object()}  # no JSON
        return fitted

    def restore(self, setting: Setting, delta: dict[str, Any], facts: Any) -> Constant:
        return Majority().restore(setting, delta, facts)


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[Workbench], None]]:
    """`during["act"] = function`, and the method `staged:act=act` calls it."""
    monkeypatch.setitem(methods._parts, "staged", Staged)
    DURING.clear()
    return DURING


def write_toy(folder: Path, kind: str = "classification", pair: bool = False, rows: int = 30) -> Path:
    """A toy data set as a CSV file."""
    data = tiny_dataset(kind, pair=pair, rows=rows)
    path = folder / f"{kind}{'_pair' if pair else ''}.csv"
    examples = [example for split in data.splits.values() for example in split.examples]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*examples[0].inputs, "label"])
        for number, example in enumerate(examples):  # a number of its own makes every text another one
            texts = [f"{text} {number}" for text in example.inputs.values()]
            target = example.target
            writer.writerow([*texts, "|".join(target) if isinstance(target, tuple) else str(target)])
    return path


def open_toy(folder: Path, kind: str, pair: bool, precision: str, runs: str) -> Session:
    """A session over toy data and `tiny_text`."""
    task = Task.from_file(write_toy(folder, kind, pair), kind=kind)
    return open_session(
        task, [parse_method("lora")], RunSettings("tiny_text", runs=str(folder / runs), precision=precision)
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a toy data set as a CSV file."""
    return functools.partial(write_toy, tmp_path)


@pytest.fixture
def open_tiny(tmp_path: Path) -> OpenSession:
    """Opens a session over toy data and `tiny_text`."""

    def opened(
        kind: str = "classification", pair: bool = False, precision: str = "fp32", runs: str = "runs"
    ) -> Session:
        return open_toy(tmp_path, kind, pair, precision, runs)

    return opened


@pytest.fixture(scope="session")
def kept_session(tmp_path_factory: pytest.TempPathFactory) -> OpenSession:
    """As `open_tiny`, and the same session for whoever asks: a run may be there already, and nobody changes one."""

    @functools.cache
    def opened(kind: str = "classification", pair: bool = False, precision: str = "fp32") -> Session:
        return open_toy(tmp_path_factory.mktemp("session"), kind, pair, precision, "runs")

    return opened
