"""An encoder-decoder as a language model that is asked: the prompt is in its encoder, the answer in its decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from graftwork.core.backbone import Encoded
from graftwork.core.language_model import ReadPrompts
from graftwork.core.writing import NOTHING, TellTokens, TextSearch, WrittenTokens
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
        """Return the tokens of each text as the encoder reads them, special ones included; nothing is cut."""
        return [list(encoding.ids) for encoding in self.backbone.tokenizer.encode_batch_fast(list(texts))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return first character and end of each token of a text, without special ones."""
        return list(self.backbone.tokenizer.encode(text, add_special_tokens=False).offsets)

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts to be written, without the end's; blanks in front are left out."""
        found = self.backbone.tokenizer.encode_batch_fast([text.lstrip() for text in texts], add_special_tokens=False)
        return [[*self.backbone.special.first, *encoding.ids] for encoding in found]

    def read(self, rows: Sequence[Sequence[int]]) -> ReadPrompts:
        """Read B prompts with the encoder, and begin the decoder."""
        encoded = Encoded([list(row) for row in rows], [[0] * len(row) for row in rows], towers=1, cut=0)
        inputs = self.backbone.collate(encoded, range(len(rows)))
        states, mask = self.backbone.features(inputs).sequence, inputs["attention_mask"]
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        logits = self._decoded(states, mask, cache, states.new_full((len(rows), 1), self._start, dtype=torch.int64))
        crossing: Any = cache.cross_attention_cache.layers
        return ReadPrompts(states, mask, logits[:, 0], tuple((layer.keys, layer.values) for layer in crossing))

    def chances(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> list[float]:
        """Return log p of answers as tokens, each to the prompt of B that is its owner.

        The first token is read off what the decoder began with: only longer answers cost a pass of it.
        """
        firsts = torch.tensor([row[0] for row in rows], device=read.first.device)
        log_firsts = read.first.log_softmax(dim=1)[list(owners), firsts].double()
        longer = [place for place, row in enumerate(rows) if len(row) > 1]
        if longer:
            told = [list(rows[place]) for place in longer]
            logits = self._logits(read, [owners[place] for place in longer], [row[:-1] for row in told])  # (n, U, V)
            tokens = self._padded(told, NOTHING).to(logits.device)  # (n, U)
            lost = cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=NOTHING, reduction="none")
            log_firsts[longer] = -lost.view(tokens.shape).double().sum(dim=1)
        found: list[float] = log_firsts.tolist()
        return found

    def next_logits(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the token that follows these tokens, maybe none, of an answer."""
        if not any(rows):
            return read.first[list(owners)]
        logits = self._logits(read, owners, rows)
        last = torch.tensor([len(row) for row in rows], device=logits.device)
        return logits[torch.arange(len(rows), device=logits.device), last]

    def _logits(self, read: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, 1 + U, V) fp32: the logits behind the beginning and behind each of the tokens of these rows."""
        chosen = list(owners)
        crossing = DynamicCache()
        for number, (keys, values) in enumerate(read.crossing):
            crossing.update(keys[chosen], values[chosen], number)
        cache = EncoderDecoderCache(DynamicCache(), crossing)
        before = pad(self._padded(rows, self.backbone.special.pad), (1, 0), value=self._start)  # (n, 1 + U)
        return self._decoded(read.states[chosen], read.mask[chosen], cache, before.to(read.states.device))

    def _decoded(self, states: Tensor, mask: Tensor, cache: EncoderDecoderCache, before: Tensor) -> Tensor:
        logits: Tensor = self.backbone.module(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=before,
            decoder_attention_mask=torch.ones_like(before),  # it is causal: padding behind a text reaches no token
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
