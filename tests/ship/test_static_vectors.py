"""Word vectors made of a network."""

from __future__ import annotations

import numpy as np
import torch

from graftwork.core.example import Example
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.write_folder import as_transformer
from graftwork.ship.static_vectors import static_backbone

TEXTS = ("The film was good, so good!", "a cold film")


def test_words_of_texts_come_first_then_those_of_the_tokenizer() -> None:
    network = as_transformer(open_backbone("tiny_text", precision="fp32"))
    made = static_backbone(network, TEXTS, words=20, width=8, bf16=False)
    words = [*made.known.vocabulary]
    assert words[:2] == ["film", "good"] and {"the", "cold", ","} <= set(words[:12]) and len(words) == 20
    assert set(words[12:]) <= set(network.tokenizer.get_vocab())
    assert made.card.width == 8 and made.encode([Example("1", {"text": "A good film"})]).unknown == 0


def test_vectors_are_principal_components_weighted_by_rarity() -> None:
    network = as_transformer(open_backbone("tiny_text", precision="fp32"))
    made = static_backbone(network, TEXTS, words=40, width=999, bf16=False)
    words, table = [*made.known.vocabulary], made.vectors.table
    encoded = network.encode([Example(word, {"text": word}) for word in words])
    with torch.no_grad():
        pooled = network.features(network.collate(encoded, range(len(words)))).pooled.double().numpy()
    share = 1 / np.arange(1, 41)
    weights = 1e-3 / (1e-3 + share / share.sum())
    centred = (pooled - pooled.mean(axis=0)) * weights[:, None]  # all components: rotated, distances as they were
    assert np.allclose(table @ table.T, centred @ centred.T, atol=1e-4)
    assert np.all(np.diff(np.square(table / weights[:, None]).sum(axis=0)) <= 1e-6)  # the largest first
