"""The training loop: head start, the best epoch kept, frozen parts frozen, and the same result from cached states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graftwork.core.method import Setting, Workbench
from graftwork.core.model import Model
from graftwork.core.run import RunResult
from graftwork.methods.adapter import Adapter
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.linear_fit import STRENGTHS, fit_on_block
from graftwork.train.loop import Attaches, Diverged, FittedModel, answer, build_model, fit_by_gradient

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
SETTING = Setting(DATA.task, kinds.get("classification"), BACKBONE)


def logged(bench: Workbench) -> list[Mapping[str, Any]]:
    lines: list[Mapping[str, Any]] = []
    bench.log = lines.append
    return lines


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_on_cached_states_ends_where_training_without_them_does(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = open_backbone("tiny_text", precision=precision)
    cached, bench = fit_by_gradient(TopLayers(k=1), tiny_bench(DATA, backbone)), tiny_bench(DATA, backbone)
    start = fit_by_gradient(TopLayers(k=1, learning_rate=1e-30), tiny_bench(DATA, backbone))
    monkeypatch.setattr(Model, "prefix", None)
    whole = fit_by_gradient(TopLayers(k=1), bench)
    near = {"fp32": 1e-5, "bf16": 0.05}[precision]
    np.testing.assert_allclose(cached.logits(DATA.test.examples), whole.logits(DATA.test.examples), atol=near)

    def between(one: FittedModel, other: FittedModel) -> Tensor:
        differences = [(tensor - other.delta()[name]).flatten() for name, tensor in one.delta().items()]
        return torch.cat(differences).float().norm()

    # AdamW makes a step of the rate's size of a rounding error, so single weights may differ.
    assert between(cached, whole) < {"fp32": 0.02, "bf16": 0.2}[precision] * between(start, whole)


def test_the_head_starts_as_the_best_linear_layer_on_the_last_block() -> None:
    bench = tiny_bench(DATA, BACKBONE)
    fitted = fit_by_gradient(Adapter(learning_rate=1e-30), bench)
    bench = tiny_bench(DATA, BACKBONE)
    passes = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
    layer, reached = fit_on_block(bench, BACKBONE.card.blocks, *passes)
    assert fitted.facts["head_start"] == {"used": True, "strength": layer.strength, "validation": reached}
    assert fitted.facts["validation_by_epoch"][0] == reached


def test_the_best_epoch_is_kept() -> None:
    scores = iter([0.0] * len(STRENGTHS) + [0.5, 0.9, 0.2])  # the head start; before training, two epochs
    bench = tiny_bench(DATA, BACKBONE, epochs=2)
    bench.score = lambda logits: next(scores)
    fitted = fit_by_gradient(Lora(), bench)
    assert fitted.facts["best_epoch"] == 1 and fitted.facts["validation_by_epoch"] == [0.5, 0.9, 0.2]
    assert RunResult("0", 0, "ok", facts=fitted.facts).kept_best_epoch
    after_one = tiny_bench(DATA, BACKBONE, epochs=2)
    after_one.recipe = {**after_one.recipe, "epochs": 1}
    after_one.score = lambda logits: 0.0
    expected = fit_by_gradient(Lora(), after_one).delta()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in fitted.delta().items())


def test_the_head_start_is_no_candidate_and_the_last_of_equals_is_kept() -> None:
    scores = iter([0.0] * len(STRENGTHS) + [0.9, 0.2, 0.2])
    bench = tiny_bench(DATA, BACKBONE, epochs=2)
    bench.score = lambda logits: next(scores)
    fitted = fit_by_gradient(Lora(), bench)
    assert fitted.facts["best_epoch"] == 2
    assert all(tensor.abs().max() > 0 for name, tensor in fitted.delta().items() if name.endswith("/query.b"))


@pytest.mark.parametrize("method", [Full(learning_rate=1e30), Adapter(learning_rate=1e30)])
def test_divergence_is_named_with_its_step(method: Attaches) -> None:
    with pytest.raises(Diverged, match=r"diverged at step \d+\n  got: +loss .*gradient norm"):
        fit_by_gradient(method, tiny_bench(DATA, BACKBONE, epochs=4))


@pytest.mark.parametrize("method", [TopLayers(k=1), Adapter()])
def test_there_is_no_dropout(method: TopLayers | Adapter) -> None:
    model = build_model(method, SETTING, towers=1)
    assert not any(module.training for module in model.modules())


def test_answers_come_in_the_order_of_the_questions() -> None:
    model = build_model(Lora(), SETTING, towers=1)
    encoded = BACKBONE.encode(DATA.train.examples)
    together = answer(model, encoded)
    for row in (0, 9, 19):
        alone = answer(model, BACKBONE.encode([DATA.train.examples[row]]))
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)
    assert together.dtype == np.float64 and len(np.unique(together.round(4), axis=0)) > 10


def test_every_step_and_epoch_is_logged() -> None:
    bench = tiny_bench(DATA, BACKBONE, epochs=3)
    lines, seen = logged(bench), []
    bench.progress = lambda done, text: seen.append((done, text))
    fitted = fit_by_gradient(Lora(learning_rate=0.01), bench)
    steps, epochs = [line for line in lines if "step" in line], [line for line in lines if "epoch" in line]
    assert [line["step"] for line in steps] == list(range(bench.recipe["steps"]))
    assert [line["epoch"] for line in epochs] == [1, 2, 3]
    assert max(line["rate"] for line in steps) == 0.01 and steps[-1]["rate"] < 0.005
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert [line["validation"] for line in epochs] == fitted.facts["validation_by_epoch"][1:]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen) and seen[-1][0] == 1.0


def test_the_recipes_rate_goes_before_the_methods_own() -> None:
    bench = tiny_bench(DATA, BACKBONE)
    bench.recipe = {**bench.recipe, "learning_rate": 0.123}
    assert fit_by_gradient(Lora(), bench).facts["learning_rate"] == 0.123
    assert fit_by_gradient(Lora(), tiny_bench(DATA, BACKBONE)).facts["learning_rate"] == Lora().learning_rate


def test_a_pair_is_one_sequence_or_two_as_the_backbone_says() -> None:
    pairs = tiny_dataset(pair=True)
    assert isinstance(BACKBONE, TransformerBackbone)
    towers = replace(BACKBONE, card=replace(BACKBONE.card, towers=2, revision="two towers"))
    joint, apart = (fit_by_gradient(Lora(), tiny_bench(pairs, backbone)) for backbone in (BACKBONE, towers))
    assert (joint.facts["towers"], apart.facts["towers"]) == (1, 2)
    assert apart.delta()["head.out.weight"].shape[1] == 2 * joint.delta()["head.out.weight"].shape[1]
    swapped = [
        replace(example, inputs={"text_a": example.inputs["text_b"], "text_b": example.inputs["text_a"]})
        for example in pairs.test.examples
    ]
    np.testing.assert_allclose(apart.logits(swapped), apart.logits(pairs.test.examples), atol=1e-5)
    assert not np.allclose(joint.logits(swapped), joint.logits(pairs.test.examples), atol=1e-2)


def test_one_text_is_one_tower_even_there() -> None:
    assert isinstance(BACKBONE, TransformerBackbone)
    towers = replace(BACKBONE, card=replace(BACKBONE.card, towers=2))
    assert fit_by_gradient(Lora(), tiny_bench(DATA, towers)).facts["towers"] == 1


def test_runs_on_one_shared_backbone_do_not_see_each_other() -> None:
    """Adapters of earlier runs stay plugged into models that live on, and must not be felt by later ones."""
    shared = open_backbone("tiny_text", precision="fp32")
    alone = fit_by_gradient(Lora(), tiny_bench(DATA, open_backbone("tiny_text", precision="fp32")))
    lived = [fit_by_gradient(method, tiny_bench(DATA, shared)) for method in (Adapter(), Full(), TopLayers(k=1))]
    after = fit_by_gradient(Lora(), tiny_bench(DATA, shared))
    assert all(torch.equal(tensor, after.delta()[name]) for name, tensor in alone.delta().items())
    examples = DATA.test.examples
    assert np.array_equal(after.logits(examples), alone.logits(examples))
    assert not any(np.array_equal(fitted.logits(examples), alone.logits(examples)) for fitted in lived)


def test_half_way_back_to_the_head_start() -> None:
    def fitted(share: float, learning_rate: float = 1e-2) -> FittedModel:
        bench = tiny_bench(DATA, BACKBONE)
        bench.recipe = {**bench.recipe, "kept_share": share}
        return fit_by_gradient(TopLayers(k=1, learning_rate=learning_rate), bench)

    start, end, half = fitted(1.0, learning_rate=1e-30).delta(), fitted(1.0).delta(), fitted(0.5).delta()
    assert any((end[name] - start[name]).abs().max() > 1e-2 for name in start)
    for name, weight in half.items():
        torch.testing.assert_close(weight, (start[name] + end[name]) / 2)
