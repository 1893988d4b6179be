"""Replaced-token detection, as in ELECTRA (Clark et al. 2020, arXiv:2003.10555)."""

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
from graftwork.nn.attention_interface import with_our_attention
from graftwork.pretrain import architecture
from graftwork.pretrain.architecture import bert_size
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.objectives.masked import Masked
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives
from graftwork.train.seeds import derive

ARCHITECTURE = "electra"
TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")  # embeddings shared by both networks
HEAD = ("discriminator_predictions.",)


class Pair(nn.Module):
    """The discriminator, which is kept, and the small generator of replaced tokens. They share their embeddings."""

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
    """Replaced-token detection: a generator samples tokens at masked positions, a discriminator detects replaced ones.

    The loss is the generator's masked-LM loss plus `weight` times the discriminator's binary loss at every position. No
    gradient flows from the discriminator to the generator through the sampled tokens.
    """

    share: float = 0.15  # of a row's tokens, masked and sampled anew
    weight: float = 50.0  # of the discriminator's loss
    generator: float = 0.25  # width of the generator / width of the discriminator

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "wordpiece"
    scores_of: ClassVar[str] = "masked tokens, predicted by the generator"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(learning_rate=1e-3, batch=64, length=128)
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": bert_size(2, 128) | {"embedding_size": 128},
        "mini": bert_size(4, 256) | {"embedding_size": 128},
        "small": bert_size(12, 256) | {"embedding_size": 128},  # the paper's small one
        "base": bert_size(12, 768, dropout=0.1) | {"embedding_size": 768},
    }

    def __post_init__(self) -> None:
        if not (0 < self.share < 1 and self.weight > 0 and 0 < self.generator <= 1):
            raise ConfigError(
                "these options are not possible",
                got=f"share {self.share}, weight {self.weight}, generator {self.generator}",
                expected="0 < share < 1, weight above 0, 0 < generator <= 1",
            )

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build both networks with fresh weights."""
        config = architecture.fresh_config(size, ARCHITECTURE, (ARCHITECTURE,), vocabulary, length)
        return self._beside(architecture.draw_network(AutoModelForPreTraining, config, seed), seed)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load an ELECTRA discriminator with a fresh generator, since the generator is not stored with it."""
        kept, missing = architecture.load_network(AutoModelForPreTraining, folder, (ARCHITECTURE,), seed)
        architecture.require_heads_only(missing, HEAD, folder)
        pair = self._beside(kept, seed)
        shared = {id(weight) for weight in pair.discriminator.parameters()}
        fresh = [name for name, weight in pair.generator.named_parameters("generator") if id(weight) not in shared]
        added = ["a generator", *(["a detection head"] if missing else [])]
        return ContinuedNetwork(
            pair,
            Vocabulary.open(folder),
            int(kept.config.max_position_embeddings),
            added,
            [*fresh, *(f"discriminator.{name}" for name in missing)],
        )

    def _beside(self, discriminator: Any, seed: int) -> Pair:
        small = architecture.draw_network(
            AutoModelForMaskedLM, self._smaller(discriminator.config), derive(seed, "generator")
        )
        return Pair(*map(with_our_attention, (discriminator, small)))

    def _smaller(self, config: PreTrainedConfig) -> PreTrainedConfig:
        """Return the generator's configuration: the same depth, `generator` times the width, in whole heads."""
        whole: Any = config
        heads = max(1, round(self.generator * whole.num_attention_heads))
        width = heads * max(1, round(self.generator * whole.hidden_size / heads))
        inside = max(1, round(whole.intermediate_size / whole.hidden_size * width))
        changed = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": inside}
        return type(config)(**{**config.to_dict(), **changed})

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut full rows across documents."""
        return PackedRows(tokens, length, start=vocabulary.start, end=vocabulary.end)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, T) into masked "ids", "labels" and "chance" (B, T), a number in [0, 1) per sampled token."""
        batch = Masked(share=self.share, masked=1.0, random=0.0).prepare(rows, vocabulary, draw)
        return replace(batch, tensors={**batch.tensors, "chance": torch.rand(rows.shape, generator=draw)})

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the generator's loss at the masked positions and the discriminator's at all positions."""
        own: Any = network
        masked, labels = batch.tensors["ids"], batch.tensors["labels"]
        chosen = labels != IGNORED
        states = own.generator.base_model(input_ids=masked)[0][chosen]
        logits = own.generator.generator_lm_head(own.generator.generator_predictions(states)).float()  # (N, V)
        nats = cross_entropy(logits, labels[chosen], reduction="sum")
        shown = masked.masked_scatter(chosen, drawn_tokens(logits.detach(), batch.tensors["chance"][chosen]))
        replaced = chosen & (shown != labels)  # a sampled token equal to the original is not replaced
        answers = own.discriminator(input_ids=shown).logits.float()  # (B, T)
        told = binary_cross_entropy_with_logits(answers, replaced.float(), reduction="sum")
        told = told / (batch.rows * masked.shape[1])
        total = nats / batch.predicted + self.weight * told
        return Loss(total, nats.detach(), int(chosen.sum()), {"replaced": told.detach()})

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write the discriminator alone, pooled by the mean since no loss trains its first token."""
        own: Any = network
        kept = own.discriminator
        architecture.save(kept, vocabulary, folder, "mean", int(kept.config.max_position_embeddings))


def drawn_tokens(logits: Tensor, chance: Tensor) -> Tensor:
    """Sample ids (N,) from logits (N, V) by the numbers `chance` (N,) in [0, 1); deterministic given `chance`."""
    below = logits.softmax(dim=1).cumsum(dim=1)
    ids = torch.searchsorted(below, (chance * below[:, -1])[:, None], right=True)[:, 0]
    return ids.clamp(max=logits.shape[1] - 1)
