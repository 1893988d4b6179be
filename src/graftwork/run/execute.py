"""Execution of one run: fit, predict the test split once, store the module, read the price tag, write the receipt."""

from __future__ import annotations

import io
import json
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.meter import Phase, Readings, Stopwatch
from graftwork.core.method import Fitted, Logits, Scorer, Setting, Workbench
from graftwork.core.profile import Profile
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import add_to_first_rows
from graftwork.core.run import Recipe, RunResult, RunSpec
from graftwork.core.task import Split
from graftwork.core.writing import reading_part
from graftwork.data.splits.batch_order import epoch_batches
from graftwork.errors import GraftworkError, StorageError
from graftwork.io.files import OF_THE_DISK, header_of, storage_error, write_text
from graftwork.machine.environment import environment
from graftwork.machine.memory import Memory, give_back, is_large, ran_out
from graftwork.module.calibration import CALIBRATION, at_temperature, calibration_of, temperature_of
from graftwork.module.confidence import held_out_summary
from graftwork.module.module_files import DELTA
from graftwork.module.task_module import add_price_tag, save_module, self_test_examples
from graftwork.module.thresholds import thresholds_of, with_thresholds
from graftwork.module.trained_on import record
from graftwork.registry import kinds
from graftwork.run.answer_speed import predict_speed
from graftwork.run.earlier_training import earlier_training
from graftwork.run.price_tag import begin_all, read_costs, read_stopping_meters, with_prices
from graftwork.run.receipt import NOTHING_TRIED, SearchRecord, data_of, write_receipt
from graftwork.run.run_checkpoint import RunCheckpoint, computed_in
from graftwork.run.score_interval import evidence_of
from graftwork.run.session import Session
from graftwork.run.store import write_predictions, write_run
from graftwork.train.checkpoint_files import Checkpoints
from graftwork.train.seeds import seeds_of

SECONDS_BETWEEN_LOOKS = 0.2  # polling interval for a run that another process executes


def execute(
    session: Session,
    method: ConfiguredMethod,
    recipe: Recipe,
    seed: int,
    progress: Progress,
    search: SearchRecord = NOTHING_TRIED,
) -> tuple[RunResult, bool]:
    """Return the result of a run, and True if it was in the store already. Failures are results, interrupts are not.

    `search` records the trials before it, for the receipt. Waits for a run that another process executes.
    """
    while (done := execute_if_free(session, method, recipe, seed, progress, search)) is None:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return done


def execute_if_free(
    session: Session,
    method: ConfiguredMethod,
    recipe: Recipe,
    seed: int,
    progress: Progress,
    search: SearchRecord = NOTHING_TRIED,
) -> tuple[RunResult, bool] | None:
    """As `execute`, but return None without waiting while another process executes the run."""
    spec = session.spec(method, recipe, seed)
    known = session.store.find(spec.id)
    if known is None:
        with session.store.claim(spec.id) as ours:
            if not ours:
                progress(0.0, "another process is at it")
                return None
            known = session.store.find_claimed(spec.id)  # finished meanwhile
            if known is None:
                return execute_spec(session, method, spec, progress, search), False
    _forget(session.store.checkpoint(spec.id))
    return with_prices(known, session.prices), True


def execute_spec(
    session: Session, method: ConfiguredMethod, spec: RunSpec, progress: Progress, search: SearchRecord = NOTHING_TRIED
) -> RunResult:
    """Execute the run of `spec`, in a session over its data and backbone, into the session's store.

    An interrupted run resumes from its last checkpoint, with the same result as without the interruption.
    """
    began = datetime.now(UTC)
    data_of(session)  # hash the files now, not when the run ends: they may be edited meanwhile
    with session.store.writing(spec.id) as folder:
        result = _Execution(session, method, spec, folder, progress).run()
        write_receipt(folder, session, method, spec, result, search, began)
        write_run(folder, spec, result)
    _forget(session.store.checkpoint(spec.id))
    if is_large():
        give_back()  # the C library would keep what a training has freed, for as long as the process has further runs
    return result


def _forget(checkpoints: Path) -> None:
    shutil.rmtree(checkpoints, ignore_errors=True)


def workbench(session: Session, method: ConfiguredMethod, recipe: Recipe, seed: int) -> Workbench:
    """Return the workbench in which `execute` would fit this run, to study a fit by itself. Nothing is written."""
    spec = session.spec(method, recipe, seed)
    return _Execution(session, method, spec, session.store.root / spec.id, silent).bench()


class _Execution:
    """One run in progress: the folder it fills and its readings so far."""

    def __init__(self, session: Session, method: ConfiguredMethod, spec: RunSpec, folder: Path, progress: Progress):
        self.session, self.method, self.spec, self.folder, self.progress = session, method, spec, folder, progress
        task = session.dataset.task
        backbone, load = (session.backbone, {"load": session.load}) if method.method.uses_backbone else (None, {})
        self.setting = Setting(task, kinds.get(task.kind), backbone)
        self.readings = Readings(load, loaded_before=True, runs_at_once=session.runs_at_once)
        self.log = io.StringIO()
        self.watch, self.profile = Stopwatch(), Profile()
        self.memory = Memory(session.max_memory, session.cuts)
        self.keeping: RunCheckpoint | None = None
        self.earlier, self.attempts = Phase(), 1  # time of interrupted attempts; number of attempts
        self.shared = Phase()  # time of shared work that was computed earlier
        self.begun: dict[str, Any] = {}  # the marks of the meters
        self.marks: dict[str, Any] = {}  # the same, as of the end of the last phase

    def run(self) -> RunResult:
        """Execute the run, catching failures: a failed run has a price tag too."""
        with self.profile.phase("meter"):
            self.begun = self.marks = begin_all()
        parts: dict[str, Any] = {"status": "ok"}
        try:
            parts |= self._work()
        except StorageError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in OF_THE_DISK:
                raise storage_error(error, str(error.filename or self.folder)) from error
            name = type(error).__name__
            parts = {"status": _status(error), "error": str(error) or name, "failure": name}
            parts["facts"] = self.memory.facts() | self.memory.in_parts()
            if not isinstance(error, GraftworkError):
                self._log({"traceback": traceback.format_exc()})
        if self.attempts > 1:
            parts["facts"] = {**parts.get("facts", {}), "attempts": self.attempts}
        with self.profile.phase("meter"):
            costs = read_costs(self.marks, self.readings, self.session.prices)
            surroundings = environment() | {"runs_at_once": self.session.runs_at_once} | self.session.prices.as_json()
        with self.profile.phase("write"):
            write_text(self.folder / "log.jsonl", self.log.getvalue())
            if (self.folder / "module" / "module.json").is_file():
                add_price_tag(self.folder / "module", {name: asdict(cost) for name, cost in costs.items()})
        return RunResult(
            id=self.spec.id,
            seed=self.spec.seed,
            costs=costs,
            spent=self.watch.read() + self.earlier,
            shared=self.shared,
            opening=self.readings.phases.get("load", Phase()),
            profile=self.profile.read(),
            environment=surroundings,
            **parts,
        )

    def _work(self) -> dict[str, Any]:
        bench = self.bench()
        place = self.session.store.checkpoint(self.spec.id)
        checkpoints = Checkpoints(place, self.spec.id, partial(computed_in, self.session.numerics))
        self.keeping = bench.keeper = RunCheckpoint(checkpoints, self.log, bench)
        try:
            with self._phase("fit"):
                fitted = self.method.method.fit(bench)
        finally:
            self.earlier, self.attempts = self.keeping.earlier, self.keeping.attempts
            self.shared.add(bench.charged)
            bench.charged.add(self.earlier)
            self.readings.charged = bench.charged
            self.readings.train_flops, self.readings.padding_flops = bench.tally.flops, bench.tally.padding_flops
            self.readings.train_flops_grade = bench.tally.grade
        self.readings.trained_parameters = fitted.trained_parameters
        self.progress(1.0, "evaluating")
        data = self.session.dataset
        with self._phase("evaluate"), self.profile.phase("evaluate"):
            logits = fitted.logits(data.validation.examples)
            thresholds = thresholds_of(self.setting, logits, data.validation.targets)
            fitted = with_thresholds(fitted, thresholds)
            checked = logits if thresholds is None else add_to_first_rows(logits, thresholds)
            answers = [(data.validation, checked), (data.test, self._tested(fitted, data.test))]
        scores = {split.name: self._scores(split, logits) for split, logits in answers}
        with self._phase("save"), self.profile.phase("write"):
            kind, task = self.setting.kind, self.setting.task
            costs = getattr(task.settings, "costs", None)
            calibration = calibration_of(kind, {s.name: (x, s.targets) for s, x in answers}, costs)
            told = {CALIBRATION: calibration} if calibration else {}
            tempered = [(s, at_temperature(logits, temperature_of(told))) for s, logits in answers]
            decoded = {s.name: kind.decode(logits, task, s.examples) for s, logits in tempered}
            write_predictions(self.folder, answers, decoded)
            self._save(fitted, scores["test"], decoded, told)
        with self.profile.phase("meter"):
            self.readings = replace(self.readings, **predict_speed(fitted, data.test.examples))
            interval = evidence_of(data, "test", answers[-1][1]).spread
        facts = self._facts(fitted) | bench.memory.in_parts() | bench.heeded
        return {"validation": scores["validation"], "scores": scores["test"], "interval": interval, "facts": facts}

    def _tested(self, fitted: Fitted, test: Split) -> Logits:
        """Return the logits of the test split; work shared with an earlier run is charged in full."""
        once = self.session.tested
        if once is None:
            return fitted.logits(test.examples)
        from graftwork.train.probe import Probe

        if not isinstance(fitted, Probe) or not once.serves(fitted.backbone, test.examples):
            return fitted.logits(test.examples)
        logits, charged = once.logits(fitted)
        self.readings.charged_evaluate.add(charged)
        self.shared.add(charged)
        return logits

    def bench(self) -> Workbench:
        """Return the method's workbench."""
        data = self.session.dataset
        backbone, frozen = self.setting.backbone, self.session.frozen
        return Workbench(
            setting=self.setting,
            train=data.train,
            validation=data.validation,
            seed=self.spec.seed,
            recipe=self.spec.recipe,
            order=partial(epoch_batches, self.spec.recipe, seeds_of(self.spec.seed, self.spec.held)["order"]),
            passes=frozen.of(reading_part(backbone), data.digest)
            if backbone is not None and frozen is not None
            else None,
            score=Scorer(data.task.metrics[0], self.setting, data.validation),
            log=self._log,
            progress=self.progress,
            profile=self.profile,
            shared=self.session.done,
            held=self.spec.held,
            memory=self.memory,
            earlier=partial(earlier_training, self.session, self.spec),
        )

    def _facts(self, fitted: Fitted) -> dict[str, Any]:
        """Return the method's facts, how the frozen blocks were run, and the rows dropped from train."""
        backbone, dropped = self.setting.backbone, self.session.dataset.report.get("dropped")
        leaks = {"dropped_from_train": dropped} if dropped else {}  # the data's digest covers the remaining rows
        frozen = {"frozen": _frozen_fact(backbone, fitted.facts)} if backbone else {}
        return _small(fitted.facts) | frozen | leaks

    def _scores(self, split: Split, logits: Logits) -> dict[str, float]:
        return {metric: Scorer(metric, self.setting, split)(logits) for metric in self.setting.task.metrics}

    def _save(
        self,
        fitted: Fitted,
        scores: Mapping[str, float],
        decoded: Mapping[str, list[dict[str, Any]]],
        calibration: Mapping[str, Any],
    ) -> None:
        data = self.session.dataset
        held = [example for name in decoded for example in data.splits[name].examples]
        examples = self_test_examples(self.folder / "module", self.session.dataset.test.examples)
        about = {
            "run": self.spec.id,
            "method": dict(self.spec.method),
            "recipe": dict(self.spec.recipe),
            "precision": self.session.numerics["precision"],
            "backbone_seed": self.session.backbone_seed,
            "scores": dict(scores),
            "trained_parameters": fitted.trained_parameters,
            "data": record(data),
            "held_out": held_out_summary(held, [answer for answers in decoded.values() for answer in answers]),
        } | dict(calibration)
        module = self.folder / "module"
        self.readings.stored_bytes = save_module(module, self.setting, fitted, about, examples, fitted.logits(examples))
        self.readings.stored_parameters = sum(header_of(module / DELTA).numbers.values())

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        watch = Stopwatch()
        try:
            with self.memory.answering(name):
                yield
        finally:
            self.readings.phases.setdefault(name, Phase()).add(watch.read())
            with self.profile.phase("meter"):
                self.marks = read_stopping_meters(self.begun)

    def _log(self, line: Mapping[str, Any]) -> None:
        self.log.write(json.dumps(line) + "\n")


def _status(error: Exception) -> str:
    from graftwork.train.loop import Diverged

    if isinstance(error, Diverged):
        return "diverged"
    return "out_of_memory" if ran_out(error) else "failed"


def _frozen_fact(backbone: Backbone, facts: Mapping[str, Any]) -> str:
    """Describe how the frozen blocks were run."""
    card, start = backbone.card, facts.get("start_block")
    if start is None:
        return "in eval mode, once for all epochs: every block is frozen, their features are kept"
    if 0 < start < card.blocks:
        return f"in eval mode, once for all epochs: training starts from the kept states entering block {start}"
    shared = ": the blocks share their weights, so training can't start from kept states" if card.shared_blocks else ""
    return f"{'with dropout' if 'dropout' in facts else 'in eval mode'}; computes in full{shared}"


def _small(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts without long lists (a vocabulary), which only the module keeps."""
    return {key: value for key, value in facts.items() if not (isinstance(value, list) and len(value) > 100)}
