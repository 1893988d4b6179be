"""Costs of text generation, estimated before a run: target tokens in training, and the time of decoding.

A batch is decoded until its longest text has ended, so it takes as many decoder steps as that text has tokens; a step
takes a + b x rows seconds. A trial batch shows how long the texts become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.budget.batch_lengths import Lengths, Rows
from graftwork.budget.pilot import median_seconds
from graftwork.core.model import Model
from graftwork.core.task import Dataset
from graftwork.core.writing import TOKENS, TextSearch, TextWriter
from graftwork.module.task_module import SELF_TEST_EXAMPLES
from graftwork.registry import kinds
from graftwork.run import answer_speed
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE
from graftwork.train.batches import by_length
from graftwork.train.flops import count_flops
from graftwork.train.text_loop import padded_tokens, write

BRIEF = 8  # tokens that are decoded to time a single row
ENOUGH = 3  # a trial text is cut at this multiple of the tokens of a long target, and then counts as the longest
LONG_TARGET = 0.95  # quantile of the targets' tokens
FORWARD = 1 / 3  # FLOPs of a forward pass relative to those of a training step


def longest_of(tokens: NDArray[np.int64], rows: int) -> float:
    """Return the expected maximum of `rows` draws from these lengths."""
    below = np.arange(len(tokens) + 1) / len(tokens)
    return float(np.dot(np.sort(tokens), np.diff(below**rows)))


@dataclass(frozen=True)
class WritingSpeed:
    """The speed of a network that generates texts, and the lengths of its texts."""

    reading: float  # seconds per padded source token encoded
    step: tuple[float, float]  # seconds of a step of the decoder are [0] + [1] x rows
    texts: Rows  # tokens of each text written on trial

    def seconds(self, rows: int, longest: int) -> float:
        """Return the seconds of writing a batch of `rows` texts; the longest source has `longest` tokens."""
        steps = longest_of(self.texts, rows)
        return self.reading * rows * longest + steps * (self.step[0] + self.step[1] * rows)


class WritingCosts:
    """The target lengths of a data set, and the speed of the networks that write for it."""

    def __init__(self, lengths: Lengths, data: Dataset, clock: Callable[[], float]):
        assert isinstance(lengths.backbone, TextWriter)
        self.lengths, self.data, self.clock = lengths, data, clock
        self.writer: TextWriter = lengths.backbone
        self.search = TextSearch.of(data.task)

    @cached_property
    def targets(self) -> dict[str, Rows]:
        """The tokens (N,) of the first references of train and validation. References of test are not used."""
        seen = (self.data.train, self.data.validation)
        return {split.name: self._tokens([target[0] for target in split.targets]) for split in seen}

    def positions(self, name: str, rows: Rows) -> int:
        """Return S x U of a batch: the padded tokens of the targets of these rows."""
        return len(rows) * int(self.targets[name][rows].max())

    def validated(self, rows: Rows | None = None) -> int:
        """Return the padded tokens, source and target, of the loss on these rows of validation (None: all)."""
        read, wrote = self.lengths.encoded["validation"].lengths, self.targets["validation"]
        rows = np.arange(len(read)) if rows is None else rows
        batches = by_length(read[rows] + wrote[rows], TOKENS_AT_ONCE, EXAMPLES_AT_ONCE)
        return sum(len(batch) * int(read[rows[batch]].max() + wrote[rows[batch]].max()) for batch in batches)

    def training_flops(self, model: Model, recipe: Mapping[str, Any]) -> float:
        """Estimate the FLOPs of training and of its validations from one example of about median length."""
        encoded, row = self.lengths.encoded["train"], int(self.lengths.middling("train")[0])
        inputs = self.lengths.backbone.collate(encoded, encoded.sequences([row]))
        text = self.data.train.examples[row].target[0]
        tokens = padded_tokens(self.writer.encode_texts([text], self.search.longest)[0]).to(model.device)
        with torch.no_grad():
            entering = None if model.prefix is None else self.lengths.backbone.states(inputs)[model.prefix]
        flops = count_flops(lambda: model(inputs | {TOKENS: tokens}, entering).sum().backward())[1]
        wrote = len(encoded) * longest_of(self.targets["train"], recipe["batch_size"])
        positions = recipe["epochs"] * (self.lengths.of_pass("train", 0) + wrote)
        positions += (recipe["epochs"] + 1) * FORWARD * self.validated()
        return float(flops / (inputs["attention_mask"].numel() + tokens.numel()) * positions)

    def speed(self, model: Model) -> WritingSpeed:
        """Time how `model` writes: one row for a few tokens, and a batch of middle lengths until most texts end."""
        batches = self._batches("validation")
        many, one = batches[len(batches) // 2], batches[len(batches) // 2][:1]
        self._timed(model, one, 1)  # warm-up
        single = self._per_step(model, one, BRIEF)
        enough = max(BRIEF, ENOUGH * int(np.quantile(self.targets["train"], LONG_TARGET)))
        limit = min(enough, self.search.longest)
        first = self._timed(model, many, 1)[0]
        seconds, texts = self._timed(model, many, limit)
        step = (seconds - first) / max(1, int(texts.max()) - 1)
        by_row = max(0.0, step - single) / max(1, len(many) - 1)
        reading = max(0.0, first - step) / (len(many) * self._longest("validation", many))
        texts = np.where(texts >= limit, self.search.longest, texts)
        return WritingSpeed(reading, (max(0.0, step - by_row * len(many)), by_row), texts)

    def seconds(self, speed: WritingSpeed, name: str, rows: int | None = None) -> float:
        """Return the seconds of writing the first `rows` rows of a split (None: all)."""
        return sum(speed.seconds(len(batch), self._longest(name, batch)) for batch in self._batches(name, rows))

    def of_run(self, speed: WritingSpeed) -> float:
        """Return the seconds of all writing in a run: validation, test, self-test and speed measurement."""
        written = (("validation", None), ("test", None), ("test", SELF_TEST_EXAMPLES))
        whole = sum(self.seconds(speed, *part) for part in written) + (answer_speed.WARM_UPS + 2) * self.of_one(speed)
        rows = len(self.lengths.encoded["test"].lengths)
        timed = answer_speed.timed_counts(rows, lambda count: self.seconds(speed, "test", count))
        return whole + sum(seconds for _, seconds in timed)

    @cached_property
    def untrained(self) -> WritingSpeed:
        """The speed of the backbone before any training."""
        return self.speed(Model(self.lengths.backbone, kinds.get(self.data.task.kind), self.data.task, 1))

    @cached_property
    def seconds_per_flop(self) -> float:
        """Seconds per FLOP of the encoder."""
        batches = self._batches("train")
        inputs = self.lengths.backbone.collate(self.lengths.encoded["train"], batches[len(batches) // 2].tolist())
        with torch.no_grad():
            flops = count_flops(lambda: self.lengths.backbone.states(inputs))[1]
            return median_seconds(self.clock, lambda: self.lengths.backbone.states(inputs)) / flops

    def of_one(self, speed: WritingSpeed) -> float:
        """Return the seconds of writing one text for a test row of about median length."""
        return speed.seconds(1, self._longest("test", self.lengths.middling("test")[:1]))

    def _longest(self, name: str, rows: Rows) -> int:
        return int(self.lengths.encoded[name].lengths[rows].max())

    def _batches(self, name: str, rows: int | None = None) -> list[Rows]:
        """Return the batches in which the first `rows` rows of a split are written."""
        return by_length(
            self.lengths.encoded[name].lengths[:rows] * self.search.beams, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE
        )

    def _per_step(self, model: Model, rows: Rows, longest: int) -> float:
        """Return the seconds of one step of the decoder."""
        first, (seconds, tokens) = self._timed(model, rows, 1)[0], self._timed(model, rows, longest)
        return max(0.0, seconds - first) / max(1, int(tokens.max()) - 1)

    def _timed(self, model: Model, rows: Rows, longest: int) -> tuple[float, Rows]:
        """Write texts of at most `longest` tokens for validation rows; return the seconds and the text lengths (S,)."""
        examples = [self.data.validation.examples[row] for row in rows]
        began = self.clock()
        told = write(model, self.lengths.backbone.encode(examples), replace(self.search, longest=longest))
        seconds = self.clock() - began
        return seconds, np.where(told["cut"], longest, np.minimum(self._tokens(told["text"].tolist()), longest))

    def _tokens(self, texts: Sequence[str]) -> Rows:
        return np.array([len(tokens) for tokens in self.writer.encode_texts(texts, self.search.longest)[0]])
