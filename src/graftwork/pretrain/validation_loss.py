"""Validation: the mean loss per predicted token, on the same rows and masks every time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import ByGradient, InOrder, Rows, VariedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.train.seeds import derive

SEED = 0  # of rows and masks, for every run: runs with equal row length and batch are validated on the same ones
MOST_POSITIONS = 50_000  # per validation, about


@dataclass(frozen=True)
class HeldOut:
    """A held-out split."""

    rows: Rows
    tokens: SplitTokens
    batch: int  # rows per pass
    length: int  # T

    @property
    def steps(self) -> int:
        """The number of passes of one validation."""
        if isinstance(self.rows, VariedRows):
            return min(self.rows.steps(self.batch), max(1, MOST_POSITIONS // (self.batch * self.length)))
        wanted = min(len(self.rows), max(1, MOST_POSITIONS // self.length))
        return max(1, wanted // self.batch)

    def as_json(self) -> dict[str, int]:
        """Return the row length, rows per pass and passes, which determine the rows and masks of a validation."""
        return {"length": self.length, "rows": self.batch, "passes": self.steps}


@dataclass(frozen=True)
class ValidationScore:
    """The score of a network on a split."""

    nats: float  # mean -log p per predicted token
    predicted: int  # tokens

    @property
    def perplexity(self) -> float:
        """exp of the mean loss; infinite on overflow."""
        return _exp(self.nats)

    def as_json(self, tokens: SplitTokens) -> dict[str, float]:
        """Return it as JSON, with scores independent of the tokenisation: bits per byte and word perplexity."""
        bits = self.nats / math.log(2) / tokens.bytes_per_token
        word = _exp(self.nats * len(tokens.ids) / max(1, tokens.words))
        named = {"perplexity": self.perplexity, "bits_per_byte": bits, "word_perplexity": word}
        return asdict(self) | named


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@torch.no_grad()
def validate(
    objective: ByGradient, network: nn.Module, vocabulary: Vocabulary, held: HeldOut, device: str
) -> ValidationScore:
    """Compute the validation score of a network; restores its training mode."""
    training = network.training
    network.eval()
    nats, predicted = 0.0, 0
    state: Mapping[str, Tensor] = {}
    for step in range(held.steps):
        if isinstance(held.rows, InOrder) and held.rows.begins(step, held.batch):
            state = {}
        rows = held.rows.rows(derive(SEED, "validation rows"), step, held.batch)
        draw = torch.Generator().manual_seed(derive(SEED, f"validation draw {step}"))
        batch = objective.prepare(rows, vocabulary, draw).to(device)
        loss = objective.loss(network, batch.beside(state))
        nats += float(loss.nats)
        predicted += loss.predicted
        state = loss.state
    network.train(training)
    return ValidationScore(nats / max(1, predicted), predicted)
