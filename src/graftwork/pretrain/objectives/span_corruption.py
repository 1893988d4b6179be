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

SENTINELS = 100  # of a vocabulary that is trained, as T5's
MODEL_MAX_LENGTH = 512  # tokens that a folder's tokenizer names at least; positions are relative and have no end


def t5_size(layers: int, width: int, heads: int, hidden: int) -> dict[str, Any]:
    """Return a size of T5 1.1: gated MLPs, an output map of its own, and no dropout in pre-training."""
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
        """Build a T5. An output map of its own is drawn at 1/sqrt(width), as in T5X: its logits begin near 0."""
        config = architecture.fresh_config(size, "t5", ("t5",), vocabulary, length)
        network: Any = architecture.draw_network(AutoModelForSeq2SeqLM, config, seed)
        if not config.scale_decoder_outputs:  # transformers ties the two maps of every fresh T5
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
        """Cut rows so long that what is left of them is `length` positions; documents lie end to end."""
        content = self._content(length)
        vocabulary.id_of(sentinel(self._counts(content)[1] - 1))  # a long row needs many
        return PackedRows(tokens, content)

    def _counts(self, length: int) -> tuple[int, int]:
        """Return how many of `length` tokens are hidden, and in how many spans; neither for fewer than two tokens."""
        if length < 2:
            return 0, 0
        noise = min(max(round(length * self.share), 1), length - 1)
        return noise, max(1, min(round(noise / self.span), length - noise))

    def _widths(self, content: int) -> tuple[int, int]:
        """Return the ids that are read and those that are written of so many tokens, end tokens included."""
        noise, spans = self._counts(content)
        return content - noise + spans + 1, noise + spans + 1

    def _content(self, length: int) -> int:
        """Return the most tokens of which at most `length` ids are read."""
        content = length
        while self._widths(content + 1)[0] <= length:
            content += 1
        while self._widths(content)[0] > length:
            content -= 1
        return content

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, N) into "ids", "mask" (B, S) and "labels" (B, T).

        Ends of documents are left out, as T5's texts had none inside a row: what ends a text only ends what is written.
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
        widths = self._widths(rows.shape[1])  # every batch is as wide, so that each step is as dear
        ids = writing_network.padded(read, vocabulary.pad, widths[0])
        return writing_network.padded_batch(ids, writing_network.padded(written, IGNORED, widths[1]), vocabulary)

    def _hidden(self, length: int, draw: torch.Generator) -> Tensor:
        """Return (N,) bool, True where a token is hidden: spans of random lengths, what lies between them random too.

        As in T5, a row begins with a span that is shown and ends with one that is hidden.
        """
        noise, spans = self._counts(length)
        if not spans:
            return torch.zeros(length, dtype=torch.bool)
        shown, hidden = random_division(length - noise, spans, draw), random_division(noise, spans, draw)
        turns = torch.stack([shown, hidden], dim=1).flatten()
        return torch.repeat_interleave(torch.tensor([False, True]).repeat(spans), turns)

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over what is written: the hidden tokens, their sentinels and the end."""
        return writing_network.writing_loss(network, batch)

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a folder that transformers opens as a T5; as a backbone, its encoder is read by the mean."""
        own: Any = network
        writing_network.save(own, vocabulary, folder, MODEL_MAX_LENGTH)
        if not own.config.scale_decoder_outputs:  # transformers 5 forgets it of every T5, older versions read it
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
    """Return ids (N,) with each hidden span replaced by the sentinel of its number."""
    begins = hidden.clone()
    begins[1:] &= ~hidden[:-1]
    numbers = (begins.cumsum(0) - 1).clamp(min=0)
    return torch.where(begins, names[numbers], text)[begins | ~hidden]
