"""ULMFiT: what trains when, how fast, and the same result from cached states as without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertConfig

from graftwork.backbones.tiny_text import ARCHITECTURE, MAX_LENGTH, tiny_tokenizer
from graftwork.core.backbone import Backbone
from graftwork.core.method import FrozenPass, Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.task import Split
from graftwork.methods.ulmfit import Ulmfit, slanted_triangular, unfreezing
from graftwork.nn.attention_interface import with_our_attention
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.layout import BERT
from graftwork.pretrained.load_folder import fresh
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import loop
from graftwork.train.loop import FittedModel, build_model, fit_by_gradient, restore_by_attaching
from graftwork.train.optimiser import FlatAdamW

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
SETTING = Setting(DATA.task, kinds.get("classification"), BACKBONE)
BOTTOM, TOP = "network.encoder.layer.0.", "network.encoder.layer.1."


@pytest.mark.parametrize(
    ("blocks", "epochs", "lowest"),
    [
        (2, 3, [1, 0, 0]),
        (2, 5, [1, 0, 0, 0, 0]),
        (2, 10, [1] + 9 * [0]),
        (6, 3, [4, 2, 0]),
        (6, 5, [5, 3, 2, 0, 0]),
        (6, 10, [5, 4, 3, 2, 1, 0, 0, 0, 0, 0]),
        (12, 3, [8, 4, 0]),
        (12, 5, [9, 6, 3, 0, 0]),
        (12, 10, [11, 9, 7, 6, 4, 2, 0, 0, 0, 0]),
        (6, 1, [0]),
    ],
)
def test_the_plan_of_stages(blocks: int, epochs: int, lowest: list[int]) -> None:
    assert unfreezing(blocks, epochs) == lowest


def test_every_plan_starts_at_the_top_never_goes_back_and_ends_with_a_third_of_everything() -> None:
    for blocks in range(1, 25):
        for epochs in range(1, 21):
            lowest = unfreezing(blocks, epochs)
            assert len(lowest) == epochs and lowest == sorted(lowest, reverse=True)
            assert 3 * lowest.count(0) >= epochs
            assert lowest[0] < blocks and (lowest[0] > 0) == (blocks > 1 and epochs > 1)
            assert all(before > after or before == 0 for before, after in pairwise(lowest))


def papers_formula(t: int, T: int, cut_frac: float, ratio: float) -> float:
    """Howard & Ruder 2018, equation 3, for a peak of 1."""
    cut = int(T * cut_frac)
    p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
    return (1 + p * (ratio - 1)) / ratio


@pytest.mark.parametrize(("steps", "cut_frac", "ratio"), [(10, 0.1, 32), (300, 0.1, 32), (200, 0.25, 8)])
def test_the_schedule_is_the_papers(steps: int, cut_frac: float, ratio: float) -> None:
    found = [slanted_triangular(step, steps, cut_frac, ratio) for step in range(steps)]
    assert found == pytest.approx([papers_formula(step, steps, cut_frac, ratio) for step in range(steps)])
    assert found[0] == 1 / ratio and max(found) == found[round(steps * cut_frac)] == 1.0


@pytest.mark.parametrize("steps", [1, 2, 7, 19, 29, 305])
def test_the_schedule_stays_in_its_range_for_any_number_of_steps(steps: int) -> None:
    found = [slanted_triangular(step, steps, 0.1, 32) for step in range(steps)]
    assert min(found) == found[0] == 1 / 32 and (steps == 1 or max(found) == 1.0)
    if steps in (19, 29, 305):  # where the paper's own leaves it
        assert papers_formula(steps - 1, steps, 0.1, 32) < 1 / 32


def test_each_block_has_a_lower_rate_than_the_one_above_it() -> None:
    model = build_model(Ulmfit(), SETTING, towers=1)
    shares = {name: model.rates.get(name, 1.0) for name in model.delta()}
    assert {share for name, share in shares.items() if name.startswith((TOP, "head."))} == {1.0}
    assert {share for name, share in shares.items() if name.startswith(BOTTOM)} == {1 / 2.6}
    lowest = [share for name, share in shares.items() if ".embeddings." in name]
    assert lowest == pytest.approx([1 / 2.6**2] * len(lowest)) and lowest


class Epochs:
    """What the parameters, the optimiser and the counted work were when each epoch was over."""

    def __init__(self, bench: Workbench, monkeypatch: pytest.MonkeyPatch):
        self.weights: list[dict[str, Tensor]] = []
        self.trained: list[set[str]] = []
        self.held: list[int] = []  # numbers that the optimiser keeps moments of
        self.model: Model | None = None
        self.optimiser: FlatAdamW | None = None
        build, step = loop.build_model, FlatAdamW.step

        def built(*args: Any) -> Model:
            self.model = build(*args)
            return self.model

        def stepped(optimiser: FlatAdamW, rate: float) -> float:
            assert self.model is not None
            with_gradient = {name for name, p in self.model.named_parameters() if p.grad is not None}
            assert with_gradient == self.model.delta().keys()
            self.optimiser = optimiser
            return step(optimiser, rate)

        monkeypatch.setattr(loop, "build_model", built)
        monkeypatch.setattr(FlatAdamW, "step", stepped)
        bench.log = self.log

    def log(self, line: Mapping[str, Any]) -> None:
        if "epoch" in line:
            assert self.model is not None and self.optimiser is not None
            self.weights.append({name: p.detach().clone() for name, p in self.model.named_parameters()})
            self.trained.append(set(self.model.delta()))
            flat = sum(group.master.numel() for group in self.optimiser.groups)
            self.held.append(flat + sum(rows.master.numel() for rows, _ in self.optimiser.tables))


def test_what_is_frozen_stays_bit_for_bit_until_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = tiny_bench(DATA, BACKBONE, epochs=3)
    seen = Epochs(bench, monkeypatch)
    fitted = fit_by_gradient(Ulmfit(), bench)
    pretrained = {f"network.{name}": tensor for name, tensor in BACKBONE.module.named_parameters()}
    first, second, _ = seen.weights
    for name, tensor in pretrained.items():
        assert torch.equal(first[name], tensor) == (not name.startswith(TOP)), name
    unmoved = [name for name, tensor in pretrained.items() if torch.equal(second[name], tensor)]
    assert not unmoved
    assert seen.trained[0] == {name for name in first if name.startswith((TOP, "head."))}
    assert seen.trained[1] == set(first)
    assert seen.held == [sum(first[name].numel() for name in names) for names in seen.trained]
    assert fitted.trained_parameters == BACKBONE.card.parameters + BACKBONE.card.width * 2 + 2


def test_the_delta_is_whole_when_an_early_epoch_is_kept() -> None:
    bench, lines = tiny_bench(DATA, BACKBONE, epochs=3), list[Mapping[str, Any]]()
    bench.log = lines.append
    bench.score = lambda logits: -float(len(lines))  # the first epoch is best
    fitted = fit_by_gradient(Ulmfit(), bench)
    assert fitted.facts["best_epoch"] == 1
    delta = fitted.delta()
    assert delta.keys() == build_model(Ulmfit(), SETTING, towers=1).delta().keys()
    for name, tensor in BACKBONE.module.named_parameters():
        assert torch.equal(delta[f"network.{name}"], tensor) == (not f"network.{name}".startswith(TOP)), name


def deep() -> Backbone:
    """`tiny_text` with four blocks: room for two stages above the last."""
    config = BertConfig(vocab_size=tiny_tokenizer().get_vocab_size(), **ARCHITECTURE | {"num_hidden_layers": 4})
    network, layout = with_our_attention(fresh(config, 0, bf16=False)), replace(BERT, pooling="mean")
    return assemble(
        "deep", network, tiny_tokenizer(), layout, pad_id=0, max_length=MAX_LENGTH, random_seed=None, identity={}
    )


@pytest.mark.slow
def test_training_from_the_store_ends_where_computing_in_full_does(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone, depths = deep(), list[int | None]()
    bench = tiny_bench(DATA, backbone, epochs=3)
    frozen = bench.frozen

    def asked(split: Split, depth: int | None) -> FrozenPass:
        depths.append(depth)
        return frozen(split, depth)

    bench.frozen = asked
    cached = fit_by_gradient(Ulmfit(), bench)
    assert depths == [3, 3, 2, 2]  # train and validation; the last stage asks for none, and is charged for none
    monkeypatch.setattr(Model, "prefix", None)
    whole = fit_by_gradient(Ulmfit(), tiny_bench(DATA, backbone, epochs=3))
    np.testing.assert_allclose(cached.logits(DATA.test.examples), whole.logits(DATA.test.examples), atol=1e-4)
    start = fit_by_gradient(Ulmfit(learning_rate=1e-30), tiny_bench(DATA, backbone, epochs=3))

    def between(one: FittedModel, other: FittedModel) -> Tensor:
        differences = [(tensor - other.delta()[name]).flatten() for name, tensor in one.delta().items()]
        return torch.cat(differences).norm()

    # AdamW makes a step of the rate's size of a rounding error, so single weights may differ.
    assert between(cached, whole) < 0.02 * between(start, whole)


def test_a_run_equals_itself_and_its_restored_self() -> None:
    one, two = (fit_by_gradient(Ulmfit(), tiny_bench(DATA, BACKBONE, epochs=3)) for _ in range(2))
    assert all(torch.equal(tensor, two.delta()[name]) for name, tensor in one.delta().items())
    restored = restore_by_attaching(Ulmfit(), SETTING, one.delta(), one.facts)
    assert np.array_equal(restored.logits(DATA.test.examples), one.logits(DATA.test.examples))


def test_the_receipt_says_what_trained_when() -> None:
    facts = fit_by_gradient(Ulmfit(learning_rate=1e-3), tiny_bench(DATA, BACKBONE, epochs=3)).facts
    assert facts["stages"] == [
        {"epochs": 1, "lowest_block": 1, "rate_of_lowest_block": 1e-3},
        {"epochs": 2, "lowest_block": 0, "rate_of_lowest_block": pytest.approx(1e-3 / 2.6)},
    ]


def test_each_part_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = tiny_bench(DATA, BACKBONE, epochs=3)
    seen = Epochs(bench, monkeypatch)
    facts = fit_by_gradient(Ulmfit(unfreezing="at_once"), bench).facts
    assert facts["stages"] == [{"epochs": 3, "lowest_block": 0, "rate_of_lowest_block": pytest.approx(5e-4 / 2.6)}]
    assert seen.trained[0] == seen.trained[2] == set(seen.weights[0])
    assert not [name for name, tensor in BACKBONE.module.named_parameters()
                if torch.equal(seen.weights[0][f"network.{name}"], tensor)]  # fmt: skip
    rates = [Ulmfit(schedule=name) for name in ("constant", "linear")]
    assert [[made.share(step, 10) for step in (0, 1, 9)] for made in rates] == [[1, 1, 1], [1, 1, pytest.approx(1 / 9)]]
    assert [made.scheduled for made in rates] == [{"schedule": "constant"}, {"schedule": "linear", "warm_up": 0.1}]
    assert set(build_model(Ulmfit(divisor=1), SETTING, towers=1).rates.values()) <= {1.0}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Ulmfit(divisor=0.5), "divisor must be at least 1, not 0.5"),
        (Ulmfit(cut_frac=1.0), "cut_frac must be between 0 and 1, not 1.0"),
        (Ulmfit(ratio=0.5), "ratio must be at least 1, not 0.5"),
        (Ulmfit(schedule="cosine"), "schedule must be one of slanted, linear, constant, not 'cosine'"),
        (Ulmfit(unfreezing="no"), "unfreezing must be one of gradual, at_once, not 'no'"),
        (Ulmfit(), ""),
    ],
)
def test_what_makes_no_sense_is_refused(method: Ulmfit, message: str) -> None:
    assert method.unfit(DATA.task, BACKBONE.card) == message


def test_shared_blocks_do_not_fit() -> None:
    assert "share their weights" in Ulmfit().unfit(DATA.task, replace(BACKBONE.card, shared_blocks=True))
