"""Span corruption: T5's pre-training (Raffel et al. 2020, arXiv:1910.10683), by the networks of T5 1.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM

from graftwork.io.files import read_json, write_json
from graftwork.pretrain import architecture, writing_network
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary, with_end_token
from graftwork.registry import objectives

SENTINELS = 100  # number of sentinels that are added to a fresh vocabulary, as in T5
MAX_LENGTH = 512  # tokens, recorded with the tokenizer, or `--length` if longer; relative positions set no limit


def t5_size(layers: int, width: int, heads: int, hidden: int) -> dict[str, Any]:
    """Return a size of T5 1.1: gated MLPs, output weights not tied to the embedding, no dropout in pre-training."""
    return {
        "num_layers": layers,
        "num_decoder_layers": layers,
        "d_model": width,
        "num_heads": heads,
        "d_kv": 64,
        "d_ff": hidden,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "dropout_rate": 0.0,
    }


@objectives.register("span_corruption")
@dataclass(frozen=True)
class SpanCorruption:
    """Spans of a row are hidden, each after a sentinel, and an encoder-decoder writes what was there."""

    share: float = 0.15  # of a row's tokens, hidden
    span: float = 3.0  # mean tokens of a hidden span

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "unigram"
    scores_of: ClassVar[str] = "hidden spans and their sentinels"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(
        learning_rate=2e-3, batch=64, length=128, schedule="cosine", weight_decay=0.0
    )
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": t5_size(2, 128, 2, 256),
        "mini": t5_size(4, 256, 4, 512),
        "small": t5_size(8, 512, 6, 1024),
        "base": t5_size(12, 768, 12, 2048),
    }

    def __post_init__(self) -> None:
        writing_network.require_spans(self.share, self.span)

    def extended(self, learned: Vocabulary) -> Vocabulary:
        """Return the vocabulary with sentinels, and with the end token alone after a text."""
        return with_end_token(learned, [sentinel(number) for number in range(SENTINELS)])

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a T5; output weights that are not tied are drawn with standard deviation 1/sqrt(width), as in T5X."""
        config = architecture.fresh_config(size, "t5", ("t5",), vocabulary, length)
        config.n_positions = max(MAX_LENGTH, length)  # as in T5's own configurations
        network: Any = architecture.draw_network(AutoModelForSeq2SeqLM, config, seed)
        if not config.scale_decoder_outputs:  # transformers ties the output weights of every fresh T5
            draw = torch.Generator().manual_seed(seed)
            weight = torch.randn(network.lm_head.weight.shape, generator=draw) * config.d_model**-0.5
            network.lm_head.weight = nn.Parameter(weight)
        return writing_network.ready(network, vocabulary, vocabulary.pad)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a T5 whose tokenizer has sentinels."""
        network, missing = architecture.load_network(AutoModelForSeq2SeqLM, folder, ("t5", "mt5"), seed)
        architecture.require_heads_only(missing, (), folder)
        vocabulary = Vocabulary.open(folder)
        vocabulary.id_of(sentinel(0))
        return ContinuedNetwork(writing_network.ready(network, vocabulary, vocabulary.pad), vocabulary)

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut rows across documents, as long as possible with at most `length` positions after the corruption."""
        content = self._content(length)
        vocabulary.id_of(sentinel(self._counts(content)[1] - 1))  # raises if a long row needs more than there are
        return PackedRows(tokens, content)

    def _counts(self, length: int) -> tuple[int, int]:
        """Return how many of `length` tokens are hidden, and in how many spans; 0 and 0 for fewer than two tokens."""
        if length < 2:
            return 0, 0
        noise = min(max(round(length * self.share), 1), length - 1)
        return noise, max(1, min(round(noise / self.span), length - noise))

    def _widths(self, content: int) -> tuple[int, int]:
        """Return the lengths of the input and of the target of a row of `content` tokens, end tokens included."""
        noise, spans = self._counts(content)
        return content - noise + spans + 1, noise + spans + 1

    def _content(self, length: int) -> int:
        """Return the length in tokens of the longest row whose input has at most `length` ids."""
        content = length
        while self._widths(content + 1)[0] <= length:
            content += 1
        while self._widths(content)[0] > length:
            content -= 1
        return content

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, N) into corrupted "ids" with their attention "mask" (B, S), and "labels" (B, T).

        The end tokens of documents are removed, as in T5: an end token then only ends an input or a target.
        """
        spans = self._counts(rows.shape[1])[1]
        names = torch.tensor([vocabulary.id_of(sentinel(number)) for number in range(spans)])
        end = torch.tensor([vocabulary.end])
        read, written = [], []
        for row in rows:
            text = row[row != vocabulary.end]
            hidden = self._hidden(len(text), draw)
            read.append(torch.cat([behind_sentinels(text, hidden, names), end]))
            written.append(torch.cat([behind_sentinels(text, ~hidden, names), end]))
        widths = self._widths(rows.shape[1])  # equal widths make all steps equally expensive
        ids = writing_network.padded(read, vocabulary.pad, widths[0])
        return writing_network.padded_batch(ids, writing_network.padded(written, IGNORED, widths[1]), vocabulary)

    def _hidden(self, length: int, draw: torch.Generator) -> Tensor:
        """Return (N,) bool, True where a token is hidden; hidden and visible spans alternate, with random lengths.

        As in T5, a row begins with a visible span and ends with a hidden one.
        """
        noise, spans = self._counts(length)
        if not spans:
            return torch.zeros(length, dtype=torch.bool)
        shown, hidden = random_division(length - noise, spans, draw), random_division(noise, spans, draw)
        turns = torch.stack([shown, hidden], dim=1).flatten()
        return torch.repeat_interleave(torch.tensor([False, True]).repeat(spans), turns)

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over the targets: the hidden tokens, their sentinels and the end token."""
        return writing_network.writing_loss(network, batch)

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a folder that transformers opens as a T5; as a backbone, its encoder is pooled by the mean."""
        own: Any = network
        writing_network.save(own, vocabulary, folder, getattr(own.config, "n_positions", MAX_LENGTH))
        if not own.config.scale_decoder_outputs:  # transformers 5 leaves it out for a T5, older versions need it
            path = folder / "config.json"
            write_json(path, read_json(path) | {"tie_word_embeddings": False})


def sentinel(number: int) -> str:
    """Return the name of a sentinel."""
    return f"<extra_id_{number}>"


def random_division(count: int, parts: int, draw: torch.Generator) -> Tensor:
    """Return (parts,) random lengths of 1 or more that add up to `count`, all such divisions being equally likely."""
    cuts = torch.randperm(count - 1, generator=draw)[: parts - 1].sort().values + 1
    ends = torch.tensor([0, *cuts.tolist(), count])
    return ends.diff()


def behind_sentinels(text: Tensor, hidden: Tensor, names: Tensor) -> Tensor:
    """Return ids (N,) with the n-th hidden span replaced by the n-th of the sentinels' ids `names`."""
    begins = hidden.clone()
    begins[1:] &= ~hidden[:-1]
    numbers = (begins.cumsum(0) - 1).clamp(min=0)
    return torch.where(begins, names[numbers], text)[begins | ~hidden]
