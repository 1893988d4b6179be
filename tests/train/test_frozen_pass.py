"""What is frozen is computed once, is what it would be anew, and is charged in full to each that uses it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.meter import Phase
from graftwork.core.method import Workbench
from graftwork.core.model import join_towers
from graftwork.core.task import Dataset, Split
from graftwork.io.cache_folder import CacheFolder
from graftwork.machine.memory import OutOfMemory
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import frozen_pass
from graftwork.train.frozen_pass import FrozenStore, Pass, key_of
from graftwork.train.prefix_store import PrefixStore

DATA = tiny_dataset()


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return open_backbone("tiny_text", precision="fp32")


@pytest.fixture
def store() -> FrozenStore:
    return FrozenStore()


def bench(backbone: Backbone, data: Dataset = DATA) -> Workbench:
    return tiny_bench(data, backbone)


def a_pass(backbone: Backbone, split: Split, depth: int | None) -> Pass:
    return FrozenStore().get(backbone, "data", split, depth, bench(backbone))


def test_pooled_features_are_those_of_each_example_alone(backbone: Backbone) -> None:
    kept = a_pass(backbone, DATA.train, None)
    for row in (0, 7, 19):
        inputs = backbone.collate(kept.encoded, [row])
        mask = inputs["attention_mask"].bool()
        for depth, hidden in enumerate(backbone.states(inputs)):
            alone = join_towers(backbone.pool(hidden, mask), 1)[0]
            torch.testing.assert_close(kept.pooled(depth)[row], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("depth", [1, 2])
def test_states_are_laid_out_as_a_batch_wants_them(backbone: Backbone, depth: int) -> None:
    kept = a_pass(backbone, DATA.train, depth)
    rows = [11, 0, 4]
    inputs = backbone.collate(kept.encoded, rows)
    mask = inputs["attention_mask"].bool()
    entering, anew = kept.entering(rows, mask), backbone.states(inputs)[depth]
    torch.testing.assert_close(entering[mask], anew[mask], atol=1e-5, rtol=0)
    assert not mask.all() and entering[~mask].abs().max() == 0
    left = mask.flip(1)  # padding on the other side
    assert torch.equal(kept.entering(rows, left)[left], entering[mask])


def repeating(pairs: bool) -> Split:
    """Every text stands in it three times; of a pair the first alone."""
    found = tiny_dataset(pair=pairs).train
    firsts = [found.examples[row // 3 * 3] for row in range(len(found.examples))]
    if not pairs:
        return replace(found, examples=tuple(firsts))
    texts = zip(firsts, found.examples, strict=True)
    joined = [replace(own, inputs={**own.inputs, "text_a": first.inputs["text_a"]}) for first, own in texts]
    return replace(found, examples=tuple(joined))


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("depth", [None, 1])
def test_equal_texts_go_through_once(
    backbone: Backbone, pairs: bool, depth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(backbone, TransformerBackbone)
    towers = replace(backbone, card=replace(backbone.card, towers=2))
    split, read = repeating(pairs), []
    real = TransformerBackbone.states

    def states(self: TransformerBackbone, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        read.append(len(inputs["attention_mask"]))
        return real(self, inputs)

    with monkeypatch.context() as patched:
        patched.setattr(TransformerBackbone, "states", states)
        kept = a_pass(towers, split, depth)
    encoded = kept.encoded
    different = {tuple(ids) for ids in encoded.ids}
    assert sum(read) == len(different) < len(encoded.ids)
    for row in range(len(split.examples)):
        sequences = encoded.sequences([row])
        inputs = towers.collate(encoded, sequences)
        mask = inputs["attention_mask"].bool()
        states_of = towers.states(inputs)
        alone = join_towers(towers.pool(states_of[2], mask), encoded.towers)[0]
        torch.testing.assert_close(kept.pooled(2)[row], alone, atol=1e-5, rtol=0)
        if depth is not None:
            torch.testing.assert_close(kept.entering(sequences, mask)[mask], states_of[1][mask], atol=1e-5, rtol=0)


def test_a_pair_in_two_towers_is_joined(backbone: Backbone) -> None:
    assert isinstance(backbone, TransformerBackbone)
    towers = replace(backbone, card=replace(backbone.card, towers=2))
    pairs = tiny_dataset(pair=True)
    kept = a_pass(towers, pairs.train, 1)
    assert len(kept.encoded.ids) == 2 * len(pairs.train.examples)
    assert kept.pooled(2).shape == (len(pairs.train.examples), 2 * backbone.card.width)


def test_nothing_is_kept_for_a_gradient(backbone: Backbone) -> None:
    kept = a_pass(backbone, DATA.train, 1)
    assert not kept.pooled(1).requires_grad
    mask = backbone.collate(kept.encoded, [0])["attention_mask"].bool()
    assert not kept.entering([0], mask).requires_grad


def test_a_pass_is_computed_once_and_charged_to_every_user(backbone: Backbone, store: FrozenStore) -> None:
    first, second = bench(backbone), bench(backbone)
    kept = store.get(backbone, "data", DATA.train, 1, first)
    assert store.get(backbone, "data", DATA.train, 1, second) is kept
    assert first.charged == Phase()
    assert second.charged.wall_seconds > kept.kept.cost.wall_seconds > 0, "the reading of the texts is charged too"
    assert first.tally == second.tally and first.tally.flops == kept.kept.tally.flops > 0
    assert first.tally.padding_flops == pytest.approx(kept.kept.tally.padding_flops)


def test_what_is_held_is_known(backbone: Backbone, store: FrozenStore) -> None:
    train, validation = DATA.train, DATA.validation
    assert not store.holds(backbone, "data", train, None)
    store.get(backbone, "data", train, 1, bench(backbone))
    assert store.holds(backbone, "data", train, 1) and store.holds(backbone, "data", train, None)
    assert not store.holds(backbone, "data", train, 2)
    assert not store.holds(backbone, "data", validation, 1) and not store.holds(backbone, "other", train, 1)


def read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokenising takes 0.05 s and more."""
    real = TransformerBackbone.encode

    def slowly(self: TransformerBackbone, examples: object) -> object:
        time.sleep(0.05)
        return real(self, examples)  # type: ignore[arg-type]

    monkeypatch.setattr(TransformerBackbone, "encode", slowly)


def test_reading_the_texts_is_part_of_the_charge(
    backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slowly(monkeypatch)
    kept = store.get(backbone, "data", DATA.train, None, bench(backbone))
    user = bench(backbone)
    store.get(backbone, "data", DATA.train, None, user)
    assert user.charged.wall_seconds >= kept.kept.cost.wall_seconds + 0.05


def test_a_run_that_opens_several_passes_is_charged_for_one_reading(
    backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slowly(monkeypatch)
    first, second = bench(backbone), bench(backbone)
    depths = range(1, backbone.card.blocks + 1)
    costs = [store.get(backbone, "data", DATA.train, depth, first).kept.cost.wall_seconds for depth in depths]
    assert len(costs) > 1 and first.charged == Phase()
    for depth in depths:
        store.get(backbone, "data", DATA.train, depth, second)
    reading = store._encoded[key_of(backbone, "data", DATA.train)][1].wall_seconds
    assert second.charged.wall_seconds == pytest.approx(sum(costs) + reading) and reading > 0.05


def test_states_bring_the_pooled_features_along(backbone: Backbone, store: FrozenStore) -> None:
    user = bench(backbone)
    kept = store.get(backbone, "data", DATA.train, 1, user)
    assert store.get(backbone, "data", DATA.train, None, user) is kept
    assert store.get(backbone, "data", DATA.train, 2, user) is not kept


def test_a_pass_may_keep_the_states_that_a_later_run_needs(backbone: Backbone, store: FrozenStore) -> None:
    """Asked for no depth, it is the one that is asked for afterwards, and its features are those of one without."""
    store.keeps = 1
    found = store.get(backbone, DATA.digest, DATA.train, None, bench(backbone))
    assert store.holds(backbone, DATA.digest, DATA.train, 1)
    assert store.get(backbone, DATA.digest, DATA.train, 1, bench(backbone)) is found
    alone = FrozenStore().get(backbone, DATA.digest, DATA.train, None, bench(backbone))
    assert all(torch.equal(found.pooled(block), alone.pooled(block)) for block in range(backbone.card.blocks + 1))


def test_states_of_more_than_a_gigabyte_are_not_kept_for_later(
    backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen_pass, "MOST_KEPT_BESIDE", 100)
    store.keeps = 1
    store.get(backbone, DATA.digest, DATA.train, None, bench(backbone))
    assert not store.holds(backbone, DATA.digest, DATA.train, 1)


def test_a_pass_over_sampled_examples_alone_is_another(
    backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftwork.core.backbone.WORDS_KEPT", 40)
    data = tiny_dataset("tagging")
    kept = store.get(backbone, "data", data.train, 1, bench(backbone, data))
    assert not kept.of_sample and not store.holds(backbone, "data", data.train, None)
    sampled = store.get(backbone, "data", data.train, None, bench(backbone, data))
    assert sampled.of_sample and sampled is not kept, "batches of their own: what a run reads hangs on no other run"
    assert store.get(backbone, "data", data.train, None, bench(backbone, data)) is sampled


def test_other_texts_and_other_weights_are_other_passes(backbone: Backbone, store: FrozenStore) -> None:
    user = bench(backbone)
    kept = store.get(backbone, "data", DATA.train, None, user)
    fresh = open_backbone("random:tiny_text", precision="fp32", seed=3)
    others = [
        store.get(backbone, "other data", DATA.train, None, user),
        store.get(backbone, "data", DATA.validation, None, user),
        store.get(fresh, "data", DATA.train, None, user),
    ]
    assert len({id(item) for item in (kept, *others)}) == 4
    assert not torch.allclose(others[-1].pooled(2), kept.pooled(2))


def test_the_least_recently_used_pass_goes_first(backbone: Backbone) -> None:
    user = bench(backbone)
    size = a_pass(backbone, DATA.train, None).kept.bytes
    store = FrozenStore(cap_bytes=2 * size)
    one, two = (store.get(backbone, name, DATA.train, None, user) for name in ("one", "two"))
    assert store.get(backbone, "one", DATA.train, None, user) is one  # now "two" has waited longest
    store.get(backbone, "three", DATA.train, None, user)
    assert store.get(backbone, "one", DATA.train, None, user) is one
    anew = store.get(backbone, "two", DATA.train, None, user)
    assert anew is not two and torch.equal(anew.pooled(1), two.pooled(1))


def test_states_read_for_their_pooled_features_only_are_used_too(backbone: Backbone) -> None:
    user = bench(backbone)
    kept = a_pass(backbone, DATA.train, 1).kept.bytes
    store = FrozenStore(cap_bytes=2 * kept)
    one, _ = (store.get(backbone, name, DATA.train, 1, user) for name in ("one", "two"))
    assert store.get(backbone, "one", DATA.train, None, user) is one
    store.get(backbone, "three", DATA.train, 1, user)
    assert store.get(backbone, "one", DATA.train, 1, user) is one


def test_a_pass_larger_than_the_cap_still_serves(backbone: Backbone) -> None:
    store = FrozenStore(cap_bytes=1)
    kept = store.get(backbone, "one", DATA.train, 1, bench(backbone))
    assert kept.kept.bytes > 1 and kept.pooled(2).shape[0] == len(DATA.train.examples)


def test_what_belongs_to_other_data_can_be_forgotten(backbone: Backbone) -> None:
    user, store = bench(backbone), FrozenStore()
    one, two = (store.get(backbone, name, DATA.train, 1, user) for name in ("one", "two"))
    store.forget_all_but("two")
    assert store.holds(backbone, "two", DATA.train, 1) and not store.holds(backbone, "one", DATA.train, 1)
    assert store.encoded(backbone, "two", DATA.train) is two.encoded
    assert store.encoded(backbone, "one", DATA.train) is not one.encoded
    assert store.get(backbone, "two", DATA.train, 1, user) is two


def test_a_split_is_tokenised_once(backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = TransformerBackbone.encode, []

    def counted(self: TransformerBackbone, examples: object) -> object:
        calls.append(examples)
        return real(self, examples)  # type: ignore[arg-type]

    monkeypatch.setattr(TransformerBackbone, "encode", counted)
    encoded = store.encoded(backbone, "data", DATA.train)
    kept = [store.get(backbone, "data", DATA.train, depth, bench(backbone)) for depth in (None, 1, 2)]
    assert len(calls) == 1 and all(one.encoded is encoded for one in kept)


def test_tokens_read_before_the_run_are_charged_to_it(
    backbone: Backbone, store: FrozenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slowly(monkeypatch)
    store.encoded(backbone, "data", DATA.train)
    first, second = bench(backbone), bench(backbone)
    kept = store.get(backbone, "data", DATA.train, None, first)
    store.get(backbone, "data", DATA.train, None, second)
    assert first.charged.wall_seconds > 0.05, "the pass itself it has computed"
    assert second.charged.wall_seconds == pytest.approx(first.charged.wall_seconds + kept.kept.cost.wall_seconds)


def test_a_pass_that_finds_no_memory_goes_through_in_halves_and_is_not_kept_for_others(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, real = a_pass(backbone, DATA.train, 1), TransformerBackbone.states

    def short(self: TransformerBackbone, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        if len(inputs["input_ids"]) > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return real(self, inputs)

    monkeypatch.setattr(TransformerBackbone, "states", short)
    store, used = FrozenStore(disk=PrefixStore(CacheFolder(tmp_path), dict)), bench(backbone)
    kept = store.get(backbone, "data", DATA.train, 1, used)
    assert used.memory.passes == {"train": 1} and not list(tmp_path.glob("*.safetensors"))
    torch.testing.assert_close(kept.pooled(2), whole.pooled(2), atol=1e-5, rtol=0)
    assert kept.kept.states is not None and whole.kept.states is not None
    torch.testing.assert_close(kept.kept.states, whole.kept.states, atol=1e-5, rtol=0)
    later = bench(backbone)
    store.get(backbone, "data", DATA.train, 1, later)
    assert later.memory.passes == {"train": 1}, "it is told by every run that uses it"
    monkeypatch.setattr(TransformerBackbone, "states", lambda self, inputs: short(self, {"input_ids": [0] * 9}))
    with pytest.raises(OutOfMemory, match="one example"):
        a_pass(backbone, DATA.train, None)
