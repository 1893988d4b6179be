"""The head of transformers' classifiers is the one that transformers has."""

from __future__ import annotations

import pytest
import torch
from transformers import RobertaConfig
from transformers.models.roberta.modeling_roberta import RobertaClassificationHead

from graftwork.core.backbone import Features
from graftwork.targets.classifier_head import ClassifierHead


def features() -> Features:
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    return Features(torch.randn(2, 3, 8), mask, torch.full((2, 8), torch.nan))  # what is pooled is not read


def test_it_is_robertas() -> None:
    theirs = RobertaClassificationHead(RobertaConfig(hidden_size=8, num_labels=3)).eval()
    ours = ClassifierHead(8, 3, "tanh")
    assert ours.hidden is not None
    ours.hidden.load_state_dict(theirs.dense.state_dict())
    ours.out.load_state_dict(theirs.out_proj.state_dict())
    torch.testing.assert_close(ours(features()), theirs(features().sequence))


def test_without_a_hidden_layer() -> None:
    head, given = ClassifierHead(8, 3, "none"), features()
    torch.testing.assert_close(head(given), given.sequence[:, 0] @ head.out.weight.T + head.out.bias)


def test_logits_are_fp32() -> None:
    given = features()
    half = Features(given.sequence.bfloat16(), given.mask, given.pooled)
    with torch.autocast("cpu", torch.bfloat16):
        assert ClassifierHead(8, 3, "relu")(half).dtype == torch.float32


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(KeyError):
        ClassifierHead(8, 3, "mish")(features())
