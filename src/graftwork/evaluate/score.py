"""Scoring of a finished module on another labelled file: scores with intervals, compared with the majority class, its
own test split and other modules; and the number of rows that occur in its training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.arguments import told_arguments
from graftwork.core.kind_settings import settings_of
from graftwork.core.metric import score as score_of
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import Numbers, Ragged, concatenated, flat
from graftwork.core.task import Task, positive_of
from graftwork.errors import ConfigError
from graftwork.evaluate.coverage import Coverage
from graftwork.evaluate.labelled_file import LabelledFile, file_of, labelled_for, open_labelled
from graftwork.evaluate.score_lines import score_lines
from graftwork.io.display import ShownJson
from graftwork.io.files import canonical
from graftwork.module.abstaining import ANSWER_ALL, Abstaining
from graftwork.module.predict_many import check_roles, logit_windows
from graftwork.module.task_module import TaskModule
from graftwork.module.thresholds import constant_answers
from graftwork.module.trained_on import Overlap
from graftwork.registry import kinds, metrics
from graftwork.run.score_interval import Evidence, RowTally, weigh_together

FEWEST = 6  # minimum rows that two modules predict differently: with fewer, the sign test (2 × ½⁵) is not significant


@told_arguments
def score(
    module: TaskModule | str | Path,
    file: Any,
    *,
    also: Sequence[TaskModule | str | Path] = (),
    columns: Mapping[str, Any] | None = None,
    rejects: str | Path | None = None,
    abstaining: Abstaining = ANSWER_ALL,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Score `module`, and the modules in `also`, on the labelled rows of `file`.

    `file` may be data in memory, as for `Task.from_data`; these are then kept in the folder `frames`.

    Every metric of the task has a 95 % interval over examples (paired bootstrap), the score of the majority class on
    the same rows, and the score on the module's test split; modules in `also` have their differences from the first.
    `columns` names columns by role, and "label"; the default is the names in the module's training file, or the usual
    ones. Unreadable rows go to `rejects`. With `abstaining`, a module has its coverage too, the share of rows that it
    answers, and its precision on these rows. Returns JSON, scores as fractions; described in docs/how-to/new-data.md.

    Raises `DataError` for a file without labels, for unreadable rows and for labels that a module doesn't know,
    `ConfigError` for modules of different tasks, and `GraftworkError` as `TaskModule.load`.
    """
    opened = [one if isinstance(one, TaskModule) else TaskModule.load(one) for one in (module, *also)]
    _require_alike(opened)
    needed = () if rejects else ("text", "label")
    path = file_of(file, opened[0].task, columns or {}, needed)
    source = labelled_for(opened[0], path, columns or {}, Path(rejects) if rejects else None, progress)
    overlaps: dict[str, Overlap] = {}
    for one in opened:
        if _trained_on(one) not in overlaps:
            overlaps[_trained_on(one)] = Overlap(one)
    task = opened[0].task
    tasks = [_asked_as(task, one.task) for one in opened]
    coverage = [Coverage(one, abstaining) for one in opened]
    found = _answers(opened, tasks, source, list(overlaps.values()), progress, coverage)
    targets = found.targets[0]
    first, *others = _score_modules(tasks, found)
    told = [
        _described(one) | {"scores": scored.as_json(), "seen": overlaps[_trained_on(one)].as_json()} | counted.as_json()
        for one, scored, counted in zip(opened, (first, *others), coverage, strict=True)
    ]
    content = {
        "file": str(path),
        "rows": {"scored": source.rows, "rejected": source.rejected, "cut": found.cut},
        **told[0],
        "positive": positive_of(task),
        "majority": _plain_scores(task, targets, constant_answers(task, targets, targets, targets)),
        "also": [one | {"gain": other.gains_over(first)} for one, other in zip(told[1:], others, strict=True)],
    }
    return ShownJson(content, score_lines)


def scores_on(module: TaskModule, task: Task, path: Path) -> dict[str, float]:
    """Return metric -> score on the labelled rows of a file of `task`, which names its columns. Raises as `score`."""
    found = _answers([module], [module.task], open_labelled(task.resolved(data=path), path, module.task.labels))
    return _plain_scores(module.task, found.targets[0], found.predictions[0])


def _plain_scores(task: Task, targets: Numbers, predictions: Numbers) -> dict[str, float]:
    return {name: score_of(metrics.get(name), targets, predictions, task) for name in task.metrics}


def _require_alike(modules: Sequence[TaskModule]) -> None:
    """Raise `ConfigError` for modules that can't be scored on the same rows."""
    check_roles(modules)
    first = modules[0].task
    for module in modules[1:]:
        task = module.task
        if (task.kind, set(task.labels)) != (first.kind, set(first.labels)):
            odd = sorted(set(task.labels) ^ set(first.labels))
            raise ConfigError(
                "these modules have different tasks",
                got=f"{task.name}: {task.kind}" + (f"; only one of the two has {', '.join(odd[:10])}" if odd else ""),
                expected=f"{first.kind} with the labels of {first.name}",
                do="score them one by one",
            )


def _asked_as(first: Task, own: Task) -> Task:
    """Return a module's own task with the label order, the metrics and the settings of the first module's task."""
    given = {name: getattr(first.settings, name) for name in settings_of(first.kind)}
    return own.resolved(labels=first.labels, metrics=first.metrics, **given)


def _in_order(logits: Numbers, own: Sequence[str], labels: Sequence[str]) -> Numbers:
    """Reorder the columns of logits from the labels' order `own` to `labels`."""
    if own == labels:
        return logits
    order = [own.index(label) for label in labels]
    return replace(logits, flat=logits.flat[:, order]) if isinstance(logits, Ragged) else logits[:, order]


@dataclass
class _TargetsAndAnswers:
    """Encoded targets and predictions of each module for the rows of a file."""

    targets: list[Numbers]
    predictions: list[Numbers]
    cut: int  # number of truncated rows


def _answers(
    modules: Sequence[TaskModule],
    tasks: Sequence[Task],
    source: LabelledFile,
    overlaps: Sequence[Overlap] = (),
    progress: Progress = silent,
    coverage: Sequence[Coverage] = (),
) -> _TargetsAndAnswers:
    """Predict window by window with the modules' `tasks`; only encoded targets and predictions are kept per row."""
    targets: list[list[Numbers]] = [[] for _ in modules]
    predictions: list[list[Numbers]] = [[] for _ in modules]
    cut = done = 0
    for window, logits, longer in logit_windows(modules, source.examples()):
        wanted = [example.target for example in window]
        for place, (module, task, found) in enumerate(zip(modules, tasks, logits, strict=True)):
            kind = kinds.get(task.kind)
            targets[place].append(kind.encode(wanted, task))
            ordered = _in_order(found, module.task.labels, task.labels)
            predictions[place].append(kind.predictions(ordered, task))
            if coverage:
                coverage[place].count(kind, ordered, targets[place][-1])
        for overlap in overlaps:
            overlap.count(window)
        cut, done = cut + longer, done + len(window)
        progress(done / source.rows, f"{done:,} of {source.rows:,} rows")
    return _TargetsAndAnswers(
        [concatenated(parts) for parts in targets], [concatenated(parts) for parts in predictions], cut
    )


@dataclass(frozen=True)
class _ScoredModule:
    """A module's predictions, with the evidence for every metric."""

    predictions: Numbers
    tallies: Mapping[str, RowTally]  # metric -> per-example statistics
    evidence: Mapping[str, Evidence]

    def as_json(self) -> dict[str, Any]:
        """Return metric -> score and interval (null if all draws score alike), as JSON."""
        spreads = {name: one.spread or (None, None) for name, one in self.evidence.items()}
        return {
            name: {"score": one.score, "low": spreads[name][0], "high": spreads[name][1]}
            for name, one in self.evidence.items()
        }

    def gains_over(self, first: _ScoredModule) -> dict[str, Any]:
        """Return metric -> this score minus the first one's, its interval, and the verdict on this one.

        Differing rows are those with different predictions and different statistics. For a correlation the statistics
        alone would not do: a row's statistics depend on its rank among all rows, which other rows change.
        """
        gains, answered = {}, differing(self.predictions, first.predictions)
        for name, one in self.evidence.items():
            low, high = one.gain_over(first.evidence[name])
            scored = self.tallies[name].differing(first.tallies[name])
            rows = int((answered & scored).sum())
            gains[name] = {
                "delta": one.score - first.evidence[name].score,
                "low": low,
                "high": high,
                "differing": rows,
                "verdict": verdict(low, high, rows),
            }
        return gains


def _score_modules(tasks: Sequence[Task], found: _TargetsAndAnswers) -> list[_ScoredModule]:
    """Compute every module's evidence for each metric, the same for all tasks, on the same bootstrap samples."""
    names = tasks[0].metrics
    tallies = [
        {name: RowTally.of(metrics.get(name).statistics(targets, predictions, task)) for name in names}
        for task, targets, predictions in zip(tasks, found.targets, found.predictions, strict=True)
    ]
    evidence = iter(weigh_together([(tally[name], metrics.get(name)) for tally in tallies for name in names]))
    return [
        _ScoredModule(predictions, tally, {name: next(evidence) for name in names})
        for predictions, tally in zip(found.predictions, tallies, strict=True)
    ]


def differing(predictions: Numbers, others: Numbers) -> NDArray[np.bool_]:
    """Return (N,) bool, True for the examples predicted differently, in any of their words or choices."""
    rows = flat(predictions) != flat(others)
    if rows.ndim == 2:
        rows = rows.any(axis=1)
    return predictions.sums(rows) > 0 if isinstance(predictions, Ragged) else rows


def verdict(low: float, high: float, differing: int) -> str:
    """Return the verdict on a difference with this interval and this number of differently predicted rows."""
    if differing < FEWEST or low <= 0 <= high:
        return "cannot tell"
    return "better" if low > 0 else "worse"


def _trained_on(module: TaskModule) -> str:
    return canonical(module.description.get("data"))


def _described(module: TaskModule) -> dict[str, Any]:
    told = module.description
    return {
        "module": str(module.folder),
        "task": module.task.name,
        "method": told["method"]["name"],
        "run": told.get("run"),
        "own_test": dict(told["scores"]) or None,
    }
