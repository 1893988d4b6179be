"""Counted arithmetic against formulas worked out by hand: 2 FLOP per multiply-add."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from graftwork.backbones.tiny_text import ARCHITECTURE
from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.core.tally import Tally
from graftwork.methods import linear_probe
from graftwork.methods.adapter import Adapter
from graftwork.methods.bitfit import BitFit
from graftwork.methods.full import Full
from graftwork.methods.linear_probe import LinearProbe
from graftwork.methods.lora import Lora
from graftwork.methods.top_layers import TopLayers
from graftwork.methods.ulmfit import Ulmfit
from graftwork.nn.lstm_stack import AwdLstm, AwdLstmShape
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_networks import SIDE, write_network
from graftwork.train import cross_validation, flops, linear_fit
from graftwork.train.batches import by_length
from graftwork.train.flops import StepCounter, count_flops
from graftwork.train.folds import FOLDS
from graftwork.train.frozen_pass import TOKENS_PER_BATCH
from graftwork.train.loop import build_model, fit_by_gradient
from graftwork.train.scalar_mix_layer import EPOCHS as MIX_EPOCHS

HEADS = ARCHITECTURE["num_attention_heads"]
D, INNER, L, C = ARCHITECTURE["hidden_size"], ARCHITECTURE["intermediate_size"], ARCHITECTURE["num_hidden_layers"], 2
SIZE, RANK = 4, 2
DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
ENCODED = BACKBONE.encode(DATA.train.examples)


def maps(T: int) -> float:
    """Query, key, value and output map, and both of the feed-forward part: one sequence of one block."""
    return 2.0 * T * (4 * D * D + 2 * D * INNER)


def attention(T: int) -> float:
    """Q K' and the weighted sum of V, over all heads; the softmax's sum is one more column of V."""
    return 2.0 * 2 * T * T * D + column(T)


def attention_backward(T: int, products: int = 4) -> float:
    """Gradients of the weights and of V, and from the weights' those of Q and K; the softmax's term is a column."""
    return products * 2.0 * T * T * D + column(T)


def column(T: int) -> float:
    """One more column in a product with V, in every head."""
    return 2.0 * T * T * HEADS


def block(T: int) -> float:
    """Forward through one block."""
    return maps(T) + attention(T)


HEAD = 2.0 * D * C
NO_WEIGHTS = 2 * HEAD  # backward of the head: the gradients of its weight and its input


def full(T: int) -> float:
    """Everything forward, and backward twice that: the gradients of weights and inputs."""
    return 3 * (L * maps(T) + HEAD) + L * (attention(T) + attention_backward(T))


def top_layer(T: int) -> float:
    """Only the highest block, which starts from cached states: what enters query, key and value has no gradient."""
    into_attention = 2.0 * T * 3 * D * D
    return block(T) + HEAD + 2 * maps(T) + attention_backward(T) - into_attention + NO_WEIGHTS


def top_layer_uncached(T: int) -> float:
    """The frozen blocks below are run forward, and not backward."""
    return (L - 1) * block(T) + top_layer(T)


def adapter(T: int) -> float:
    """A bottleneck behind the output map and one behind the feed-forward part; frozen maps pass gradients on."""
    bottleneck = 2.0 * T * 2 * D * SIZE  # down and up
    forward = L * (block(T) + 2 * bottleneck) + HEAD
    output_map, feed_forward = 2.0 * T * D * D, 2.0 * T * 2 * D * INNER
    lowest = (2 * bottleneck - bottleneck / 2) + feed_forward + 2 * bottleneck  # nothing below the first needs one
    others = maps(T) + attention_backward(T) + 2 * 2 * bottleneck
    assert maps(T) == 4 * output_map + feed_forward
    return forward + lowest + (L - 1) * others + NO_WEIGHTS


def lora(T: int) -> float:
    """A low-rank map beside query and value."""
    half = 2.0 * T * D * RANK  # A or B
    forward = L * (block(T) + 2 * 2 * half) + HEAD
    above_attention = 2.0 * T * (D * D + 2 * D * INNER)
    lowest = (
        2 * (half + 2 * half) + attention_backward(T, products=3) + above_attention
    )  # no gradient of the input, nor of the key
    others = 2 * (2 * half + 2 * half) + attention_backward(T) + maps(T)
    return forward + lowest + (L - 1) * others + NO_WEIGHTS


def bitfit(T: int) -> float:
    """Shifts are no products; the lowest block passes no gradient below its query, key and value."""
    above_attention = 2.0 * T * (D * D + 2 * D * INNER)
    lowest = attention_backward(T) + above_attention
    return L * block(T) + HEAD + lowest + (L - 1) * (maps(T) + attention_backward(T)) + NO_WEIGHTS


def step(model: Model, rows: list[int], tally: Tally, entering: Tensor | None = None) -> int:
    """Count one training step; returns T."""
    inputs = BACKBONE.collate(ENCODED, rows)
    targets = torch.from_numpy(DATA.train.targets[rows])

    def work() -> None:
        kinds.get("classification").loss(model(inputs, entering), targets).backward()  # type: ignore[no-untyped-call]

    StepCounter(tally).run(inputs["attention_mask"], work)
    return int(inputs["input_ids"].shape[1])


@pytest.mark.parametrize(
    ("method", "formula"),
    [
        (Full(), full),
        (TopLayers(k=1), top_layer),
        (TopLayers(k=1), top_layer_uncached),
        (Adapter(size=SIZE), adapter),
        (Lora(rank=RANK), lora),
        (BitFit(), bitfit),
    ],
    ids=["full", "top_layers", "top_layers without the cache", "adapter", "lora", "bitfit"],
)
def test_a_step_costs_what_the_formula_says(method: Any, formula: Callable[[int], float]) -> None:
    rows, tally = [0, 3, 5, 8], Tally()
    model = build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)
    entering = BACKBONE.states(BACKBONE.collate(ENCODED, rows))[1] if formula is top_layer else None
    length = step(model, rows, tally, entering)
    assert tally.flops == pytest.approx(formula(length) * len(rows), rel=1e-6)
    assert tally.grade == "counter"


def test_padding_is_counted_and_told_apart() -> None:
    lengths = ENCODED.lengths
    rows = [int(lengths.argmin()), int(lengths.argmax())]
    tally = Tally()
    model = build_model(Full(), Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)
    length = step(model, rows, tally)
    assert length > lengths.min()
    assert tally.flops == pytest.approx(2 * full(length), rel=1e-6)
    assert tally.padding_flops == pytest.approx(tally.flops * (1 - lengths[rows].sum() / (2 * length)))


def test_batches_of_a_known_length_are_multiplied_not_counted_again() -> None:
    tally, ones = Tally(), torch.ones
    counter = StepCounter(tally)
    weight = ones(6, 7)
    for sequences in (4, 4, 1):
        result = counter.run(ones(sequences, 5), lambda n=sequences: ones(n, 6) @ weight)  # type: ignore[misc]
        assert result.shape == (sequences, 7)
    assert tally.flops == 9 * 2 * 6 * 7 and tally.padding_flops == 0
    counter.run(ones(1, 3), lambda: ones(1, 6) @ ones(6, 70))  # another length is another count
    assert tally.flops == 9 * 2 * 6 * 7 + 2 * 6 * 70


@pytest.mark.parametrize(("power", "counts"), [(2, 4), (3, 7)], ids=["quadratic", "no quadratic"])
def test_a_curve_is_believed_only_where_it_was_checked(
    power: int, counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def recorded(work: Any) -> Any:
        seen.append(1)
        return count_flops(work)

    monkeypatch.setattr(flops, "count_flops", recorded)
    tally, expected = Tally(), 0.0
    counter = StepCounter(tally)
    for T in (2, 9, 4, 7, 5, 6, 3, 9):
        inner = T ** (power - 1)
        counter.run(torch.ones(2, T), lambda T=T, inner=inner: torch.ones(2, T, inner) @ torch.ones(inner, 1))  # type: ignore[misc]
        expected += 2 * 2 * T * inner
    assert tally.flops == pytest.approx(expected, rel=1e-9) and len(seen) == counts
    counter.run(torch.ones(1, 12), lambda: torch.ones(1, 12, 1) @ torch.ones(1, 5))  # outside of what was counted
    assert len(seen) == counts + 1 and tally.flops == pytest.approx(expected + 2 * 12 * 5, rel=1e-9)


def test_the_result_of_counted_work_is_handed_back() -> None:
    product, flops = count_flops(lambda: torch.ones(2, 3) @ torch.ones(3, 4))
    assert product.shape == (2, 4) and flops == 2 * 2 * 3 * 4


@pytest.mark.parametrize("network", ["tiny_text", "vit", "resnet", "awd_lstm"])
@pytest.mark.parametrize("inference", [True, False])
def test_the_sum_is_that_of_torchs_own_counter(network: str, inference: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, asked = network_and_inputs(network, tmp_path)

    def work() -> None:
        if inference:
            with torch.inference_mode():
                module(**asked)
        else:
            found = module(**asked)
            (found if isinstance(found, Tensor) else found.last_hidden_state).square().sum().backward()

    with FlopCounterMode(display=False) as counter:
        work()
    assert count_flops(work)[1] == counter.get_total_flops() > 0


def network_and_inputs(network: str, folder: Path) -> tuple[Any, dict[str, Tensor]]:
    if network == "awd_lstm":
        drawn = AwdLstm(AwdLstmShape(50, embedding_size=12, hidden_size=20))
        drawn.draw(0)
        return drawn, {"ids": torch.arange(12).view(2, 6)}
    if network == "tiny_text":
        ids = torch.arange(12).view(2, 6)
        module = copy.deepcopy(BACKBONE.module).requires_grad_()
        return module, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    module = AutoModel.from_pretrained(write_network(folder, network)).eval()
    return module, {"pixel_values": torch.rand(1, 3, SIDE, SIDE)}


def pass_flops(split_lengths: np.ndarray) -> float:
    """One frozen pass over a split: all blocks, no head, lengths padded as batches pad them."""
    total = 0.0
    for rows in by_length(split_lengths, TOKENS_PER_BATCH):
        total += len(rows) * L * block(padded(split_lengths[rows]))
    return total


def padded(lengths: np.ndarray) -> int:
    return int(lengths.max())


@pytest.fixture
def fitted_heads(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The FLOPs that each linear fit reports."""
    spent: list[float] = []
    real = linear_fit.fit_best_linear

    def recorded(*args: Any) -> Any:
        found = real(*args)
        spent.append(found[2])
        return found

    monkeypatch.setattr(linear_fit, "fit_best_linear", recorded)
    return spent


@pytest.mark.parametrize(
    ("method", "formula", "looking"),
    [(Full(), full, lambda T: L * block(T) + HEAD), (TopLayers(k=1), top_layer, lambda T: block(T) + HEAD)],
    ids=["full", "top_layers"],
)
def test_a_fit_is_passes_head_start_steps_and_looks_at_validation(
    method: Any, formula: Callable[[int], float], looking: Callable[[int], float], fitted_heads: list[float]
) -> None:
    epochs, bench = 2, tiny_bench(DATA, BACKBONE, epochs=2)
    fit_by_gradient(method, bench)
    train, validation = ENCODED.lengths, BACKBONE.encode(DATA.validation.examples).lengths
    expected = pass_flops(train) + pass_flops(validation) + sum(fitted_heads)
    for epoch in range(1, epochs + 1):
        expected += sum(len(rows) * formula(padded(train[rows])) for rows in bench.order(train, epoch))
    expected += (epochs + 1) * len(validation) * looking(padded(validation))
    assert len(fitted_heads) == 1 and fitted_heads[0] > 0
    assert bench.tally.flops == pytest.approx(expected, rel=1e-6)
    assert 0 < bench.tally.padding_flops < bench.tally.flops
    assert bench.tally.grade == "model"  # the head start is known from its formula


def test_stages_cost_the_blocks_that_train_and_one_pass_a_depth(fitted_heads: list[float]) -> None:
    epochs, bench = 3, tiny_bench(DATA, BACKBONE, epochs=3)
    Ulmfit().fit(bench)
    train, validation = ENCODED.lengths, BACKBONE.encode(DATA.validation.examples).lengths
    expected = pass_flops(train) + pass_flops(validation) + sum(fitted_heads)
    for epoch in range(1, epochs + 1):  # the top block alone in the first, then everything
        formula = top_layer if epoch == 1 else full
        expected += sum(len(rows) * formula(padded(train[rows])) for rows in bench.order(train, epoch))
    length = padded(validation)
    expected += len(validation) * (2 * block(length) + 2 * L * block(length) + (epochs + 1) * HEAD)
    assert bench.tally.flops == pytest.approx(expected, rel=1e-6)


def test_a_probe_is_a_pass_and_linear_fits_and_a_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[float] = []

    def recorded(features: linear_fit.StandardisedFeatures, *args: Any) -> linear_fit.LinearFit:
        fit = linear_fit.fit_linear(features, *args)
        fits.append(fit.flops(features))
        return fit

    for module in (cross_validation, linear_probe):
        monkeypatch.setattr(module, "fit_linear", recorded)
    bench = tiny_bench(DATA, BACKBONE)
    LinearProbe().fit(bench)
    train = ENCODED.lengths
    rows = len(train)
    mixing = 4.0 * rows * (L + 1) * D  # the weighted sum, and the gradient of its weights
    layer = 6.0 * rows * D * C  # forward, and the gradients of weight and input
    expected = pass_flops(train) + sum(fits) + MIX_EPOCHS * (mixing + layer)
    assert len(fits) > 2 * FOLDS * (L + 2)
    assert bench.tally.flops == pytest.approx(expected, rel=1e-6)


def test_the_formula_of_a_linear_fit_counts_what_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    features = torch.randn(24, 7, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(24) % 3
    kind, strengths = kinds.get("classification"), (0.1, 0.01)
    (_, _, flops), seen = count_flops(
        lambda: linear_fit.fit_best_linear((features, targets), features, kind, 3, lambda z: 0.0, strengths)
    )
    looks = len(strengths) * 2.0 * features.numel() * 3  # validation logits, which the formula leaves out
    folding = 2 * len(strengths) * 2.0 * 7 * 3
    assert flops == pytest.approx(seen - looks, abs=folding)
