"""Training the tasks of a stream into a bank: each adds a module and leaves the earlier ones unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.forgetting import figures
from graftwork.bank.integrity import UnchangedCheck
from graftwork.bank.stream_history import History, Row
from graftwork.bank.stream_tasks import How, StreamTask, of_this_task
from graftwork.bank.task_version import PlacedTask, state_with
from graftwork.core.meter import Stopwatch
from graftwork.core.progress import Progress
from graftwork.core.task import Dataset, positive_of
from graftwork.errors import StorageError
from graftwork.io.files import digest
from graftwork.machine.environment import numerics
from graftwork.registry import kinds
from graftwork.run.run_checkpoint import computed_in
from graftwork.run.score_interval import evidence_of
from graftwork.run.session import OpenBackbone
from graftwork.run.store import read_logits
from graftwork.run.train import Run, train_in


class IntoBank:
    """A learner with one process, one backbone and one store of its forward passes for all tasks and self-tests."""

    def __init__(self, how: How, shared: OpenBackbone, bank: Path, folder: Path):
        """Open or create the bank at `bank`; `folder` is that of `stream.json`.

        Raises `IncompatibleModule` for a bank with another backbone, or with a task that differs from its record.
        """
        self.how, self.shared = how, shared
        self.history = History(folder / "stream.json", {"bank": bank.name} | how.identity(shared))
        self.store = BankFolder(bank) if (bank / "bank.json").exists() else BankFolder.create(bank)
        chosen = numerics(how.setup.precision, how.setup.device, how.method.method.uses_backbone)
        if shared.backbone is not None:
            module = {"backbone": asdict(shared.backbone.card), "precision": chosen["precision"]}
            state_with(module | {"backbone_seed": 0}, self.store.state(), bank)  # fail before training
        self._arithmetic = digest(computed_in(chosen))
        noted: Mapping[str, Any] = self.history.more.get("self_tests", {})
        comparable = noted.get("arithmetic") == self._arithmetic
        known = noted["tasks"] if comparable else {}
        self.unchanged = UnchangedCheck(self.store, chosen["device"], shared.backbone, known)

    def take(self, asked: StreamTask, progress: Progress) -> Row:
        """Train one task unless the bank has it, add it, and compare all others with their records.

        Raises `TaskFailed`, `StorageError`, and `IncompatibleModule` where a task has changed.
        """
        session = self.how.session(asked, self.shared)
        if session.frozen is not None:
            session.frozen.forget_all_but(session.dataset.digest)
        name, question = asked.task.name, self.how.question(asked, session)
        known = self._earlier_row(name, question)
        if known is not None:
            return known | {"reused": True}
        with of_this_task((StorageError,)):
            run = train_in(session, self.how.method, self.how.recipe(asked), self.how.seed, progress)
        progress(1.0, "comparing the others")
        placed, adding = self._add(run, name)
        watch = Stopwatch()
        compared = self.unchanged.compare(added=name)
        row: Row = {"task": name, "kind": session.dataset.task.kind, "question": question} | _results_of(
            run, session.dataset
        )
        row |= {"version": placed.version, "digest": placed.digest, "bytes": placed.bytes}
        row["seconds"] |= {"add": adding, "compare": watch.read().wall_seconds}
        row["earlier"] = {"compared": compared, "identical": True}  # otherwise `compare` raised
        held = self.store.state().tasks
        others = [other for other in self.history.rows.values() if other["task"] != name and _answers(held, other)]
        scores = [other["score"]["score"] for other in others]
        scores.append(row["score"]["score"])
        row["figures"] = asdict(figures([scores[: i + 1] for i in range(len(scores))]))
        self.history.more["self_tests"] = {"arithmetic": self._arithmetic, "tasks": self.unchanged.notes}
        self.history.put(row)
        return row

    def _earlier_row(self, name: str, question: str) -> Row | None:
        """Return the row of a task that an earlier command added, if that version is still the bank's current one."""
        row = self.history.rows.get(name)
        if row is None or row["question"] != question:
            return None
        return row if _answers(self.store.state().tasks, row) else None

    def _add(self, run: Run, name: str) -> tuple[PlacedTask, float | None]:
        """Add the run's module; return its bank entry and the seconds, None if an interrupted command had added it."""
        placed = self.store.state().tasks.get(name)
        if placed is not None and self.store.entry(name).description["run"] == run.result.id:
            return placed, None
        watch = Stopwatch()
        self.store.add(run.folder / "module", name, self.unchanged.open)
        seconds = watch.read().wall_seconds
        return self.store.state().tasks[name], seconds


def _answers(held: Mapping[str, PlacedTask], row: Row) -> bool:
    """Return whether the version in the row is the current one in the bank."""
    placed = held.get(row["task"])
    return placed is not None and (placed.version, placed.digest) == (row["version"], row["digest"])


def _results_of(run: Run, data: Dataset) -> Row:
    """Return the results of the run as part of a row."""
    evidence = evidence_of(data, "test", read_logits(run.folder, "test", kinds.get(data.task.kind)))
    low, high = evidence.interval
    return {
        "run": run.result.id,
        "metric": data.task.metrics[0],
        "positive": positive_of(data.task),
        "score": {"score": evidence.score, "low": low, "high": high},
        "scores": dict(run.result.scores),
        "rows": {name: len(split.examples) for name, split in data.splits.items()},
        "trained_parameters": run.result.costs["trained_parameters"].value,
        "seconds": {
            "train": run.result.costs["train_seconds"].value,
            "run": None if run.reused else run.result.spent.wall_seconds,
        },
    }
