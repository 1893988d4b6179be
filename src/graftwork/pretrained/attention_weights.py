"""Attention weights of a block, for one head or all heads: between the tokens of a text, or between its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.nn.short_attention import NAME
from graftwork.pretrained.transformer import TransformerBackbone


@dataclass(frozen=True)
class AttentionWeights:
    """The attention weights of one head on one text, or of all heads of the block."""

    tokens: tuple[str, ...]  # as written in the text; added tokens by their names
    word_of: tuple[int, ...]  # (T,) word index of each token; an added token is a word of its own
    words: tuple[str, ...]
    added: tuple[bool, ...]  # True for words that are added tokens: [CLS], [SEP], …
    weights: NDArray[np.float32]  # (T, T), or (H, T, T): attention of token i to token j; rows sum to 1
    blocks: int
    heads: int  # of this block
    cut: bool  # the text is longer than the backbone's maximum: only its beginning was encoded

    def of_words(self) -> NDArray[np.float32]:
        """Return the weights between words: (words, words), or (H, words, words).

        Weights are summed over the tokens of the attended word, and averaged over those of the attending word, so that
        rows sum to 1 (Clark et al. 2019, arXiv:1906.04341).
        """
        part = np.zeros((len(self.words), len(self.tokens)), dtype=np.float32)
        part[list(self.word_of), range(len(self.tokens))] = 1
        whole: NDArray[np.float32] = part @ self.weights @ part.T / part.sum(axis=1, keepdims=True)
        return whole


def attention_weights(
    backbone: TransformerBackbone, text: str, block: int, head: int | None, *, most_words: int | None = None
) -> AttentionWeights:
    """Return the attention weights of one head of one block, both counted from 0; `head` None: of all its heads.

    They equal transformers' `output_attentions`, and are computed on a twin, so that other users of the backbone's
    weights are not affected. Raises `ConfigError` for a block or head that does not exist, for a text without tokens or
    (before the network runs) with more than `most_words` words, and for a network that returns no attention weights.
    """
    encoded = backbone.encode([Example("text", {"text": text})])
    encoding = backbone.tokenizer.encode(text)
    if not encoding.ids:
        raise ConfigError(
            "the text has no token that the backbone knows",
            got=repr(text[:80]),
            do="give a text in a language and script that it was trained on",
        )
    word_of, starts = _words(encoding.word_ids)
    if most_words is not None and len(starts) > most_words:
        raise ConfigError(
            "too many words for a picture",
            got=str(len(starts)),
            expected=f"at most {most_words}",
            do="shorten the text",
        )
    of_blocks = _of_blocks(backbone, backbone.collate(encoded, [0]))
    chosen = _numbered(of_blocks, block, "block")[0]  # (H, T, T)
    weights = chosen if head is None else _numbered(chosen, head, "head")
    tokens = tuple(_shown(text, *at, name) for name, at in zip(encoding.tokens, encoding.offsets, strict=True))
    ends = [*starts[1:], len(tokens)]
    return AttentionWeights(
        tokens=tokens,
        word_of=word_of,
        words=tuple(
            _shown(text, encoding.offsets[first][0], encoding.offsets[end - 1][1], tokens[first])
            for first, end in zip(starts, ends, strict=True)
        ),
        added=tuple(bool(encoding.special_tokens_mask[first]) for first in starts),
        weights=weights.float().cpu().numpy(),
        blocks=len(of_blocks),
        heads=len(chosen),
        cut=bool(encoded.cut),
    )


@torch.inference_mode()
def _of_blocks(backbone: TransformerBackbone, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Return each block's weights (1, H, T, T). Fused kernels give none, so a twin uses eager attention."""
    network: Any = backbone.twin().module
    if network.config._attn_implementation == NAME and hasattr(network, "set_attn_implementation"):
        network.set_attn_implementation("eager")
    found = network(**inputs, **backbone.layout.options, output_attentions=True).attentions
    if found is None or len(found) != backbone.card.blocks or any(weights is None for weights in found):
        raise ConfigError(
            f"the network of {backbone.card.id} does not give its attention weights",
            got=f"family {backbone.card.family}",
            do="choose a bank whose backbone has attention in every block",
        )
    return tuple(found)


def _numbered(listed: tuple[Tensor, ...] | Tensor, number: int, noun: str) -> Tensor:
    if not 0 <= number < len(listed):
        raise ConfigError(f"there is no {noun} {number}", got=str(number), expected=f"0 to {len(listed) - 1}")
    return listed[number]


def _shown(text: str, start: int, end: int, name: str) -> str:
    """Return a span of the text, or the name of an added token, whose span is empty."""
    return text[start:end].strip() or name


def _words(word_ids: list[int | None]) -> tuple[tuple[int, ...], list[int]]:
    """Return the word index of each token, from 0, and the first token of each word."""
    starts = [i for i, word in enumerate(word_ids) if i == 0 or word is None or word != word_ids[i - 1]]
    begins = set(starts)
    return tuple((np.cumsum([i in begins for i in range(len(word_ids))]) - 1).tolist()), starts
