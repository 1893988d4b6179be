"""Contrastive: all pairs of a batch, each text encoded once; texts of a class end nearer; the backbone stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from graftwork.core.backbone import Inputs
from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.machine.memory import Cut, Memory, OutOfMemory
from graftwork.methods.contrastive import Contrastive
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.method_contract import digest_of
from graftwork.train import accumulation, pair_training
from graftwork.train.loop import Diverged, FittedModel
from graftwork.train.pair_training import PairPlan, batches_of_classes, pair_loss

BACKBONE = open_backbone("tiny_text", precision="fp32")
DATA = tiny_dataset(rows=24)
QUICK = Contrastive(rate=1e-3, epochs=8)


def test_the_loss_is_over_all_pairs_half_of_one_class_and_half_of_two() -> None:
    features, classes = (
        torch.randn(7, 5, generator=torch.Generator().manual_seed(0)),
        torch.tensor([0, 0, 0, 1, 1, 2, 2]),
    )
    near, far = [], []
    for i, j in combinations(range(7), 2):
        cosine = cosine_similarity(features[i], features[j], dim=0)
        (near if classes[i] == classes[j] else far).append((cosine - float(classes[i] == classes[j])) ** 2)
    assert len(near) == 5 and len(far) == 16
    wanted = (torch.stack(near).mean() + torch.stack(far).mean()) / 2
    assert torch.allclose(pair_loss(features, classes), wanted)


def test_pairs_of_one_sort_alone() -> None:
    features = torch.eye(3)
    assert float(pair_loss(features, torch.zeros(3, dtype=torch.int64))) == pytest.approx(1.0)
    assert float(pair_loss(features, torch.arange(3))) == pytest.approx(0.0)


def test_batches_hold_every_row_once_and_several_of_a_class() -> None:
    classes = np.repeat(np.arange(20), 9)
    batches = batches_of_classes(classes, 32, seed=3, epoch=1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(180))
    assert all(len(rows) <= 32 for rows in batches) and len(batches) <= 8
    assert all(np.bincount(classes[rows])[np.unique(classes[rows])].min() >= 3 for rows in batches)
    again, other = batches_of_classes(classes, 32, 3, 1), batches_of_classes(classes, 32, 3, 2)
    assert all(np.array_equal(one, two) for one, two in zip(batches, again, strict=True))
    assert not np.array_equal(batches[0], other[0])


def test_no_batch_is_a_row_alone() -> None:
    classes = np.repeat([0, 1, 2], [32, 32, 1])
    for epoch in range(1, 41):
        batches = batches_of_classes(classes, 64, seed=0, epoch=epoch)
        assert sorted(np.concatenate(batches)) == list(range(65))
        assert all(2 <= len(rows) <= 64 for rows in batches)


def test_few_rows_are_one_batch_and_many_are_capped() -> None:
    few = np.arange(10) % 2
    assert [rows.tolist() for rows in batches_of_classes(few, 32, 0, 1)] == [list(range(10))]
    many = np.arange(500) % 4
    plan = PairPlan(rate=1e-3, epochs=1000, steps=12, size=64)
    assert len(plan.batches(many, 0)) == 12
    assert len(replace(plan, epochs=1).batches(many, 0)) == 8


def test_texts_of_a_class_end_nearer_and_the_shared_backbone_stays() -> None:
    before = digest_of(BACKBONE.module)
    fitted = QUICK.fit(tiny_bench(DATA, BACKBONE))
    assert digest_of(BACKBONE.module) == before
    encoded = BACKBONE.encode(DATA.test.examples)
    inputs = BACKBONE.collate(encoded, range(len(encoded)))
    classes = torch.from_numpy(np.asarray(DATA.test.targets))
    with torch.no_grad():
        losses = [
            float(pair_loss(backbone.features(inputs).pooled, classes))
            for backbone in (BACKBONE, fitted.model.backbone)
        ]
    assert losses[1] < 0.7 * losses[0]
    right = (fitted.logits(DATA.test.examples).argmax(axis=1) == DATA.test.targets).mean()
    assert right > np.bincount(DATA.test.targets).max() / len(DATA.test.targets)


def test_the_facts_count_the_pairs_and_say_what_was_left() -> None:
    facts = QUICK.fit(tiny_bench(DATA, BACKBONE)).facts
    assert facts["steps"] == 8 and facts["pairs"] == 8 * 24 * 23 // 2 and facts["epochs"] == 8
    assert facts["capped"] is False
    cut = replace(QUICK, steps=3).fit(tiny_bench(DATA, BACKBONE)).facts
    assert cut["steps"] == 3 and cut["epochs"] == 3 and cut["capped"] is True


def test_padding_is_counted_by_the_share_of_every_batch() -> None:
    bench = tiny_bench(DATA, BACKBONE)
    replace(QUICK, epochs=3).fit(bench)
    lengths = np.array([len(ids) for ids in BACKBONE.encode(DATA.train.examples).ids])
    share = 1 - lengths.sum() / (len(lengths) * lengths.max())  # all rows are one batch
    assert share > 0.05
    assert bench.tally.padding_flops / bench.tally.flops == pytest.approx(share, rel=0.1)


def test_a_text_is_encoded_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    real, read = pair_training.read, list[int]()
    monkeypatch.setattr(pair_training, "read", lambda *given: (read.extend(given[2]), real(*given))[1])
    replace(QUICK, epochs=2).fit(tiny_bench(DATA, BACKBONE))
    assert sorted(read) == sorted(2 * list(range(24)))


def test_what_trains_is_what_is_stored() -> None:
    fitted = replace(QUICK, epochs=1).fit(tiny_bench(DATA, BACKBONE))
    assert "network.embeddings.word_embeddings.weight" not in fitted.delta()
    restored = QUICK.restore(Setting(DATA.task, kinds.get("classification"), BACKBONE), fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(DATA.test.examples), fitted.logits(DATA.test.examples))


def test_a_pair_in_two_towers() -> None:
    assert isinstance(BACKBONE, TransformerBackbone)
    towers = replace(BACKBONE, card=replace(BACKBONE.card, towers=2, revision="two towers"))
    data = tiny_dataset(pair=True)
    fitted = replace(QUICK, epochs=1).fit(tiny_bench(data, towers))
    assert fitted.delta()["head.out.weight"].shape == (2, 2 * BACKBONE.card.width)


def test_it_says_when_it_diverges() -> None:
    with pytest.raises(Diverged, match="diverged at step") as caught:
        replace(QUICK, rate=1e30, epochs=30).fit(tiny_bench(DATA, BACKBONE))
    assert "contrastive:rate=" in caught.value.do


def test_what_does_not_fit() -> None:
    assert "one class of each example, not multilabel" in Contrastive().unfit(tiny_dataset("multilabel").task, None)
    for odd in (Contrastive(rate=0), Contrastive(epochs=0), Contrastive(steps=0), Contrastive(decay=1.5)):
        assert "must be" in odd.unfit(DATA.task, None) or "above 0" in odd.unfit(DATA.task, None)


def contrasted(memory: Memory | None = None) -> tuple[FittedModel, list[Mapping[str, Any]]]:
    bench, lines = tiny_bench(tiny_dataset(rows=40), BACKBONE), list[Mapping[str, Any]]()
    bench.log, bench.memory = lines.append, memory or Memory()
    return Contrastive(epochs=3).fit(bench), [line for line in lines if "step" in line]


def test_what_finds_no_memory_is_read_part_by_part_with_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, said = contrasted()
    real = Model.forward

    def short(model: Model, inputs: Inputs, entering: torch.Tensor | None = None) -> torch.Tensor:
        if torch.is_grad_enabled() and len(inputs["attention_mask"]) > 5:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return real(model, inputs, entering)

    with monkeypatch.context() as patched:
        patched.setattr(Model, "forward", short)
        parts, told = contrasted()
    found = parts.facts["accumulation"]
    assert found["steps"] == len(told) == len(said) and found["parts"] > 1
    assert told[0]["loss"] == pytest.approx(said[0]["loss"], rel=1e-5)
    assert told[0]["norm"] == pytest.approx(said[0]["norm"], rel=1e-3)
    assert [line["loss"] for line in told] == pytest.approx([line["loss"] for line in said], rel=1e-2, abs=1e-2)
    again, _ = contrasted(Memory(cuts=[Cut(**cut) for cut in found["cuts"]]))
    assert all(torch.equal(tensor, again.delta()[name]) for name, tensor in parts.delta().items())
    assert "accumulation" not in whole.facts


def test_a_bound_of_memory_holds_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulation, "PROCESS_BYTES", 0)
    parts = [contrasted(Memory(bound))[0].facts.get("accumulation") for bound in (100_000_000, 2_400_000)]
    assert parts[0] is None and parts[1]["parts"] > 1
    with pytest.raises(OutOfMemory, match="more than --max-memory"):
        contrasted(Memory(1_000_000))


@pytest.mark.slow
def test_texts_that_fit_one_by_one_only_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a part already: what does not fit is the states of all of them together."""
    monkeypatch.setattr(pair_training, "TOKENS_AT_ONCE", 1)
    whole, _ = contrasted()
    failed: list[Any] = []

    def short(*given: Any) -> float:
        failed.append(given)
        raise MemoryError

    monkeypatch.setattr(pair_training._Pairs, "_at_once", short)
    parts, _ = contrasted()
    assert len(failed) == 1
    assert parts.facts["last_loss"] == pytest.approx(whole.facts["last_loss"], rel=1e-2, abs=1e-2)
