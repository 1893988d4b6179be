"""Buckets within a batch: nothing is lost, no more is computed than must be, and the answers are those of a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graftwork.core import near_lengths as rule
from graftwork.core.backbone import Encoded
from graftwork.core.example import Example
from graftwork.core.length_buckets import buckets_of, positions_of, states_in_buckets
from graftwork.core.method import Setting
from graftwork.core.near_lengths import AT_LEAST, SPARED, near_lengths, tower_buckets
from graftwork.core.tally import Tally
from graftwork.methods.adapter import Adapter
from graftwork.methods.full import Full
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train import flops
from graftwork.train.flops import StepCounter, count_flops
from graftwork.train.loop import build_model

WORDS = ["the", "good", "bad", "film", "was", "so", "sad", "and", "warm", "it", "a", "cold"]
JOINT = open_backbone("tiny_text", precision="fp32")
assert isinstance(JOINT, TransformerBackbone)
BACKBONE = replace(JOINT, card=replace(JOINT.card, towers=2))
DATA = tiny_dataset(pair=True)


def text(words: int) -> str:
    return " ".join(WORDS[i % len(WORDS)] for i in range(words))


def pairs(questions: list[int], passages: list[int]) -> list[Example]:
    listed = zip(questions, passages, strict=True)
    return [Example(f"p/{n}", {"text_a": text(short), "text_b": text(long)}) for n, (short, long) in enumerate(listed)]


EXAMPLES = pairs([3, 5, 4, 6, 2, 3], [25, 30, 28, 4, 31, 27])
ENCODED = BACKBONE.encode(EXAMPLES)
INPUTS = BACKBONE.collate(ENCODED, ENCODED.sequences(range(len(EXAMPLES))))


@pytest.fixture
def uncut(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(rule, "AT_LEAST", 1 << 30)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of tests are small."""
    monkeypatch.setattr(rule, "AT_LEAST", 8)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=80), st.sampled_from([1, 2]))
def test_every_sequence_is_in_one_bucket_and_every_cut_spares_enough(sizes: list[int], towers: int) -> None:
    lengths = np.array(sizes)
    buckets = tower_buckets(lengths, towers)
    assert sorted(np.concatenate(buckets).tolist()) == list(range(len(sizes)))
    assert all((np.diff(bucket) > 0).all() for bucket in buckets)
    ends = [(int(lengths[bucket].min()), int(lengths[bucket].max())) for bucket in buckets]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    taken, whole = sum(len(bucket) * int(lengths[bucket].max()) for bucket in buckets), len(sizes) * max(sizes)
    assert taken <= whole - (len(buckets) - 1) * rule.AT_LEAST
    if towers == 1:
        assert len(buckets) == 1


@given(st.lists(st.integers(1, 300), min_size=2, max_size=60))
def test_no_cut_that_is_worth_it_is_left(sizes: list[int]) -> None:
    lengths = np.array(sizes)
    for bucket in near_lengths(lengths):
        own = np.sort(lengths[bucket])
        spared = max((k * (own[-1] - own[k - 1]) for k in range(1, len(own))), default=0)
        assert spared < max(rule.AT_LEAST, SPARED * len(own) * own[-1])


def test_near_equal_lengths_stay_together() -> None:
    assert len(near_lengths(np.array([30, 29, 28, 30] * 16))) == 1
    assert AT_LEAST > 1 and len(near_lengths(np.array([10, 150] * 32))) == 2


def test_questions_and_passages_go_through_apart() -> None:
    buckets = buckets_of(INPUTS["attention_mask"], 2)
    lengths = [len(ids) for ids in ENCODED.ids]
    assert len(buckets) >= 2 and buckets[-1][1] == max(lengths)
    assert [length for _, length in buckets] == [max(lengths[i] for i in bucket) for bucket, _ in buckets]
    taken = sum(len(bucket) * length for bucket, length in buckets)
    assert taken == positions_of(ENCODED, range(len(EXAMPLES))) < 0.7 * INPUTS["attention_mask"].numel()


def test_a_pair_of_one_sequence_is_not_cut() -> None:
    encoded = Encoded([[1] * 4, [1] * 200], [[0] * 4, [0] * 200], 1, 0)
    assert positions_of(encoded, [0, 1]) == 400


@pytest.mark.parametrize("method", [Full(), TopLayers(k=1), Adapter(size=4)], ids=["full", "top_layers", "adapter"])
def test_logits_and_gradients_are_those_of_the_whole_batch(method: Any, uncut: Callable[[], None]) -> None:
    kind = kinds.get("classification")
    torch.manual_seed(0)
    model = build_model(method, Setting(DATA.task, kind, BACKBONE), towers=2)
    with torch.no_grad():  # a fresh head answers nothing, and passes nothing on
        for weight in model.head.parameters():
            weight.normal_()
    targets = torch.tensor([0, 1, 0, 1, 1, 0])
    with torch.no_grad():
        entering = BACKBONE.states(INPUTS)[model.start] if model.prefix is not None else None

    def step() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        logits = model(INPUTS, entering)
        kind.loss(logits, targets).backward()  # type: ignore[no-untyped-call]
        found = {name: weight.grad.to_dense() for name, weight in model.delta().items() if weight.grad is not None}
        for weight in model.delta().values():
            weight.grad = None
        return logits.detach(), found

    logits, gradients = step()
    uncut()
    whole, expected = step()
    assert torch.allclose(logits, whole, atol=1e-5) and not torch.equal(logits, torch.zeros_like(logits))
    assert gradients.keys() == expected.keys() and len(gradients) > 2
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, expected[name], atol=1e-5), name
    assert any(gradient.abs().max() > 1e-3 for gradient in gradients.values())


@torch.no_grad()
def test_states_are_those_of_the_whole_batch_at_every_real_position() -> None:
    real = INPUTS["attention_mask"].bool()
    whole, found = BACKBONE.states(INPUTS), states_in_buckets(BACKBONE.states, INPUTS, 2)
    assert len(found) == len(whole)
    for state, expected in zip(found, whole, strict=True):
        assert torch.allclose(state[real], expected[real], atol=1e-5)
    for bucket, length in buckets_of(INPUTS["attention_mask"], 2):
        assert not any(state[bucket, length:].any() for state in found)


def test_the_products_of_buckets_are_counted_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []

    def recorded(work: Any) -> Any:
        times.append(1)
        return count_flops(work)

    monkeypatch.setattr(flops, "count_flops", recorded)
    model = build_model(Full(), Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=2)
    tally, expected, padding = Tally(), 0.0, 0.0
    counter = StepCounter(tally)
    batches = [([3, 4], [30, 28]), ([9, 2], [12, 31]), ([5, 5], [9, 8]), ([3, 2], [20, 24]), ([4, 3], [26, 22]),
               ([6, 6], [18, 19]), ([4, 2], [29, 17])]  # fmt: skip
    for questions, passages in batches:
        encoded = BACKBONE.encode(pairs(questions, passages))
        inputs = BACKBONE.collate(encoded, range(4))
        with torch.no_grad():
            one = count_flops(lambda inputs=inputs: model(inputs))[1]  # type: ignore[misc]
            counter.run(inputs["attention_mask"], lambda inputs=inputs: model(inputs), 2)  # type: ignore[misc]
        expected += one
        padding += one * (1 - int(inputs["attention_mask"].sum()) / positions_of(encoded, [0, 1]))
    assert tally.flops == pytest.approx(expected, rel=1e-9) and len(times) < len(batches)
    assert tally.padding_flops == pytest.approx(padding, rel=1e-6)
