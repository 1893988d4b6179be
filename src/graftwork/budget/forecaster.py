"""Forecasts of run times: a few real steps of a run, timed on this machine and extrapolated.

The FLOPs of a method are known, but not their speed, which depends on the machine, its load, the lengths of the texts
and on what is frozen. So a method is fitted to a sample (a few batches in the run's own order, each length at least
twice), and the times of its calls are extrapolated. A step is taken to cost a + b x padded tokens seconds.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from graftwork.budget.batch_lengths import TIMED_AT_ONCE, Lengths, Rows
from graftwork.budget.convex_costs import ConvexCosts
from graftwork.budget.forecast import Forecast
from graftwork.budget.pilot import Timer, Trace, fit_pilot, median_seconds
from graftwork.budget.step_times import step_times
from graftwork.budget.writing_costs import WritingCosts
from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.configured_methods import ConfiguredMethod, parse_method
from graftwork.core.kind import WritesTexts
from graftwork.core.method import Fitted, NetworkMethod, Over, Setting
from graftwork.core.model import Model
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe
from graftwork.core.task import Split
from graftwork.core.writing import reading_part
from graftwork.io.files import write_bytes
from graftwork.machine.environment import environment
from graftwork.module.task_module import SELF_TEST_EXAMPLES
from graftwork.registry import kinds
from graftwork.run import answer_speed
from graftwork.run.session import Session
from graftwork.train.flops import count_flops
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.loop import Attaches, build_model
from graftwork.train.probe import MIX, Probe
from graftwork.train.scalar_mix_layer import BATCH
from graftwork.train.seeds import derive
from graftwork.train.text_loop import FittedWriter
from graftwork.train.wrapper_method import OtherReading, innermost, method_by, trainings

SHARE = 0.015  # share of a run's steps that are timed
MANY_STEPS = 600  # runs with at least this many steps are timed at three lengths, others at two
REPEATS = (2, 4)  # timings per length after its warm-up: at least, at most
PASS_SHARE, PASS_TOKENS = 0.01, (256, 2048)  # share of a frozen pass's tokens that are timed, within these bounds
ROWS_SHARE, ROWS_AT_LEAST = 0.05, 50  # share and minimum of the rows that a method without a backbone is timed on
FILES = 8  # files that a run writes, for any method
TRAINING = ("building", "steps", "validation")  # parts of a forecast that every training of a run repeats


class Forecaster:
    """A forecaster of runs with one session, one recipe and one seed. What several runs share is measured once."""

    def __init__(self, session: Session, recipe: Recipe, seed: int, clock: Timer = time.perf_counter):
        self.session, self.recipe, self.seed, self.clock = session, recipe, seed, clock
        task = session.dataset.task
        self.kind = kinds.get(task.kind)
        self.setting = Setting(task, self.kind, session.backbone)
        self.planned: Sequence[ConfiguredMethod] = ()  # candidate methods; emptied once their frozen pass has its depth
        self._others: dict[str, Forecaster] = {}  # name of an `OtherReading` method -> the forecaster on its backbone

    @cached_property
    def _shortest(self) -> tuple[int, Inputs, tuple[Tensor, ...], float]:
        """The index of train's shortest example, its inputs, its hidden states, and the FLOPs of all blocks on it."""
        encoded = self.lengths.encoded["train"]
        row = int(np.argmin(encoded.lengths))
        inputs = self.backbone.collate(encoded, encoded.sequences([row]))
        with torch.no_grad():
            return row, inputs, *count_flops(lambda: self.backbone.states(inputs))

    def operations(self, method: ConfiguredMethod) -> float:
        """Estimate the FLOPs of the fit from one short example: enough to order methods before they are timed."""
        if not method.method.uses_backbone:
            return 0.0
        if isinstance(method.method, OtherReading):
            return self._other(method).operations(parse_method(cast(Over, method.method).by))
        if isinstance(method.method, Over) and isinstance(method_by(method.method.by), OtherReading):
            return trainings(method.method) * self.operations(parse_method(method.method.by))
        if self.session.frozen is not None and self.planned:  # the probe and the costliest method share one pass
            self.session.frozen.keeps, self.planned = self.first_start(self.planned), ()
        encoded = self.lengths.encoded["train"]
        row, inputs, states, forward = self._shortest
        tokens, depth, flops = self.lengths.of_pass, None, 0.0
        below = innermost(method.method)
        if isinstance(below, NetworkMethod):
            model = build_model(below, self.setting, encoded.towers)
            depth = model.prefix
            if self.writing is not None:
                passes = 0 if depth is None else tokens("train", depth) + tokens("validation", depth)
                flops = forward / inputs["attention_mask"].numel() * passes
                return flops + trainings(method.method) * self.writing.training_flops(model, self._recipe(method))
            entering = None if depth is None else states[depth]
            answered = encoded.answered(np.array([row]))
            target = torch.from_numpy(flat(self.session.dataset.train.targets)[answered]).to(model.device)

            def work() -> None:
                self.kind.loss(model(inputs, entering), target).backward()

            passes_of_train = self._recipe(method)["epochs"] * trainings(method.method)
            flops = count_flops(work)[1] * passes_of_train * tokens("train", 0)
        flops += forward * (tokens("train", depth) + tokens("validation", depth))
        return flops / inputs["attention_mask"].numel()

    def first_start(self, methods: Sequence[ConfiguredMethod]) -> int | None:
        """Return the lowest block that any of these methods starts training from; None if none freezes blocks."""
        starts = []
        for below in (innermost(item.method) for item in methods):
            if isinstance(below, NetworkMethod) and self.session.backbone is not None:
                with suppress(Exception):  # a method that can't be built is reported when it is measured
                    starts.append(build_model(below, self.setting, self.lengths.encoded["train"].towers).prefix)
        return min((start for start in starts if start), default=None)

    def forecast(self, method: ConfiguredMethod) -> Forecast:
        """Forecast a run of `method` from a timed sample. Errors of its fit are raised unchanged."""
        if not method.method.uses_backbone:
            return self._from_rows(method)
        if (times := trainings(method.method)) > 1:
            one = self.forecast(parse_method(cast(Over, method.method).by))
            parts = {name: seconds * (times if name in TRAINING else 1) for name, seconds in one.parts.items()}
            return replace(one, parts=parts)
        if isinstance(method.method, OtherReading):
            return self._other(method).forecast(parse_method(cast(Over, method.method).by))
        by_steps = isinstance(innermost(method.method), Attaches)
        return self._from_steps(method) if by_steps else self._from_features(method)

    def _other(self, method: ConfiguredMethod) -> Forecaster:
        """Return the forecaster of an `OtherReading` method: on the backbone of that reading, with its own passes."""
        name, reads = method.config["name"], cast(OtherReading, method.method)
        if name not in self._others:
            session = replace(self.session, backbone=reads.reading(self.backbone), frozen=FrozenStore())
            self._others[name] = Forecaster(session, self.recipe, self.seed, self.clock)
        return self._others[name]

    # Shared by all forecasts

    @property
    def backbone(self) -> Backbone:
        """The session's backbone."""
        assert self.session.backbone is not None
        return self.session.backbone

    @cached_property
    def lengths(self) -> Lengths:
        """The tokenised lengths of the session's data."""
        return Lengths(self.backbone, self.session.dataset.splits)

    @cached_property
    def convex(self) -> ConvexCosts:
        """The costs of fits on frozen features."""
        return ConvexCosts(self.lengths, self.setting, self.session.dataset.train, self.clock)

    @cached_property
    def writing(self) -> WritingCosts | None:
        """The costs of generating texts; None for a task whose predictions are not texts."""
        backbone = self.session.backbone
        if backbone is None or not backbone.card.writes or not isinstance(self.kind, WritesTexts):
            return None
        return WritingCosts(self.lengths, self.session.dataset, self.clock)

    @cached_property
    def pass_rate(self) -> float:
        """Seconds per padded token of a frozen pass, timed on sequences of the token-weighted median length."""
        split, encoded = self.session.dataset.train, self.lengths.encoded["train"]
        sizes = np.array([len(ids) for ids in encoded.ids])
        order = np.argsort(sizes, kind="stable")
        tokens = np.cumsum(sizes[order])
        middle = int(np.searchsorted(tokens, tokens[-1] / 2))
        wanted = min(max(PASS_SHARE * tokens[-1], PASS_TOKENS[0]), PASS_TOKENS[1])
        size = max(1, round(wanted / sizes[order[middle]]))
        first = max(0, min(middle - size // 2, len(order) - size))
        rows = order[first : first + size]
        owners = np.unique(np.repeat(np.arange(len(encoded)), encoded.sequences_of)[rows])
        examples = [split.examples[row] for row in owners]

        def work() -> None:
            self.backbone.encode(examples)
            inputs = self.backbone.collate(encoded, rows.tolist())
            with torch.no_grad():
                for hidden in self.backbone.states(inputs):
                    self.backbone.pool(hidden, inputs["attention_mask"].bool(), inputs.get("words")).cpu()

        return self._median(work) / (len(rows) * self.lengths.padded(encoded, int(rows[-1])))

    @cached_property
    def seconds_per_flop(self) -> float:
        """Seconds per FLOP of a frozen pass."""
        _, inputs, _, forward = self._shortest
        return self.pass_rate * inputs["attention_mask"].numel() / forward

    @cached_property
    def answering_flops(self) -> float:
        """Estimate the FLOPs of predicting validation and test, from one short example."""
        _, inputs, _, forward = self._shortest
        tokens = self.lengths.of_answers("validation") + self.lengths.of_answers("test")
        return forward / inputs["attention_mask"].numel() * tokens

    @cached_property
    def write_seconds(self) -> tuple[float, float]:
        """Seconds per file and per byte of writing to the disk where runs are kept."""
        with tempfile.TemporaryDirectory(dir=self.session.store.root, prefix=".forecast.") as folder:
            path, large = Path(folder) / "file", 1 << 22
            small = self._median(lambda: write_bytes(path, b"small"), repeats=2)
            return small, max(0.0, self._median(lambda: write_bytes(path, bytes(large)), repeats=1) - small) / large

    @cached_property
    def receipt_seconds(self) -> float:
        """Seconds of collecting the description of the machine for a receipt."""
        return self._median(environment, repeats=1)

    def _median(self, work: Callable[[], Any], repeats: int = 3) -> float:
        return median_seconds(self.clock, work, repeats)

    def _prefix(self, depth: int | None, splits: Sequence[str] = ("train", "validation")) -> float:
        """Return the seconds of the frozen passes of a run over `splits` that are not cached yet."""
        if self.writing is not None and depth is None:
            return 0.0  # a network that writes texts needs the pass only for kept states
        assert self.session.frozen is not None
        data, holds, reading = self.session.dataset, self.session.frozen.holds, reading_part(self.backbone)
        wanted = [name for name in splits if not holds(reading, data.digest, data.splits[name], depth)]
        return self.pass_rate * sum(self.lengths.of_pass(name, depth) for name in wanted)

    # The sample of a run

    def _sample(self, recipe: Mapping[str, Any]) -> tuple[Rows, list[Rows], list[int]]:
        """Return indices of train, the batches to time (indices into these), and each distinct batch's padded tokens.

        The distinct batches are full batches of the run's first epoch with different lengths; they alternate.
        """
        epoch = self._epoch(recipe)
        most = max(len(rows) for rows, _ in epoch)
        full = [item for item in epoch if len(item[0]) == most]
        full.sort(key=lambda item: item[1])
        shares = (0.1, 0.5, 0.9) if recipe["steps"] >= MANY_STEPS else (0.25, 0.75)
        sorts = {tokens: rows for rows, tokens in (full[round(share * (len(full) - 1))] for share in shares)}
        rows = np.unique(np.concatenate(list(sorts.values())))
        repeats = min(max(round(SHARE * recipe["steps"] / len(sorts)) - 1, REPEATS[0]), REPEATS[1])
        return rows, [np.searchsorted(rows, batch) for batch in sorts.values()] * (1 + repeats), list(sorts)

    def _epoch(self, recipe: Mapping[str, Any]) -> list[tuple[Rows, int]]:
        """Return the batches of the first epoch, each with its padded tokens; tokens of target texts are included."""
        epoch = self.lengths.of_epoch(recipe["batch_size"], derive(self.seed, "order"))
        if self.writing is None:
            return epoch
        return [(rows, tokens + self.writing.positions("train", rows)) for rows, tokens in epoch]

    # One forecast per type of method

    def _from_rows(self, method: ConfiguredMethod) -> Forecast:
        """Forecast a method without a backbone from fits to a share of the rows and to twice that share."""
        data = self.session.dataset
        total = len(data.train.examples)
        rows = min(total, max(ROWS_AT_LEAST, round(ROWS_SHARE * total)))
        order = np.random.default_rng(0).permutation(total)
        checked = np.arange(min(len(data.validation.examples), TIMED_AT_ONCE))
        self._pilot(method, order[:rows], checked)  # warm-up
        times: dict[int, float] = {}
        for size in (rows, 2 * rows, rows, 2 * rows):
            fitted, trace = self._pilot(method, order[:size], checked)
            times[size] = min(trace.ended - trace.began, times.get(size, math.inf))
        once, twice = times.values()
        line = once + max(0.0, twice - once) * (total - rows) / rows
        fit = min(line, twice * max(1.0, total / (2 * rows)))  # a line through two very short times may be too steep
        per_row = self._answering(fitted, data.validation, checked) / len(checked)
        evaluation = per_row * (len(data.validation.examples) + len(data.test.examples))
        return Forecast({"fit": fit} | self._afterwards(fitted, evaluation, self._one(fitted)))

    def _from_features(self, method: ConfiguredMethod) -> Forecast:
        """Forecast a method on frozen features from one pilot fit; `ConvexCosts` extrapolates its time to all rows."""
        rows, _, _ = self._sample(self._recipe(method))
        checked = self.lengths.middling("validation")
        fitted, trace = self._pilot(method, rows, checked)
        began, ended = trace.last("given", otherwise=trace.began), trace.ended
        mixes = MIX in fitted.facts.get("cross_validation", ())  # the mix is learned between the last two marks
        last, mixed = trace.times("went on")[-2:] if mixes else (ended, ended)
        losses = trace.times("loss", before=last, after=began) + trace.times("loss", after=mixed)
        total = len(self.session.dataset.train.examples)
        growth = math.ceil(self.convex.features(total) / BATCH) / math.ceil(self.convex.features(len(rows)) / BATCH)
        fits = self.convex.seconds(ended - began - (mixed - last), len(losses), len(rows)) + growth * (mixed - last)
        after = self._after_backbone(fitted, checked, deepest=self.backbone.card.blocks)
        read = ("train", "validation")[: len(trace.times("asked"))]  # a linear probe chooses on train alone
        return Forecast({"prefix": self._prefix(None, read), "fit": fits} | after)

    def _from_steps(self, method: ConfiguredMethod) -> Forecast:
        """Forecast a method trained by gradient descent from timed steps, a validation, and the work before them."""
        recipe = self._recipe(method)
        rows, batches, sizes = self._sample(recipe)
        checked = self.lengths.middling("validation")
        fitted, trace = self._pilot(method, rows, checked, batches)
        step, first_of_length = step_times(trace.times("went on")[-len(batches) :], sizes)
        epoch = [tokens for _, tokens in self._epoch(recipe)]
        stepping = recipe["epochs"] * sum(step[0] + step[1] * tokens for tokens in epoch)
        begins = trace.times("went on")[-len(batches)]
        ends = trace.last("went on", otherwise=trace.ended)
        heads = trace.times("scored", before=begins)  # the last one is the validation before the first step
        given = trace.last("given", otherwise=trace.began)
        head = heads[-2] if len(heads) > 1 else given
        looked = trace.times("scored", after=ends) or trace.times("validated", after=ends)  # texts have only a loss
        look = (min(looked, default=ends) - ends) * self._looked_at(checked)
        keep = trace.ended - max(looked, default=trace.ended)  # seconds of copying the best weights
        model = getattr(fitted, "model", None)
        parts = {
            "building": min(trace.times("asked"), default=begins) - trace.began,
            "prefix": self._prefix(model.prefix if isinstance(model, Model) else None),
            "head start": self.convex.seconds(
                head - given, len(trace.times("loss", before=head, after=given)), len(rows)
            ),
            "steps": stepping + first_of_length * len(set(epoch)),
            "validation": (recipe["epochs"] + 1) * look + recipe["epochs"] * keep,
        }
        return Forecast(parts | self._after_backbone(fitted, checked), step, recipe["epochs"])

    def _looked_at(self, checked: Rows) -> float:
        """Return the work of validating all rows, as a multiple of that of validating the rows `checked`."""
        if self.writing is not None:
            return self.writing.validated() / self.writing.validated(checked)
        return self.lengths.of_answers("validation") / self.lengths.of_answers("validation", checked)

    def _recipe(self, method: ConfiguredMethod) -> Mapping[str, Any]:
        return self.session.resolved(method, self.recipe)

    def _pilot(
        self, method: ConfiguredMethod, rows: Rows, checked: Rows, batches: Sequence[Rows] = ()
    ) -> tuple[Fitted, Trace]:
        spec = self.session.spec(method, self.recipe, self.seed)
        return fit_pilot(self.session, method, spec, self.clock, rows, checked, batches)

    # The work after the fit

    def _answering(self, fitted: Fitted, split: Split, rows: Rows) -> float:
        """Return the median seconds of computing the logits of these rows."""
        examples = [split.examples[row] for row in rows]
        return self._median(lambda: fitted.logits(examples), repeats=2)

    def _after_backbone(self, fitted: Fitted, checked: Rows, deepest: int = 0) -> dict[str, float]:
        """Forecast the work after the fit of a method with a backbone.

        The pilot chooses a probe's block on few rows; the block of the real run may be as deep as `deepest`.
        """
        if self.writing is not None and isinstance(fitted, FittedWriter):
            speed = self.writing.speed(fitted.model)
            evaluation = self.writing.seconds(speed, "validation") + self.writing.seconds(speed, "test")
            return self._afterwards(fitted, evaluation, self.writing.of_one(speed))
        rate = self._answering(fitted, self.session.dataset.validation, checked)
        rate /= self.lengths.of_answers("validation", checked)  # seconds per padded token
        if isinstance(fitted, Probe):
            rate *= max(1.0, deepest / max(1, fitted.depth))
        tokens = self.lengths.of_answers("validation") + self.lengths.of_answers("test")
        return self._afterwards(fitted, rate * tokens, self._one(fitted))

    def _one(self, fitted: Fitted) -> float:
        """Return the seconds of predicting one row."""
        return self._answering(fitted, self.session.dataset.test, np.array([0]))

    def _afterwards(self, fitted: Fitted, evaluation: float, one: float) -> dict[str, float]:
        """Return the parts after the fit: evaluation (the given seconds), saving, and the speed measurement.

        `one`: the seconds of predicting one row.
        """
        data = self.session.dataset
        tested = len(data.test.examples)
        per_row = evaluation / (len(data.validation.examples) + tested)
        per_file, per_byte = self.write_seconds
        stored = sum(tensor.nbytes for tensor in fitted.delta().values())
        speeding = max(one, min(answer_speed.REPEATS * one, answer_speed.SECONDS_AT_MOST))
        speeding += (answer_speed.WARM_UPS + 1) * one
        speeding += sum(seconds for _, seconds in answer_speed.timed_counts(tested, lambda count: count * per_row))
        return {
            "evaluation": evaluation,
            "saving": self.receipt_seconds
            + FILES * per_file
            + stored * per_byte
            + min(SELF_TEST_EXAMPLES, tested) * per_row,
            "speed": speeding,
        }
