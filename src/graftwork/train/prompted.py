"""The result of prompting: a language model with a prompt, which scores given answers or writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.core.ragged import Ragged
from graftwork.core.writing import Tell, TextSearch
from graftwork.targets.prompts import Prompts
from graftwork.targets.verbal_answers import VerbalAnswers
from graftwork.train.flops import count_flops
from graftwork.train.prompt_room import asked_by, require_room
from graftwork.train.prompt_tokens import PromptedModel, PromptTokens


@dataclass
class Prompted:
    """A prompted language model that chooses among given answers. Implements `Fitted`."""

    model: PromptedModel
    prompts: Prompts
    numbers: tuple[float, ...]  # values of a regression's answers, in the scale of its encoded targets
    is_written: bool  # True: the logits are margins of the written answer, else log-likelihoods
    normalise: str
    content_free: NDArray[np.float64] | None  # (C,) log-probabilities with no content; None: not calibrated
    facts: Mapping[str, Any]
    trained_parameters: int = 0

    def tokenised(self, examples: Sequence[Example]) -> tuple[list[PromptTokens], int]:
        """Return the prompts of examples with their answers, and how many had to be cut."""
        return fitting(self.model, self.prompts, examples)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C), (W, 1) for choices, or (N, 1) for a regression.

        The logit of an answer is its log-likelihood or, if `is_written`, its margin to the written answer. A regression
        predicts the mean of all numbers, weighted by their likelihoods, or the written number.
        """
        asked, _ = self.tokenised(examples)
        found = self.model.margins(asked) if self.is_written else self.model.likelihoods(asked)
        scores = [
            [score / length for score, length in zip(row, self._lengths(example, one), strict=True)]
            for row, example, one in zip(found, examples, asked, strict=True)
        ]
        if not self.prompts.words:
            return Ragged.of([[(score,) for score in row] for row in scores], np.float64)
        logits = np.array(scores, dtype=np.float64).reshape(len(examples), len(self.prompts.words))
        if self.numbers:
            logits = np.where(logits < 0, -np.inf, 0.0) if self.is_written else logits
            return VerbalAnswers(self.prompts.words, self.numbers).logits(logits, examples)
        return logits if self.content_free is None else logits - self.content_free

    def _lengths(self, example: Example, asked: PromptTokens) -> list[int]:
        """Return the divisor of each answer's log-likelihood: its tokens, its characters, or 1."""
        if self.normalise == "tokens":
            return [len(way) for way in asked.continuations]
        if self.normalise == "characters":
            return [len(answer) for answer in self.prompts.answers(example.inputs)]
        return [1] * len(asked.continuations)

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return the calibration, if any; the prompt is in the facts."""
        return {} if self.content_free is None else {"content_free": self.content_free}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of predicting these examples, each with its whole prompt, as if nothing were cached."""
        return _flops(self, examples)


@dataclass
class PromptedWriter:
    """A prompted language model that writes texts. Implements `Fitted` and `ReadsBack`."""

    model: PromptedModel
    prompts: Prompts
    search: TextSearch
    facts: Mapping[str, Any]
    trained_parameters: int = 0

    def tokenised(self, examples: Sequence[Example]) -> tuple[list[PromptTokens], int]:
        """Return the prompts of examples, and how many had to be cut."""
        return fitting(self.model, self.prompts, examples, self.model.reserve(self.search))

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Write a text for each example; return (N,) of dtype `WRITTEN`."""
        asked, _ = self.tokenised(examples)
        return self.model.write([one.context for one in asked], self.search, self.prompts.end)

    def written_aloud(self, examples: Sequence[Example], tell: Tell) -> Logits:
        """Return `logits`, one text after another; `tell` gets each while it is written. Implements `WritesAloud`."""
        return np.concatenate(
            [
                self.model.write([one.context], self.search, self.prompts.end, partial(tell, place))
                for place, one in enumerate(self.tokenised(examples)[0])
            ]
        )

    def read_back(self, examples: Sequence[Example], outputs: Logits) -> NDArray[np.float64]:
        """Return the log-probabilities (N,) of texts (N,) of `WRITTEN`, with their ends, tokenised anew."""
        asked, _ = self.tokenised(examples)
        texts = np.asarray(outputs)["text"].tolist()
        return np.array(
            self.model.read_back([one.context for one in asked], texts, self.prompts.end, self.search.longest)
        )

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return nothing; the prompt is in the facts."""
        return {}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of predicting these examples, each with its whole prompt, as if nothing were cached."""
        return _flops(self, examples)


def fitting(
    model: PromptedModel, prompts: Prompts, examples: Sequence[Example], reserve: int = 0
) -> tuple[list[PromptTokens], int]:
    """Return the prompts of examples with their answers, and how many had to be cut to leave room for `reserve`."""
    asked = asked_by(model, prompts, [example.inputs for example in examples])
    long = [place for place, one in enumerate(asked) if one.most > model.reader.context - reserve]
    for place in long:
        asked[place] = require_room(model, prompts, asked[place], examples[place].inputs, reserve)
    return asked, len(long)


def _flops(fitted: Prompted | PromptedWriter, examples: Sequence[Example]) -> tuple[float, str]:
    fitted.model.read_beginning()
    found = count_flops(lambda: fitted.logits(examples))[1]
    behind = sum(map(fitted.model.begins, fitted.tokenised(examples)[0]))
    return found + behind * fitted.facts["flops_read_once"], "counter"
