"""The default backbone, opened without transformers, beside what transformers makes of the same folder."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graftwork.backbones.minilm import package_folder
from graftwork.core.example import Example
from graftwork.pretrained.attention_weights import attention_weights
from graftwork.pretrained.layout import BERT
from graftwork.pretrained.load_folder import open_folder
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone

TEXTS = ("What is a dog?", "my card is lost, please héllo, help me now 中文 " * 3, "short", "far too long " * 300)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_is_what_transformers_makes_of_its_folder(precision: str) -> None:
    ours = open_backbone("minilm", precision=precision)
    theirs = open_folder(package_folder(), "minilm", BERT, random_seed=None, bf16=precision == "bf16")
    assert ours.card == theirs.card  # its revision too: runs keep their ids
    examples = [Example(str(number), {"text": text}) for number, text in enumerate(TEXTS)]
    encoded, expected = ours.encode(examples), theirs.encode(examples)
    assert (encoded.ids, encoded.types, encoded.cut) == (expected.ids, expected.types, expected.cut)
    inputs = ours.collate(encoded, range(len(TEXTS)))
    with torch.no_grad():
        assert all(map(torch.equal, ours.states(inputs), theirs.states(inputs)))
        assert torch.equal(ours.features(inputs).pooled, theirs.features(inputs).pooled)


@pytest.mark.slow
def test_its_attention_is_that_of_transformers() -> None:
    ours = open_backbone("minilm", precision="fp32")
    theirs = open_folder(package_folder(), "minilm", BERT, random_seed=None, bf16=False)
    assert isinstance(ours, TransformerBackbone) and isinstance(theirs, TransformerBackbone)
    for text in TEXTS:
        own, expected = (attention_weights(one, text, 5, 11) for one in (ours, theirs))
        assert own.tokens == expected.tokens and own.heads == 12
        assert np.abs(own.weights - expected.weights).max() < 1e-5
