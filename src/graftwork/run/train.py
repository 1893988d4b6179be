"""`train`: one run and its task module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from graftwork.core.configured_methods import ConfiguredMethod, parse_method
from graftwork.core.in_memory import beside
from graftwork.core.kind_settings import HEEDED
from graftwork.core.meter import meaning_of
from graftwork.core.method import unfit
from graftwork.core.progress import Progress
from graftwork.core.progress_bar import progress_or_bar
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Task
from graftwork.errors import ConfigError, GraftworkError
from graftwork.io.display import card, table
from graftwork.module.task_module import TaskModule
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings, without_none
from graftwork.train.wrapper_method import takes_a_recipe
from graftwork.units import named_scores, show


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run: its result and its folder."""

    result: RunResult
    folder: Path
    reused: bool  # True if it was in the store already
    warnings: tuple[str, ...] = ()  # of the data report
    unused: tuple[str, ...] = ()  # given settings that had no effect on it
    positive: Mapping[str, str] | None = None  # the class that f1 is of and how it was chosen, as in the data report

    @property
    def module(self) -> TaskModule:
        """The run's task module, loaded and self-tested."""
        return TaskModule.load(self.folder / "module")

    def __repr__(self) -> str:
        return (
            f"Run {self.result.id}: {self.scores} on test; {self.price}\n  In {self.folder}, run.module is its module."
        )

    def _repr_html_(self) -> str:
        told = {name: show(cost.value, cost.unit) for name, cost in self.result.costs.items() if cost.value is not None}
        rows = [(meaning_of(name).title or name.replace("_", " "), text) for name, text in told.items()]
        about = f"In {self.folder}; run.module is its module" + ("; it existed already" if self.reused else "")
        warned = table(("about the data",), [(warning,) for warning in self.warnings]) if self.warnings else ""
        costs = table(("cost", "of this run"), rows)
        return card(f"Run {self.result.id}", [f"{self.scores} on test"], costs, warned, about=about)

    @property
    def scores(self) -> str:
        """The test scores in points, the first with its 95 % interval over examples."""
        positive = self.positive["label"] if self.positive else None
        return named_scores(self.result.scores, self.result.interval, positive=positive)

    @property
    def price(self) -> str:
        """The most important costs: `76.8 k parameters trained, 300 kB stored, 19 s to train`."""
        named = {"trained_parameters": "trained", "stored_bytes": "stored", "train_seconds": "to train"}
        costs = {name: self.result.costs[name] for name in named if name in self.result.costs}
        return ", ".join(f"{show(cost.value, cost.unit)} {named[name]}" for name, cost in costs.items())


@takes_settings
def train(
    task: Any,
    *,
    method: str,
    seed: int = 0,
    learning_rate: float | None = None,
    progress: Progress | None = None,
    **given: Unpack[GivenSettings],
) -> Run:
    """Train `method` once on `task`, a `Task` or what `Task.from_data` takes; a run already in `runs` is reused, also
    one with fewer threads. `learning_rate` None is the method's default. `progress` is called with the fraction done
    and a text; None shows a bar in a notebook or on a terminal, `gw.silent` nothing.

    Raises `GraftworkError` for bad data or settings, and for a run that failed (its receipt is kept).
    """
    chosen, setup = parse_method(method), RunSettings.of(given)
    task = Task.from_data(task, folder=beside(setup.runs))
    require_use_of_rate(chosen, learning_rate)
    with progress_or_bar(progress) as told:
        session = open_session(task, [chosen], setup)
        run = train_in(session, chosen, replace(setup.recipe, learning_rate=learning_rate), seed, told)
    by_recipe = () if takes_a_recipe(chosen.method) else ("epochs", "batch_size")
    unused = [name for name in by_recipe if name in without_none(given)]
    return replace(run, unused=(*unused, *unused_settings(session.dataset.task, run.result)))


def unused_settings(task: Task, result: RunResult) -> tuple[str, ...]:
    """Return the optional settings of the task's kind that this run did not use."""
    given = [name for name in HEEDED if getattr(task.settings, name, None) is not None]
    return tuple(name for name in given if result.status == "ok" and name not in result.facts)


def require_use_of_rate(method: ConfiguredMethod, learning_rate: float | None) -> None:
    """Raise `ConfigError` for a learning rate that the method would not use."""
    if learning_rate is not None and not takes_a_recipe(method.method):
        raise ConfigError(
            f"method {method.label!r} does not take a learning rate",
            got=f"{learning_rate:g}",
            do=f"omit it; graft ls methods {method.config['name']} lists its settings",
        )


def require_fit(session: Session, method: ConfiguredMethod) -> None:
    """Raise `ConfigError` if the method can't be used for the task of this session."""
    reason = unfit(method.method, session.dataset.task, session.backbone.card if session.backbone else None)
    if reason:
        raise ConfigError(
            f"method {method.label!r} can't be used here: {reason}", do="graft ls methods lists the others"
        )


def train_in(session: Session, method: ConfiguredMethod, recipe: Recipe, seed: int, progress: Progress) -> Run:
    """Execute one run of an open session, or reuse it from the store. Raises `GraftworkError` as `train` does."""
    require_fit(session, method)
    session = _as_it_was_run(session, method, recipe, seed)
    result, known = execute(session, method, recipe, seed, progress)
    folder = session.store.root / result.id
    if result.status != "ok":
        raise GraftworkError(
            f"the run ended as {result.status}: {result.error}",
            where=str(folder),
            do="see log.jsonl there; the same command runs it again",
        )
    report = session.dataset.report
    return Run(result, folder, known, tuple(report["warnings"]), positive=report.get("positive"))


def _as_it_was_run(session: Session, method: ConfiguredMethod, recipe: Recipe, seed: int) -> Session:
    """Return the session with the thread count of a stored run of this kind, at most its own; unchanged without one."""
    most = session.numerics["threads"]
    for threads in range(most, 0, -1):
        other = replace(session, numerics={**session.numerics, "threads": threads})
        if session.store.find(other.spec(method, recipe, seed).id) is not None:
            return other
    return session
