"""A static student: one vector per word, made from the network's output for that word alone, as in model2vec.

The vectors are the principal components of the network's features of single words, weighted by how rare the words are
(Tulkens & van Dongen 2024, github.com/MinishLab/model2vec; the weights: Arora et al. 2017, "A Simple but Tough-to-Beat
Baseline for Sentence Embeddings").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.backbones.word_vectors import WordVectorBackbone, as_backbone
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.pretrained.known_words import pieces
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.train.answer_order import batches

RARE = 1e-3  # parameter a of SIF: a word of this share of all words gets half the weight of the rarest
MARKS = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}"  # before a word's first piece: GPT, T5


def static_backbone(
    network: TransformerBackbone, texts: Iterable[str], *, words: int, width: int, bf16: bool
) -> WordVectorBackbone:
    """Return word vectors distilled from `network`: at most `words` words, with at most `width` values each.

    The words are those of `texts`, the most frequent first, and then the whole words of the tokenizer.
    """
    counted = Counter(piece.lower() for text in texts for chunk in text.split() for piece in pieces(chunk))
    known = (word for word in _whole_words(network) if word not in counted)
    chosen = [*(word for word, _ in counted.most_common()), *known][:words]
    table = _principal(_features(network, chosen), width) * _weights(len(chosen))[:, None]
    return as_backbone("static", WordVectors(chosen, table.astype(np.float32)), random_seed=None, bf16=bf16)


def _whole_words(network: TransformerBackbone) -> Sequence[str]:
    """Return the tokens that are words, lower-cased, in the tokenizer's order, which often is by frequency."""
    vocabulary = network.tokenizer.get_vocab()
    by_number = sorted(vocabulary, key=lambda token: vocabulary[token])
    marked = any(token[0] in MARKS for token in by_number if token)
    begun = [token[1:] for token in by_number if token and token[0] in MARKS] if marked else by_number
    return list(dict.fromkeys(token.lower() for token in begun if token.isalpha()))


@torch.inference_mode()
def _features(network: Backbone, words: Sequence[str]) -> NDArray[np.float64]:
    """Return the pooled output (V, R) of the network for each word alone."""
    encoded = network.encode([Example(f"word/{number}", {"text": word}) for number, word in enumerate(words)])
    order, parts = batches(encoded), []
    for rows in order:
        pooled = network.features(network.collate(encoded, encoded.sequences(rows))).pooled
        parts.append(pooled.double().cpu().numpy())
    found = np.concatenate(parts)
    return np.asarray(found[np.argsort(np.concatenate(order), kind="stable")])


def _principal(features: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the first `width` principal components (V, width) of features (V, R), or all R."""
    centred = features - features.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # the largest last
    return np.asarray(centred @ axes[:, ::-1][:, :width])


def _weights(words: int) -> NDArray[np.float64]:
    """Return the SIF weights (V,) of words ordered by frequency, which is taken to follow Zipf's law."""
    share: Any = 1 / np.arange(1, words + 1)
    share /= share.sum()
    return np.asarray(RARE / (RARE + share))
