"""Translation: a Transformer that learns from pairs of texts (Vaswani et al. 2017, arXiv:1706.03762)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM

from graftwork.errors import ConfigError
from graftwork.pretrain import architecture, writing_network
from graftwork.pretrain.architecture import POSITIONS, check_word
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.last_averaged import AveragingOptimiser
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss, Optimiser, PretrainingRecipe, Rows
from graftwork.pretrain.pair_rows import PairRows
from graftwork.pretrain.vocabulary import Vocabulary, with_end_token
from graftwork.registry import objectives
from graftwork.train.optimiser import BETAS, FlatAdamW

NETWORKS = {"sinusoidal": "marian", "learned": "bart"}  # positions -> model_type
LONGEST = 512  # smallest number of positions of the fixed table: unused ones cost nothing


def transformer_size(layers: int, width: int, heads: int, dropout: float) -> dict[str, Any]:
    """Return a size of the original Transformer: post-norm, one embedding table for encoder, decoder and output."""
    own = {"activation_function": "relu", "scale_embedding": True, "init_std": width**-0.5}
    return writing_network.halves(layers, width, heads, dropout) | own


@objectives.register("translation")
@dataclass(frozen=True)
class Translation:
    """An encoder reads one text of a pair and a decoder writes the other."""

    smoothing: float = 0.1  # share of the target spread over all tokens
    average: int = 5  # last validated weights whose mean is the result; 1: the last weights alone
    positions: str = "sinusoidal"  # or "learned"

    VERSION: ClassVar[int] = 1
    reads_pairs: ClassVar[Literal[True]] = True
    validations: ClassVar[int] = 50  # so that a long run has enough to average in its last tenth
    tokenizer: ClassVar[str] = "bpe"
    scores_of: ClassVar[str] = "the tokens of the targets"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(
        learning_rate=1e-3, batch=64, length=64, schedule="inverse_sqrt", warm_up=0.1, beta=0.98, weight_decay=0.0
    )
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": transformer_size(2, 128, 2, 0.1),
        "small": transformer_size(3, 256, 4, 0.1),
        "base": transformer_size(6, 512, 8, 0.1),
        "big": transformer_size(6, 1024, 16, 0.3),
    }

    def __post_init__(self) -> None:
        check_word("sort of positions", self.positions, POSITIONS)
        if not 0 <= self.smoothing < 1 or self.average < 1:
            raise ConfigError(
                "a translation can't be trained so",
                got=f"smoothing={self.smoothing}, average={self.average}",
                expected="0 <= smoothing < 1, and average at least 1",
            )

    def extended(self, learned: Vocabulary) -> Vocabulary:
        """Return the vocabulary with the end token alone after a text."""
        return with_end_token(learned)

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a Transformer: Marian's, or with learned positions BART's."""
        kind = NETWORKS[self.positions]
        own = {"decoder_start_token_id": vocabulary.pad}
        if self.positions == "sinusoidal":
            own["max_position_embeddings"] = max(LONGEST, length)
        config = architecture.fresh_config({**own, **size}, kind, (kind,), vocabulary, length)
        network = architecture.draw_network(AutoModelForSeq2SeqLM, config, seed)
        return writing_network.ready(network, vocabulary, vocabulary.pad)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a pretrained Transformer of the architecture that `positions` selects."""
        return writing_network.load_writer(folder, NETWORKS[self.positions], seed)

    def optimiser(self, network: nn.Module, recipe: PretrainingRecipe) -> Optimiser:
        """Return AdamW with averaging: the resulting weights are the mean of those at the last validations."""
        learning = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        rates = (recipe.learning_rate, recipe.weight_decay, recipe.clip)
        return AveragingOptimiser(FlatAdamW(learning, *rates, betas=(BETAS[0], recipe.beta)), learning, self.average)

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Batch pairs of near-equal lengths, neither side longer than `length`."""
        return PairRows(tokens, length, vocabulary.pad)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn pairs (B, 2, W) into "ids", "mask" (B, S) of the sources and "labels" (B, T) of the targets."""
        source, target = (side[:, : int((side != vocabulary.pad).sum(1).max())] for side in rows.unbind(1))
        return writing_network.padded_batch(source, target.masked_fill(target == vocabulary.pad, IGNORED), vocabulary)

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over the tokens of the targets; its total, but not its nats, has label smoothing."""
        return writing_network.writing_loss(network, batch, self.smoothing)

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a folder that transformers opens; as a backbone, its encoder is pooled by the mean."""
        own: Any = network
        writing_network.save(own, vocabulary, folder, own.config.max_position_embeddings)
