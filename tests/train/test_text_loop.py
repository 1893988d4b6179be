"""Training a network to write, and what it then writes: chosen by the loss, written alike in any batch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.method import Setting, Workbench
from graftwork.core.run import RunResult
from graftwork.core.task import Dataset
from graftwork.core.writing import NOTHING, TOKENS, TextSearch
from graftwork.errors import IncompatibleModule
from graftwork.machine.memory import Cut, Memory
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone
from graftwork.registry import kinds
from graftwork.targets.written_texts import WRITTEN
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.flops import PairCounter, count_flops
from graftwork.train.loop import build_model, fit_by_gradient, restore_by_attaching
from graftwork.train.recipe import EQUAL_RATES
from graftwork.train.text_loop import WritingObjective, padded_tokens, write


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Seq2SeqBackbone:
    """A tiny gated T5."""
    folder = write_seq2seq(tmp_path_factory.mktemp("t5"))
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone)
    return backbone


def toy(**settings: Any) -> Dataset:
    """Short texts to be written, of at most 8 tokens."""
    data = tiny_dataset("generation", rows=12)
    asked = replace(data.task.settings, **({"longest": 8} | settings))
    return replace(data, task=replace(data.task, settings=asked))


def bench_of(backbone: Seq2SeqBackbone, epochs: int = 2) -> Workbench:
    """The workbench over the toy texts."""
    return tiny_bench(toy(), backbone, epochs=epochs)


def test_padding_stands_behind_shorter_texts() -> None:
    assert padded_tokens([[3, 1], [4, 5, 1], []]).tolist() == [[3, 1, NOTHING], [4, 5, 1], [NOTHING] * 3]


@pytest.mark.parametrize(
    "method",
    [Lora(rank=2, learning_rate=1e-2), pytest.param(TopLayers(k=2, learning_rate=1e-2), marks=pytest.mark.slow)],
    ids=str,
)
def test_the_loss_falls_and_a_restored_model_writes_the_same(method: Any, backbone: Seq2SeqBackbone) -> None:
    bench = bench_of(backbone, epochs=4)
    fitted = fit_by_gradient(method, bench)
    history = fitted.facts["validation_by_epoch"]
    assert len(history) == 5 and fitted.facts["best_epoch"] == 1 + int(np.argmax(history[1:])) and max(history) < 0
    assert not RunResult("0", 0, "ok", facts=fitted.facts).kept_best_epoch
    assert history[-1] > history[0] + 0.1 and fitted.facts["head_start"] == {"used": False}
    assert fitted.facts["cut_targets"] <= 12 and bench.tally.flops > 0 and bench.tally.grade == "counter"
    examples = bench.validation.examples
    found = fitted.logits(examples)
    assert found.dtype == WRITTEN and (found["log_probability"] < 0).all()
    restored = restore_by_attaching(
        method, Setting(bench.setting.task, bench.setting.kind, backbone), fitted.delta(), fitted.facts
    )
    assert kinds.get("generation").difference(restored.logits(examples), found) == 0  # type: ignore[attr-defined]
    assert fitted.flops(examples[:1])[0] > 0


def test_flops_of_a_few_lengths_tell_those_of_others(backbone: Seq2SeqBackbone) -> None:
    model = build_model(Lora(rank=2), Setting(toy().task, kinds.get("generation"), backbone), towers=1)
    counter = PairCounter()

    def loss(read: int, wrote: int) -> float:
        inputs = {"input_ids": torch.full((2, read), 5), "attention_mask": torch.ones(2, read, dtype=torch.int64)}
        chances = model(inputs | {TOKENS: torch.full((2, wrote), 5)}).sum()
        chances.backward()
        return float(chances.detach())

    sizes = [(3, 2), (9, 2), (3, 7), (9, 7), (5, 4), (12, 3), (7, 11), (6, 6)]
    for read, wrote in sizes:
        assert counter.known((read, wrote)) is None or (read, wrote) == sizes[-1]
        counter.run((read, wrote), 2, partial(loss, read, wrote))
    for read, wrote in ((6, 6), (10, 9), (20, 4)):
        assert counter.known((read, wrote)) == pytest.approx(count_flops(partial(loss, read, wrote))[1] / 2, rel=1e-9)


def test_parts_of_a_batch_give_the_same_step(backbone: Seq2SeqBackbone, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for dropout, which is drawn for each part."""
    monkeypatch.setattr(WritingObjective, "drops", False)
    whole, parts = (bench_of(backbone, epochs=1) for _ in range(2))
    parts.memory = Memory(cuts=[Cut(0, 30, "told")])
    one, other = (fit_by_gradient(Lora(rank=2), bench) for bench in (whole, parts))
    assert other.facts["accumulation"]["parts"] > 1
    for name, weight in one.delta().items():
        torch.testing.assert_close(torch.as_tensor(weight), torch.as_tensor(other.delta()[name]), atol=1e-5, rtol=1e-3)


def test_with_equal_rates_the_decay_does_nothing(backbone: Seq2SeqBackbone) -> None:
    found = []
    for decay, rates in ((0.5, EQUAL_RATES), (1.0, None), (0.5, None)):
        bench = bench_of(backbone, epochs=1)
        bench.recipe = bench.recipe | ({"rates": rates} if rates else {})
        found.append(fit_by_gradient(Full(decay=decay), bench).model.delta())
    assert all(torch.equal(weight, found[1][name]) for name, weight in found[0].items())
    assert any(not torch.equal(weight, found[2][name]) for name, weight in found[0].items())


def test_steps_run_with_the_dropout_of_the_network_and_nothing_else_does(
    backbone: Seq2SeqBackbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: dict[str, set[bool]] = {"loss": set(), "validate": set()}
    for name, seen in modes.items():
        real = getattr(WritingObjective, name)

        def recorded(self, model, *args, real=real, seen=seen):  # type: ignore[no-untyped-def]
            seen.update(module.training for module in model.modules())
            return real(self, model, *args)

        monkeypatch.setattr(WritingObjective, name, recorded)
    fitted = fit_by_gradient(Lora(rank=2), bench_of(backbone))
    assert modes == {"loss": {True}, "validate": {False}}
    assert not any(module.training for module in fitted.model.modules())


@pytest.mark.parametrize("method", [Lora(rank=2), TopLayers(k=2)], ids=str)
def test_dropout_is_drawn_from_the_seed_of_the_order(method: Any, backbone: Seq2SeqBackbone) -> None:
    """Whatever has been drawn before; the starting weights of both runs are the same."""
    found = []
    for seed in (0, 0, 1):
        torch.rand(len(found))
        bench = replace(bench_of(backbone, epochs=1), seed=seed, held=("init",))
        bench.order = lambda lengths, epoch: [np.arange(6), np.arange(6, len(lengths))]
        found.append({name: torch.as_tensor(one) for name, one in fit_by_gradient(method, bench).delta().items()})
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    assert any(not torch.equal(found[0][name], found[2][name]) for name in found[0]), "other units drop out"


def test_texts_do_not_depend_on_their_batch(backbone: Seq2SeqBackbone) -> None:
    fitted = fit_by_gradient(Lora(rank=2), bench_of(backbone, epochs=1))
    examples = toy().validation.examples
    encoded = backbone.encode(examples)
    for search in (TextSearch(1, 1.0, 0, 8), TextSearch(2, 1.0, 0, 8)):
        together = write(fitted.model, encoded, search)
        alone = np.concatenate([write(fitted.model, encoded.some([row]), search) for row in range(len(examples))])
        assert together["text"].tolist() == alone["text"].tolist() and together["cut"].tolist() == alone["cut"].tolist()
        np.testing.assert_allclose(together["log_probability"], alone["log_probability"], atol=1e-4)
    assert len(write(fitted.model, backbone.encode([]), search)) == 0


def test_longer_texts_are_marked_as_cut(backbone: Seq2SeqBackbone) -> None:
    fitted = fit_by_gradient(Lora(rank=2), bench_of(backbone, epochs=1))
    found = write(fitted.model, backbone.encode(toy().validation.examples), TextSearch(1, 1.0, 0, 1))
    assert found["cut"].any()


def test_probabilities_that_are_no_numbers_are_refused(backbone: Seq2SeqBackbone) -> None:
    model = build_model(Lora(rank=2), Setting(toy().task, kinds.get("generation"), backbone), towers=1)
    for adapter in model.adapters.values():
        torch.nn.init.constant_(adapter.b, torch.nan)  # type: ignore[arg-type]
    with pytest.raises(IncompatibleModule, match="no numbers"):
        write(model, backbone.encode(toy().validation.examples), TextSearch(1, 1.0, 0, 4))
