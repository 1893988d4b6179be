"""What writing costs: known from targets, and from a batch that is written on trial."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from graftwork.budget.forecaster import Forecaster
from graftwork.budget.writing_costs import WritingSpeed, longest_of
from graftwork.compare.grid import MethodRuns, Runner
from graftwork.compare.run_times import BEFORE_THE_BACKBONE, Pace
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.seeds import derive

TUNED = ("top_layers:k=1", "lora", "full")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Thirty texts of a few words for a tiny T5, whose texts have at most six tokens."""
    place = tmp_path_factory.mktemp("texts")
    rows = [f"the house has {n} doors and a tree,{'n' * (1 + n % 4)} doors" for n in range(30)]
    (place / "texts.csv").write_text("\n".join(["source,target", *rows]), encoding="utf-8")
    task = Task.from_file(place / "texts.csv", kind="generation", longest=6, metrics="exact_match")
    backbone = f"hf:{write_seq2seq(place / 't5')}"
    return open_session(task, [parse_method("full")], RunSettings(backbone, runs=str(place / "runs"), precision="fp32"))


def forecaster(session: Session, epochs: int = 1) -> Forecaster:
    """A forecaster by a clock on which every look takes a second."""
    ticks = iter(range(10**9))
    return Forecaster(session, Recipe(epochs=epochs, batch_size=4), 0, clock=lambda: float(next(ticks)))


def test_the_longest_of_many_texts_is_longer_than_that_of_few() -> None:
    tokens = np.array([128, 10, 10, 10])
    assert longest_of(tokens, 1) == tokens.mean()
    assert longest_of(tokens, 2) == pytest.approx(10 + 118 * (1 - 0.75**2))
    assert longest_of(tokens, 1000) == pytest.approx(128)


def test_a_batch_takes_as_many_steps_as_its_longest_text() -> None:
    speed = WritingSpeed(0.001, (0.02, 0.001), np.array([10, 10]))
    assert speed.seconds(4, 50) == pytest.approx(0.001 * 200 + 10 * (0.02 + 0.004))


def test_targets_count_in_a_step_and_those_of_test_are_not_looked_at(session: Session) -> None:
    known = forecaster(session)
    writing, rows = known.writing, np.arange(4)
    assert writing is not None and writing.targets.keys() == {"train", "validation"}
    assert writing.positions("train", rows) == 4 * writing.targets["train"][:4].max() <= 4 * 6
    epoch, read = known._epoch(known._recipe(parse_method("full"))), known.lengths.of_epoch(4, derive(0, "order"))
    assert all(both > alone for (_, both), (_, alone) in zip(epoch, read, strict=True))
    assert writing.validated() > writing.validated(np.arange(2)) > 0


@pytest.mark.slow
def test_a_run_that_writes_is_forecast(session: Session) -> None:
    known = forecaster(session)
    for words in TUNED:
        parts = known.forecast(parse_method(words)).parts
        assert parts["steps"] > 0 and parts["validation"] > 0 and parts["evaluation"] > 0, words
        assert (parts["prefix"] > 0) == words.startswith("top_layers")
    assert sorted(known.operations(parse_method(words)) for words in TUNED)[0] > 0
    assert forecaster(session, 10).operations(parse_method("full")) > 4 * known.operations(parse_method("full"))


def test_longer_texts_take_longer(session: Session) -> None:
    writing = forecaster(session).writing
    assert writing is not None
    short, long = (WritingSpeed(0.0, (1.0, 0.0), np.array([tokens])) for tokens in (2, 6))
    assert writing.of_run(long) == 3 * writing.of_run(short) > 0
    assert len(writing.untrained.texts) and writing.untrained.texts.max() <= 6


def test_a_comparison_plans_with_writing_before_any_run(session: Session) -> None:
    entries = {name: SimpleNamespace(item=parse_method(name), runs=[], arm=None) for name in ("full", "majority")}
    pace = Pace(cast(Runner, SimpleNamespace(session=session, recipe=Recipe(epochs=1), entries=[])))
    full, majority = (pace.seconds(cast(MethodRuns, entry)) for entry in entries.values())
    assert majority == BEFORE_THE_BACKBONE
    writing = pace._forecaster.writing
    assert writing is not None and full > majority + writing.of_run(writing.untrained)
