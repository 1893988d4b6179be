"""Replaced-token detection: ELECTRA's (Clark et al. 2020, arXiv:2003.10555)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining, PreTrainedConfig

from graftwork.errors import ConfigError
from graftwork.pretrain import architecture
from graftwork.pretrain.architecture import shaped
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.objectives.masked import Masked
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives
from graftwork.train.seeds import derive

ARCHITECTURE = "electra"
TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")  # which both networks look up in
HEAD = ("discriminator_predictions.",)


class Pair(nn.Module):
    """The network that is kept, and the small one that makes it questions. Their tables of embeddings are the same."""

    discriminator: Any
    generator: Any

    def __init__(self, discriminator: Any, generator: Any):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        own, other = generator.base_model.embeddings, discriminator.base_model.embeddings
        for table in TABLES:
            setattr(own, table, getattr(other, table))
        generator.generator_lm_head.weight = own.word_embeddings.weight


@objectives.register("replaced_token")
@dataclass(frozen=True)
class ReplacedToken:
    """A small network fills masked places with tokens that could stand there; the one that is kept says which it did.

    The loss is the small network's on the masked tokens, and `weight` times that of a yes or no at every position.
    Nothing flows from the second to the small network through the tokens that it drew.
    """

    share: float = 0.15  # of a row's tokens, to be drawn anew
    weight: float = 50.0  # of the yes or no
    generator: float = 0.25  # width of the small network, of that of the one that is kept

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "wordpiece"
    scores_of: ClassVar[str] = "masked tokens, by the small network"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(learning_rate=1e-3, batch=64, length=128)
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": shaped(2, 128) | {"embedding_size": 128},
        "mini": shaped(4, 256) | {"embedding_size": 128},
        "small": shaped(12, 256) | {"embedding_size": 128},  # the paper's small one
        "base": shaped(12, 768, dropout=0.1) | {"embedding_size": 768},
    }

    def __post_init__(self) -> None:
        if not (0 < self.share < 1 and self.weight > 0 and 0 < self.generator <= 1):
            raise ConfigError(
                "these options are not possible",
                got=f"share {self.share}, weight {self.weight}, generator {self.generator}",
                expected="0 < share < 1, weight above 0, 0 < generator <= 1",
            )

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Both networks, drawn."""
        config = architecture.configured(size, ARCHITECTURE, (ARCHITECTURE,), vocabulary, length)
        return self._beside(architecture.drawn(AutoModelForPreTraining, config, seed), seed)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """An ELECTRA discriminator; its generator is never kept with it, so a fresh one is drawn."""
        kept, missing = architecture.opened(AutoModelForPreTraining, folder, (ARCHITECTURE,), seed)
        architecture.require_heads_only(missing, HEAD, folder)
        pair = self._beside(kept, seed)
        shared = {id(weight) for weight in pair.discriminator.parameters()}
        fresh = [name for name, weight in pair.generator.named_parameters("generator") if id(weight) not in shared]
        added = ["a network that makes the questions", *(["a head for yes or no"] if missing else [])]
        return ContinuedNetwork(
            pair,
            Vocabulary.open(folder),
            int(kept.config.max_position_embeddings),
            added,
            [*fresh, *(f"discriminator.{name}" for name in missing)],
        )

    def _beside(self, discriminator: Any, seed: int) -> Pair:
        small = architecture.drawn(AutoModelForMaskedLM, self._smaller(discriminator.config), derive(seed, "generator"))
        return Pair(*map(architecture.with_short_attention, (discriminator, small)))

    def _smaller(self, config: PreTrainedConfig) -> PreTrainedConfig:
        """The same depth, `generator` of the width, in whole heads."""
        whole: Any = config
        heads = max(1, round(self.generator * whole.num_attention_heads))
        width = heads * max(1, round(self.generator * whole.hidden_size / heads))
        inside = max(1, round(whole.intermediate_size / whole.hidden_size * width))
        changed = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": inside}
        return type(config)(**{**config.to_dict(), **changed})

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Full rows across documents."""
        return PackedRows(tokens, length, start=vocabulary.start, end=vocabulary.end)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """(B, T) ids -> "ids" with masks, "labels" and "chance" (B, T), a number in [0, 1) that decides each draw."""
        batch = Masked(share=self.share, masked=1.0, random=0.0).prepare(rows, vocabulary, draw)
        return replace(batch, tensors={**batch.tensors, "chance": torch.rand(rows.shape, generator=draw)})

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """The small network answers at the masked places alone, the other everywhere."""
        own: Any = network
        masked, labels = batch.tensors["ids"], batch.tensors["labels"]
        chosen = labels != IGNORED
        states = own.generator.base_model(input_ids=masked)[0][chosen]
        logits = own.generator.generator_lm_head(own.generator.generator_predictions(states)).float()  # (N, V)
        nats = cross_entropy(logits, labels[chosen], reduction="sum")
        shown = masked.masked_scatter(chosen, drawn_tokens(logits.detach(), batch.tensors["chance"][chosen]))
        replaced = chosen & (shown != labels)  # a token that was drawn as it had been is no replacement
        answers = own.discriminator(input_ids=shown).logits.float()  # (B, T)
        told = binary_cross_entropy_with_logits(answers, replaced.float(), reduction="sum")
        told = told / (batch.rows * masked.shape[1])
        total = nats / batch.predicted + self.weight * told
        return Loss(total, nats.detach(), int(chosen.sum()), {"replaced": told.detach()})

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """The network that is kept, without the small one. No loss trains its first token: it is read by the mean."""
        own: Any = network
        kept = own.discriminator
        architecture.save(kept, vocabulary, folder, "mean", int(kept.config.max_position_embeddings))


def drawn_tokens(logits: Tensor, chance: Tensor) -> Tensor:
    """(N, V), (N,) in [0, 1) -> (N,) ids, each with its probability: the same for the same `chance`."""
    below = logits.softmax(dim=1).cumsum(dim=1)
    ids = torch.searchsorted(below, (chance * below[:, -1])[:, None], right=True)[:, 0]
    return ids.clamp(max=logits.shape[1] - 1)
