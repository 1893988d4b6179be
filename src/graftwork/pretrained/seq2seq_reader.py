"""An encoder-decoder as a prompted language model: the encoder takes the prompt, the decoder the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput

from graftwork.core.backbone import Encoded
from graftwork.core.language_model import ReadPrompts
from graftwork.core.writing import TellTokens, TextSearch, WrittenTokens
from graftwork.pretrained.seq2seq import Seq2SeqBackbone


@dataclass(frozen=True)
class Seq2SeqReader:
    """Implements `ReadThenWrite`."""

    backbone: Seq2SeqBackbone

    @property
    def name(self) -> str:
        """The name of the backbone."""
        return self.backbone.card.id

    @property
    def context(self) -> int:
        """The maximum number of tokens that the encoder reads."""
        return self.backbone.card.max_length

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end a text."""
        return self.backbone.special.ends

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the encoder's tokens of each text, special ones included, without truncation."""
        return [list(encoding.ids) for encoding in self.backbone.tokenizer.encode_batch_fast(list(texts))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the first and end character of each token of a text, without special ones."""
        return list(self.backbone.tokenizer.encode(text, add_special_tokens=False).offsets)

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the decoder's tokens of texts, without the end token; leading blanks are removed."""
        found = self.backbone.tokenizer.encode_batch_fast([text.lstrip() for text in texts], add_special_tokens=False)
        return [[*self.backbone.special.first, *encoding.ids] for encoding in found]

    def read(self, rows: Sequence[Sequence[int]]) -> ReadPrompts:
        """Run the encoder on B tokenised prompts, and the decoder on its start token."""
        encoded = Encoded([list(row) for row in rows], [[0] * len(row) for row in rows], towers=1, cut=0)
        inputs = self.backbone.collate(encoded, range(len(rows)))
        states, mask = self.backbone.features(inputs).sequence, inputs["attention_mask"]
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        logits = self._decoded(states, mask, cache, states.new_full((len(rows), 1), self._start, dtype=torch.int64))
        return ReadPrompts(
            states, mask, logits[:, 0], _kept(cache.self_attention_cache), _kept(cache.cross_attention_cache)
        )

    def follow(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, U, V) fp32: the logits after each token of `rows`; row i answers prompt `owners[i]`."""
        chosen = list(owners)
        cache = EncoderDecoderCache(_cache_of(read.begun, chosen), _cache_of(read.crossing, chosen))
        tokens = self._padded(rows, self.backbone.special.pad).to(read.states.device)  # (n, U)
        return self._decoded(read.states[chosen], read.mask[chosen], cache, tokens)

    def next_logits(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the next token after `rows`, beginnings of answers that may be empty."""
        found = read.first[list(owners)]
        begun = [place for place, row in enumerate(rows) if row]
        if begun:
            told = [rows[place] for place in begun]
            logits = self.follow(read, [owners[place] for place in begun], told)
            found[begun] = logits[range(len(told)), [len(row) - 1 for row in told]]
        return found

    def _decoded(self, states: Tensor, mask: Tensor, cache: EncoderDecoderCache, tokens: Tensor) -> Tensor:
        logits: Tensor = self.backbone.module(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=tokens,
            decoder_attention_mask=tokens.new_ones(  # it is causal: padding after a text reaches no token
                len(tokens), cache.get_seq_length() + tokens.shape[1]
            ),
            past_key_values=cache,
            use_cache=True,
        ).logits
        return logits.float()

    @property
    def _start(self) -> int:
        return self.backbone.special.start[0]

    def write(self, read: ReadPrompts, search: TextSearch, tell: TellTokens | None = None) -> list[WrittenTokens]:
        """Write a text for each prompt."""
        return self.backbone.write(read.states, read.mask, search, tell)

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.backbone.text_of(tokens)

    def _padded(self, rows: Sequence[Sequence[int]], behind: int) -> Tensor:
        longest = max(map(len, rows))
        filled = [[*row, *[behind] * (longest - len(row))] for row in rows]
        return torch.tensor(filled, dtype=torch.int64).reshape(len(rows), longest)


def _kept(cache: DynamicCache) -> tuple[tuple[Tensor, Tensor], ...]:
    layers: Any = cache.layers
    return tuple((layer.keys, layer.values) for layer in layers)


def _cache_of(kept: Sequence[tuple[Tensor, Tensor]], rows: list[int]) -> DynamicCache:
    """Return a new cache with these rows of the kept keys and values."""
    layers: list[Any] = []
    for keys, values in kept:
        layer: Any = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys[rows], values[rows]  # `update` would copy them once more
        layers.append(layer)
    cache = DynamicCache()
    cache.layers = layers
    return cache
