"""Examples as texts, and their features in a frozen backbone, for comparing examples rather than predicting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.backbone import Backbone, towers_of
from graftwork.core.example import Example, text_of
from graftwork.core.hidden_states import BatchStates
from graftwork.core.media import MEDIA
from graftwork.module.task_module import TaskModule
from graftwork.targets.words import TOKEN
from graftwork.train.answer import frozen_states
from graftwork.train.answer_order import batches

WORD_FEATURES = 100  # reduced dimensions of word features, used without a backbone


def read_as_text(example: Example) -> Example:
    """Convert words to a text, and choices, or a question with its passage, to a pair of texts; keep other inputs."""
    given = example.inputs
    if "question" in given:
        return Example(example.id, {"text_a": given["question"], "text_b": example.source or text_of(given["words"])})
    if "choices" in given:
        return Example(example.id, {"text_a": given["text"], "text_b": text_of(given["choices"])})
    if "words" in given:
        return Example(example.id, {"text": example.source or text_of(given["words"])})
    return example


def features_of(module: TaskModule, examples: Sequence[Example]) -> tuple[NDArray[np.float64] | None, str]:
    """Return features (N, P) and their source: the frozen backbone, or words. Without either, return None and why."""
    if module.backbone is not None:
        return frozen_features(module.backbone, examples), f"the frozen {module.backbone.card.id}"
    if set(module.roles) & set(MEDIA):
        return None, f"a module without a backbone reads nothing of {module.roles[0]}s to compare them by"
    return word_features(examples), "their words"


@torch.inference_mode()
def frozen_features(backbone: Backbone, examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return (N, P): the last block's hidden states, pooled, and joined for pairs, as a head would receive them."""
    listed = [read_as_text(example) for example in examples]
    encoded = backbone.encode(listed)
    last = backbone.card.blocks
    found: NDArray[np.float64] | None = None
    for rows in batches(encoded):
        inputs = backbone.collate(encoded, encoded.sequences(rows))
        states = frozen_states(backbone, inputs, last, encoded.towers)
        read = BatchStates(backbone, inputs, states, encoded.towers).joined(last).double().cpu().numpy()
        if found is None:
            found = np.zeros((len(listed), read.shape[1]))
        found[rows] = read
    assert found is not None and towers_of(encoded.towers, listed[0]) == encoded.towers
    return found


def word_features(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return (N, at most 100): TF-IDF of words and word pairs, reduced by truncated SVD, without labels."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["\n".join(map(text_of, read_as_text(example).inputs.values())) for example in examples]
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=TOKEN, min_df=2)
    try:
        inputs = words.fit_transform(texts)
    except ValueError:  # no word occurs in two texts
        return np.zeros((len(texts), 1))
    width = min(WORD_FEATURES, inputs.shape[1] - 1, len(texts) - 1)
    if width < 1:
        return np.asarray(inputs.toarray())
    return np.asarray(TruncatedSVD(width, random_state=0).fit_transform(inputs))


def token_ids(backbone: Backbone, examples: Sequence[Example]) -> list[int]:
    """Return the concatenated token ids of all examples."""
    encoded = backbone.encode([read_as_text(example) for example in examples])
    return [token for ids in encoded.ids for token in ids]
