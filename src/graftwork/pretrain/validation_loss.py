"""Validation: the mean loss per predicted token, with the same rows and masks every time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import ByGradient, InOrder, Rows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.train.seeds import derive

SEED = 0  # of rows and masks, whatever the run's: runs of one length and one batch are compared on the same ones
MOST_POSITIONS = 50_000  # that one validation reads


@dataclass(frozen=True)
class Held:
    """A split that is not trained on."""

    rows: Rows
    tokens: SplitTokens
    batch: int  # rows of a pass
    length: int  # T

    @property
    def steps(self) -> int:
        """Passes of one validation."""
        wanted = min(len(self.rows), max(1, MOST_POSITIONS // self.length))
        return max(1, wanted // self.batch)

    def as_json(self) -> dict[str, int]:
        """What decides which rows and masks it is: rows of a state that is carried on are streams."""
        return {"length": self.length, "rows": self.batch, "passes": self.steps}


@dataclass(frozen=True)
class ValidationScore:
    """What a network makes of a split."""

    nats: float  # mean -log p per predicted token
    predicted: int  # tokens

    @property
    def perplexity(self) -> float:
        """exp of the mean loss; infinite where that is too large for a number."""
        return _exp(self.nats)

    def as_json(self, tokens: SplitTokens) -> dict[str, float]:
        """With what does not depend on how the text is cut into tokens: bits per byte, and perplexity per word."""
        bits = self.nats / math.log(2) / tokens.bytes_per_token
        word = _exp(self.nats * len(tokens.ids) / max(1, tokens.words))
        named = {"perplexity": self.perplexity, "bits_per_byte": bits, "word_perplexity": word}
        return asdict(self) | named


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@torch.no_grad()
def validate(
    objective: ByGradient, network: nn.Module, vocabulary: Vocabulary, held: Held, device: str
) -> ValidationScore:
    """The network is left in the mode that it was in."""
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
