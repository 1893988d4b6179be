"""Training of networks that write: targets are tokens, and the loss is their mean negative log-likelihood.

The best epoch is the one with the least loss on the first references of validation: writing texts after every epoch,
token by token, would cost more than the training. Texts are written once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Encoded, Inputs
from graftwork.core.example import Example
from graftwork.core.method import FrozenPass, Logits, Workbench
from graftwork.core.model import Model
from graftwork.core.writing import NOTHING, TOKENS, Tell, TextSearch, TextWriter, WrittenTokens
from graftwork.errors import IncompatibleModule
from graftwork.machine.memory import answers_in_halves
from graftwork.targets.written_texts import Text, written_by_rank
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_batches
from graftwork.train.batches import by_length
from graftwork.train.flops import PairCounter, StepCounter, count_flops
from graftwork.train.training_state import snapshot

T = TypeVar("T")


def writer_of(model: Model) -> TextWriter:
    """Return the backbone of a model that writes."""
    assert isinstance(model.backbone, TextWriter)
    return model.backbone


def padded_tokens(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return (N, U) int64, `NOTHING` after the shorter rows."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[NOTHING] * (longest - len(row))] for row in rows], dtype=torch.int64)


class WritingObjective:
    """The objective of a network that writes: the first reference of each example. A `TrainingObjective`.

    Steps run with the network's dropout (docs/log.md).
    """

    drops = True

    def __init__(self, model: Model, bench: Workbench):
        writer, self.search = writer_of(model), TextSearch.of(bench.setting.task)

        def tokens(targets: Any) -> tuple[Tensor, int]:
            rows, cut = writer.encode_texts([references[0] for references in targets], self.search.longest)
            return padded_tokens(rows).to(model.device), cut

        self.targets, self.cut = tokens(bench.train.targets)
        self.held, _ = tokens(bench.validation.targets)
        self._counters = {trained: PairCounter() for trained in (True, False)}

    def loss(self, model: Model, inputs: Inputs, entering: Tensor | None, targets: Tensor) -> Tensor:
        """Return the mean loss of a target token, by teacher forcing: inputs (S, T), targets (S, U)."""
        return -self._chances(model, inputs, entering, targets).sum() / self.weight(targets)

    def weight(self, targets: Tensor) -> float:
        """Return the number of tokens."""
        return float((targets != NOTHING).sum())

    def counting(self, counter: StepCounter, model: Model, inputs: Inputs, targets: Tensor, work: Callable[[], T]) -> T:
        """Run `work` on a batch and tally its FLOPs."""
        mask, real = inputs["attention_mask"], targets != NOTHING
        size = (mask.shape[1], int(real.sum(dim=1).max()))
        result, flops = self._counters[torch.is_grad_enabled()].run(size, len(mask), work)
        positions = len(mask) * (size[0] + size[1])
        counter.tally.add(flops, 1 - float(mask.sum() + real.sum()) / positions)
        return result

    @torch.no_grad()
    def validate(self, model: Model, held: FrozenPass, counter: StepCounter) -> float:
        """Return minus the mean loss over the tokens of validation: higher is better."""
        lengths = held.encoded.lengths + (self.held != NOTHING).sum(dim=1).cpu().numpy()

        def chance(rows: Sequence[int]) -> float:
            inputs, targets = model.backbone.collate(held.encoded, rows), self.held[list(rows)]
            entering = kept_states(model, inputs, rows, held)
            work = lambda: float(self._chances(model, inputs, entering, targets).sum())  # noqa: E731
            return self.counting(counter, model, inputs, targets, work)

        batches = by_length(lengths, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE)
        return sum(part for rows in batches for part in answers_in_halves(rows.tolist(), chance)) / self.weight(
            self.held
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts of the targets for the receipt."""
        return {
            "validation_is": "minus the mean loss of a token",
            "dropout": "that of the network, in all blocks that a step runs",
            "cut_targets": self.cut,
            "target_tokens": int(self.weight(self.targets)),
            "mean_target_tokens": round(self.weight(self.targets) / max(1, len(self.targets)), 2),
        }

    def _chances(self, model: Model, inputs: Inputs, entering: Tensor | None, targets: Tensor) -> Tensor:
        longest = int((targets != NOTHING).sum(dim=1).max())
        chances: Tensor = model(inputs | {TOKENS: targets[:, :longest]}, entering)  # (S, U)
        return chances


def kept_states(model: Model, inputs: Inputs, sequences: Sequence[int], frozen: FrozenPass | None) -> Tensor | None:
    """Return the kept states that enter block `model.prefix`, (S, T, D); None where there are none."""
    if frozen is None or model.prefix is None:
        return None
    return frozen.entering(sequences, inputs["attention_mask"].bool())


@dataclass
class FittedWriter:
    """A trained `Model` that writes texts. Implements `Fitted`, `WritesAloud` and `ReadsBack`."""

    model: Model
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Parameters passed to the optimiser."""
        return sum(parameter.numel() for parameter in self.model.delta().values())

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Write a text for each example, in batches of near-equal lengths; return (N,) of dtype `WRITTEN`."""
        return write(self.model, self.model.backbone.encode(examples), TextSearch.of(self.model.task))

    def written_aloud(self, examples: Sequence[Example], tell: Tell) -> Logits:
        """Return `logits`; `tell` gets each text while it is written."""
        return write(self.model, self.model.backbone.encode(examples), TextSearch.of(self.model.task), tell)

    @torch.no_grad()
    def read_back(self, examples: Sequence[Example], outputs: Logits) -> NDArray[np.float64]:
        """Return the log-probabilities (N,) of texts (N,) of `WRITTEN`, tokenised anew."""
        model, writer, search = self.model, writer_of(self.model), TextSearch.of(self.model.task)
        rows, _ = writer.encode_texts(np.asarray(outputs)["text"].tolist(), search.longest)
        encoded, tokens = model.backbone.encode(examples), padded_tokens(rows).to(model.device)

        def chances(some: Sequence[int]) -> list[float]:
            inputs = model.backbone.collate(encoded, encoded.sequences(some))
            told = writer.log_probabilities(model.read(inputs), inputs["attention_mask"], tokens[list(some)])
            return cast(list[float], told.double().sum(dim=1).tolist())

        found = np.empty(len(encoded))
        for batch in by_length(encoded.lengths + (tokens != NOTHING).sum(dim=1).cpu().numpy(), TOKENS_AT_ONCE):
            found[batch] = [one for part in answers_in_halves(batch.tolist(), chances) for one in part]
        return found

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the trained parameters by name."""
        return snapshot(self.model.delta())

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of prediction: the inputs encoded, every token written, and its probability."""
        return count_flops(lambda: self.logits(examples))[1], "counter"


@torch.no_grad()
def write(
    model: Model, encoded: Encoded, search: TextSearch, tell: Tell | None = None, beside: Sequence[WrittenTokens] = ()
) -> NDArray[Any]:
    """Return (N,) of `WRITTEN`: a text for each example, and its log-probability under the model.

    The texts `beside` are added to the alternatives of each text that differs from them. Inputs are encoded once. The
    log-probability is computed from the written tokens, the end's included, whatever the search forbade or preferred.
    Raises `IncompatibleModule` if it is NaN.
    """
    writer = writer_of(model)

    def answer(rows: Sequence[int]) -> list[tuple[Text, ...]]:
        inputs = model.backbone.collate(encoded, encoded.sequences(rows))
        states, mask = model.read(inputs), inputs["attention_mask"]
        aloud = None if tell is None else lambda row, tokens: tell(rows[row], writer.text_of(tokens))
        texts: list[WrittenTokens] = writer.write(states, mask, search, aloud)
        ranks = zip(*((text, *text.others, *beside) for text in texts), strict=True)
        return list(zip(*(_read_back(writer, states, mask, rank) for rank in ranks), strict=True))

    found = in_batches(encoded.lengths * search.beams, answer)
    if any(math.isnan(chance) for texts in found for _, chance, _ in texts):
        raise IncompatibleModule(
            "the probabilities of what the network writes are no numbers",
            where=model.backbone.card.id,
            do="open it with --precision fp32; if that does not help, its weights are damaged",
        )
    return written_by_rank(list(zip(*found, strict=True)))


def _read_back(writer: TextWriter, states: Tensor, mask: Tensor, texts: Sequence[WrittenTokens]) -> list[Text]:
    """Return a text with its log-likelihood for each sequence, whose encoder states are (S, T, D)."""
    tokens = padded_tokens([text.tokens for text in texts]).to(states.device)
    chances = writer.log_probabilities(states, mask, tokens).double().sum(dim=1).tolist()
    told = zip(texts, chances, strict=True)
    return [(writer.text_of(text.tokens), chance, not text.ended) for text, chance in told]
