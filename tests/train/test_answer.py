"""Answering: batches within their bounds, answers that do not depend on neighbours, and shared work done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.backbone import Encoded
from graftwork.core.example import Example
from graftwork.core.method import Fitted, ReadsStates
from graftwork.methods.linear_probe import LinearProbe, Probe
from graftwork.methods.lora import Lora
from graftwork.methods.majority import Majority
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import answer_order
from graftwork.train.answer import answer_together
from graftwork.train.answer_order import batches

DATA = tiny_dataset()
WORDS = ["the", "good", "bad", "film", "was", "so", "sad", "and", "warm", "it", "a", "cold"]
EXAMPLES = [Example(f"t/{n}", {"text": " ".join(WORDS[i % 12] for i in range(n % 23 + 1))}) for n in range(60)]
NEAR = {"fp32": 1e-5, "bf16": 2e-2}  # of a probability


def encoded(lengths: list[int], towers: int = 1) -> Encoded:
    ids = [[1] * length for length in lengths]
    return Encoded(ids, ids, towers, 0)


def softmax(logits: Any) -> Any:
    return np.exp(logits - logits.max(axis=1, keepdims=True)) / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(
        axis=1, keepdims=True
    )


@pytest.fixture(params=["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
def precision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fitted(precision: str) -> Callable[[Any], Any]:
    backbone = open_backbone("tiny_text", precision=precision)
    return lambda method: method.fit(tiny_bench(DATA, backbone))


@pytest.mark.parametrize("towers", [1, 2])
def test_batches_hold_every_example_once_and_keep_to_the_bounds(towers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_order, "TOKENS_AT_ONCE", 64)
    monkeypatch.setattr(answer_order, "EXAMPLES_AT_ONCE", 10)
    tokens = encoded([3, 50, 9, 200, 1, *[2] * 40, 17] * towers, towers)
    parts, lengths = batches(tokens), tokens.lengths
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(tokens)))
    assert [len(rows) for rows in parts if lengths[rows].max() == 200] == [1] * towers
    assert all(lengths[rows].max() * len(rows) * towers <= 64 or len(rows) == 1 for rows in parts)
    assert max(len(rows) for rows in parts) == 10
    assert np.all(np.diff(lengths[np.concatenate(parts)]) <= 0)
    assert batches(encoded([])) == []


@pytest.mark.parametrize(
    "method",
    [LinearProbe(), pytest.param(TopLayers(k=1), marks=pytest.mark.slow), Lora()],
    ids=lambda m: type(m).__name__,
)
def test_an_answer_does_not_depend_on_its_neighbours(
    method: Any, fitted: Callable[[Any], Any], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted(method)
    together = model.logits(EXAMPLES)
    alone = np.concatenate([model.logits([example]) for example in EXAMPLES])
    monkeypatch.setattr(answer_order, "TOKENS_AT_ONCE", 100)
    in_small_batches = model.logits(EXAMPLES)
    for logits in (together, in_small_batches):
        np.testing.assert_allclose(softmax(logits), softmax(alone), atol=NEAR[precision])
        sure = np.abs(alone[:, 0] - alone[:, 1]) > 4 * NEAR[precision]
        assert sure.sum() > 20
        np.testing.assert_array_equal(logits[sure].argmax(axis=1), alone[sure].argmax(axis=1))


def test_together_each_answers_what_it_answers_alone_from_one_pass(
    fitted: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [fitted(LinearProbe()), fitted(TopLayers(k=1)), fitted(Lora()), fitted(LinearProbe())]
    models[0].shares = torch.tensor([1.0, 0.0, 0.0])  # nothing above the embeddings
    models[3].shares = torch.tensor([0.3, 0.7, 0.0])
    alone = [model.logits(EXAMPLES) for model in models]
    backbone = models[0].backbone
    passes, real = [], type(backbone).states_up_to

    def counting(self: TransformerBackbone, inputs: Any, depth: int) -> Any:
        passes.append(depth)
        return real(self, inputs, depth)

    monkeypatch.setattr(type(backbone), "states_up_to", counting)
    tokens = backbone.encode(EXAMPLES)
    found = answer_together(backbone, tokens, models)
    for answered, expected in zip(found, alone, strict=True):
        np.testing.assert_array_equal(answered, expected)
    assert len(passes) == len(batches(tokens)) and set(passes) == {1}


def test_blocks_above_what_is_read_do_not_run(fitted: Callable[[Any], Any]) -> None:
    probe: Probe = fitted(LinearProbe())
    ran: list[int] = []
    for place, block in enumerate(probe.backbone.sites("block").values()):
        block.register_forward_hook(lambda module, args, output, place=place: ran.append(place))
    for depth, shares in ((0, [1.0, 0, 0]), (1, [0, 1.0, 0]), (1, [0.5, 0.5, 0]), (2, [0.5, 0, 0.5])):
        ran.clear()
        probe.shares = torch.tensor(shares)
        probe.logits(EXAMPLES[:2])
        assert probe.depth == depth and ran == list(range(depth))


def test_who_reads_states_says_so(fitted: Callable[[Any], Any]) -> None:
    assert isinstance(fitted(LinearProbe()), ReadsStates)
    assert fitted(TopLayers(k=1)).depth == 1 and fitted(Lora()).depth is None
    constant: Fitted = Majority().fit(tiny_bench(DATA, None))
    assert not isinstance(constant, ReadsStates)
