"""Denoising: BART's pre-training (Lewis et al. 2020, arXiv:1910.13461)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM

from graftwork.errors import ConfigError
from graftwork.pretrain import architecture, writing_network
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives

STOPS = (".", "!", "?")
BEFORE = "Ġ▁#"  # marks at the beginning of a token: a space before it, or a position inside a word


def bart_size(layers: int, width: int, heads: int, dropout: float = 0.0) -> dict[str, Any]:
    """Return a size in BART's proportions. No dropout by default: small networks see most text once."""
    return writing_network.halves(layers, width, heads, dropout) | {"activation_function": "gelu"}


@objectives.register("denoising")
@dataclass(frozen=True)
class Denoising:
    """Spans of a row become one mask each, its sentences change places, and an encoder-decoder writes the row anew."""

    share: float = 0.3  # of a row's tokens, masked
    span: float = 3.0  # mean number of tokens that a mask replaces; some replace none
    permuted: bool = True  # whether sentences, cut at full stops, change places

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "bpe"
    scores_of: ClassVar[str] = "whole rows, reconstructed from their corrupted form"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(
        learning_rate=1e-3, batch=64, length=128, schedule="linear", weight_decay=0.01
    )
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": bart_size(2, 128, 2),
        "mini": bart_size(4, 256, 4),
        "small": bart_size(4, 512, 8),
        "base": bart_size(6, 768, 12, 0.1),
    }

    def __post_init__(self) -> None:
        writing_network.require_spans(self.share, self.span)

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a BART; its decoder starts with the end token."""
        own = {"decoder_start_token_id": vocabulary.end}
        config = architecture.fresh_config({**own, **size}, "bart", ("bart",), vocabulary, length)
        network = architecture.draw_network(AutoModelForSeq2SeqLM, config, seed)
        return writing_network.ready(network, vocabulary, vocabulary.end)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a BART."""
        return writing_network.load_writer(folder, "bart", seed)

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut full rows across documents, between a start and an end token."""
        return PackedRows(tokens, length, start=vocabulary.start, end=vocabulary.end)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, T) into corrupted "ids" with an attention "mask" (B, S); "labels" (B, T) are the original."""
        mask = vocabulary.mask
        if mask is None:
            raise ConfigError("the tokenizer has no mask token", do="choose another --tokenizer")
        stops = torch.tensor(full_stops(vocabulary)) if self.permuted else None
        read = []
        for row in rows:
            text = row[1:-1]
            text = text if stops is None else with_sentences_moved(text, torch.isin(text, stops), draw)
            read.append(torch.cat([row[:1], self._infilled(text, mask, draw), row[-1:]]))
        return writing_network.padded_batch(torch.stack(read), rows, vocabulary)

    def _infilled(self, text: Tensor, mask: int, draw: torch.Generator) -> Tensor:
        """Return ids (N,) with spans replaced by one mask each.

        The numbers of masked tokens and of spans are fixed, so that all rows become equally long. BART's span lengths
        are Poisson; given their sum they are multinomial. An empty span inserts a mask. All places are equally likely.
        """
        noise = min(max(round(len(text) * self.share), 1), len(text))
        spans = max(1, round(noise / self.span))
        lengths = torch.randint(spans, (noise,), generator=draw).bincount(minlength=spans)
        order = torch.randperm(len(text) - noise + spans, generator=draw)[:spans].sort().values
        shown = order.diff(prepend=torch.tensor([-1])) - 1  # tokens between one span and the next
        pieces, place = [], 0
        for before, length in zip(shown.tolist(), lengths.tolist(), strict=True):
            pieces += [text[place : place + before], torch.tensor([mask])]
            place += before + length
        return torch.cat([*pieces, text[place:]])

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over every token of the original rows."""
        return writing_network.writing_loss(network, batch)

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a folder that transformers opens as a BART; as a backbone, its encoder is pooled by the mean."""
        own: Any = network
        writing_network.save(own, vocabulary, folder, own.config.max_position_embeddings)


def full_stops(vocabulary: Vocabulary) -> list[int]:
    """Return the ids that end a sentence: full stops, and the end of a document."""
    tokens = vocabulary.tokens(range(vocabulary.size))
    return [number for number, token in enumerate(tokens) if token.lstrip(BEFORE) in STOPS] + [vocabulary.end]


def with_sentences_moved(text: Tensor, stops: Tensor, draw: torch.Generator) -> Tensor:
    """Return ids (N,) with their sentences in a drawn order; `stops` (N,) is True where one ends."""
    ends = [*(stops[:-1].nonzero()[:, 0] + 1).tolist(), len(text)]
    sentences = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return torch.cat([sentences[place] for place in torch.randperm(len(sentences), generator=draw).tolist()])
