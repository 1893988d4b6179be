"""Tasks whose answers are in the input, for a network that writes: its texts are located there, if long by parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone
from graftwork.core.example import Example, answers_of
from graftwork.core.kind import FindsTexts
from graftwork.core.method import Logits
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.core.writing import TextSearch, WrittenTokens
from graftwork.registry import kinds
from graftwork.targets.verbal_answers import NO_ANSWER, source_of
from graftwork.targets.written_spans import parts_of
from graftwork.targets.written_texts import written_array
from graftwork.train.flops import count_flops
from graftwork.train.text_loop import FittedWriter, write, writer_of

Span = tuple[int, int]  # first and last word


class Part(NamedTuple):
    """One part of an example, whose text may be too long to be encoded at once."""

    owner: int  # index of the whole example
    first: int  # index of its first word in the whole text
    example: Example  # the example with this part as its text


class WrittenParts(NamedTuple):
    """The texts written for an example, over all of its parts."""

    span: Span | None  # of the likeliest text that was found, or of the words most like it
    chance: float  # the log-probability of that text, plus the logarithm of the likeness
    silent: float  # log-probability of "no answer" in the part where it is lowest
    stray: bool  # True: for every part a text was written that is not in it


def parts_for(network: Backbone, examples: Sequence[Example], prefix: str) -> list[Part]:
    """Return the examples, divided into parts if they are longer than the maximum of the network."""

    def fits(part: Example) -> bool:
        return network.encode([source_of(part, prefix)]).cut == 0

    encoded = network.encode([source_of(example, prefix) for example in examples])
    longest = encoded.lengths.max(initial=0) if encoded.cut else np.inf
    parts = []
    for owner, (example, length) in enumerate(zip(examples, encoded.lengths, strict=True)):
        divided = parts_of(example, fits) if length >= longest and not fits(example) else [(0, example)]
        parts += [Part(owner, first, part) for first, part in divided]
    return parts


@dataclass
class PlacedAnswers:
    """A trained network that writes, for a task whose answers are in the input. Implements `Fitted`, `ReadsBack`."""

    writer: FittedWriter
    task: Task
    prefix: str
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Trained parameters of the network."""
        return self.writer.trained_parameters

    @property
    def none(self) -> bool:
        """True if an example may have no answer: `NO_ANSWER` is written then."""
        return self._kind.may_be_silent(self.task)

    @property
    def _kind(self) -> FindsTexts:
        kind = kinds.get(self.task.kind)
        assert isinstance(kind, FindsTexts)
        return kind

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return (W, 2): the kind's logits for the answer that the network writes to each example, or for none."""
        said = self._written_parts(examples)
        silent = [one.silent for one in said] if self.none else None
        return self._kind.likely([one.span for one in said], [one.chance for one in said], silent, examples)

    def outside(self, examples: Sequence[Example]) -> int:
        """Count the examples for which the network writes a text that is not in its input."""
        return sum(one.stray for one in self._written_parts(examples))

    def _written_parts(self, examples: Sequence[Example]) -> list[WrittenParts]:
        model = self.writer.model
        writer, parts = writer_of(model), parts_for(model.backbone, examples, self.prefix)
        search = TextSearch.of(model.task)
        tokens = writer.encode_texts([NO_ANSWER], search.longest)[0][0]
        none, beside = writer.text_of(tokens).strip(), [WrittenTokens(tokens, True)] if self.none else []
        encoded = model.backbone.encode([source_of(part.example, self.prefix) for part in parts])
        texts = write(model, encoded, search, beside=beside).tolist()
        found = self._kind.found([text for text, *_ in texts], [part.example for part in parts])
        told: list[list[WrittenParts]] = [[] for _ in examples]
        for part, place, (text, chance, _, others) in zip(parts, found, texts, strict=True):
            silent, nothing = others[-1][1] if others else chance, self.none and text.strip() == none
            if nothing or place is None:
                told[part.owner].append(WrittenParts(None, chance, silent, not nothing))
                continue
            (first, last), likeness = place
            span = part.first + first, part.first + last
            told[part.owner].append(WrittenParts(span, chance + math.log(likeness), silent, likeness < 1))
        return list(map(_likeliest, told))

    def read_back(self, examples: Sequence[Example], outputs: Logits) -> NDArray[np.float64]:
        """Return the log-probabilities (N,) of the answers that `outputs` predict, tokenised anew.

        Raises `ValueError` for logits of other examples.
        """
        rows = outputs.counts.tolist() if isinstance(outputs, Ragged) else []
        if rows != [answers_of(example) for example in examples]:
            raise ValueError("the logits are not a row for no answer and one for each word")
        texts = self._kind.answered(outputs, examples, self.task)
        parts = parts_for(self.writer.model.backbone, examples, self.prefix)
        asked = [texts[part.owner] or NO_ANSWER for part in parts]
        sources = [source_of(part.example, self.prefix) for part in parts]
        chances = self.writer.read_back(sources, written_array(asked, [0.0] * len(asked), [False] * len(asked)))
        of_owners: list[list[float]] = [[] for _ in examples]
        for part, chance in zip(parts, chances.tolist(), strict=True):
            of_owners[part.owner].append(chance)
        return np.array([max(told) if text else min(told) for told, text in zip(of_owners, texts, strict=True)])

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the trained parameters by name."""
        return self.writer.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of prediction: each part encoded once, every token written, and its probability."""
        return count_flops(lambda: self.logits(examples))[1], "counter"


def _likeliest(parts: Sequence[WrittenParts]) -> WrittenParts:
    """Combine the parts of an example: the likeliest text that was found, else the likeliest of all."""
    found = [part for part in parts if part.span is not None]
    best = max(found or parts, key=lambda part: part.chance)
    return best._replace(silent=min(part.silent for part in parts), stray=all(part.stray for part in parts))


def taught_parts(network: Backbone, examples: Sequence[Example], prefix: str, kind: FindsTexts) -> list[Example]:
    """Return what each example is trained on: itself, or the part in which the answer is farthest from both ends.

    For an example without an answer, it is the first part.
    """
    best: dict[int, tuple[int, Example]] = {}
    for owner, first, part in parts_for(network, examples, prefix):
        span, words = kind.place_of(examples[owner].target), len(part.inputs["words"])
        room = -first if span is None else min(span[0] - first, first + words - 1 - span[1])
        if owner not in best or room > best[owner][0]:
            best[owner] = room, part
    return [part for _, part in best.values()]
