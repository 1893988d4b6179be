"""The scalar mix."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from graftwork.core.example import Example
from graftwork.methods.scalar_mix import ScalarMix
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import scalar_mix_layer
from graftwork.train.scalar_mix_layer import features_of_blocks, fit_mix, mix_blocks

DATA = tiny_dataset(rows=200)
BACKBONE = open_backbone("tiny_text", precision="fp32")
WIDTH = 64  # of features made by hand whose memory is counted


class Kept:
    """Pooled features of every block, made by hand: block 1 knows the class, the others do not."""

    encoded, of_sample = BACKBONE.encode(DATA.train.examples), False

    def __init__(self, scale: float = 1.0) -> None:
        random = torch.Generator().manual_seed(0)
        self.blocks = torch.randn(BACKBONE.card.blocks + 1, len(DATA.train.examples), 16, generator=random)
        self.blocks[1, :, 0] += 4 * torch.from_numpy(DATA.train.targets)
        self.blocks[1] *= scale

    def pooled(self, block: int) -> Tensor:
        return self.blocks[block].clone()

    def entering(self, sequences: Any, mask: Tensor) -> Tensor:
        raise AssertionError("a mix reads pooled features only")

    def spreads(self) -> Tensor:
        return self.blocks.std(dim=(1, 2))


def test_shares_sum_to_one_over_the_blocks_spreads() -> None:
    kept = Kept()
    weights = fit_mix(tiny_bench(DATA, BACKBONE), kept, 0.01, 2)
    shares = weights * kept.spreads()
    assert shares.shape == (BACKBONE.card.blocks + 1,) and bool((shares > 0).all())
    torch.testing.assert_close(shares.sum(), torch.tensor(1.0), atol=1e-3, rtol=0)


def test_the_block_that_knows_gets_the_largest_share() -> None:
    kept = Kept()
    shares = fit_mix(tiny_bench(DATA, BACKBONE), kept, 0.01, 2) * kept.spreads()
    assert int(shares.argmax()) == 1 and shares[1] > 1 / 3 + 0.01


def test_the_scale_of_a_block_does_not_matter() -> None:
    plain, large = Kept(), Kept(scale=50.0)
    one, two = (fit_mix(tiny_bench(DATA, BACKBONE), kept, 0.01, 2) for kept in (plain, large))
    torch.testing.assert_close(one * plain.spreads(), two * large.spreads(), atol=1e-3, rtol=0)


def test_the_same_seed_the_same_mix() -> None:
    one, two, other = (fit_mix(tiny_bench(DATA, BACKBONE, seed=seed), Kept(), 0.01, 2) for seed in (0, 0, 1))
    assert torch.equal(one, two) and not torch.equal(one, other)


class Deep:
    """A pass of a network of 25 blocks, with widths that no vector register divides."""

    encoded, of_sample = BACKBONE.encode(DATA.train.examples), False
    blocks = torch.randn(25, 37, 7, generator=torch.Generator().manual_seed(1))
    entering = Kept.entering

    def pooled(self, block: int) -> Tensor:
        return self.blocks[block].clone()


def test_blocks_are_stacked_and_mixed_to_the_last_bit_as_torch_does() -> None:
    shares = torch.randn(25, generator=torch.Generator().manual_seed(2))
    assert torch.equal(features_of_blocks(Deep(), 24), torch.stack(list(Deep.blocks), dim=1))
    by_torch = torch.stack([share * one for share, one in zip(shares, Deep.blocks, strict=True)]).sum(dim=0)
    assert torch.equal(mix_blocks(Deep(), shares), by_torch)


class Made:
    """A pass that holds nothing itself."""

    of_sample, entering = False, Kept.entering

    def __init__(self, examples: Sequence[Example]) -> None:
        self.encoded = BACKBONE.encode(examples)

    def pooled(self, block: int) -> Tensor:
        return torch.randn(len(self.encoded), WIDTH, generator=torch.Generator().manual_seed(block))


class Held(TorchDispatchMode):
    """The most bytes that tensors made under it held at once; what shares memory counts once."""

    def __init__(self) -> None:
        super().__init__()
        self.users: dict[int, int] = {}  # address -> tensors that use it
        self.now = self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, Tensor) and one.untyped_storage().nbytes():
                storage = one.untyped_storage()
                address, size = storage.data_ptr(), storage.nbytes()
                self.users[address] = self.users.get(address, 0) + 1
                self.now += size if self.users[address] == 1 else 0
                weakref.finalize(one, self.left, address, size)
        self.most = max(self.most, self.now)
        return found

    def left(self, address: int, size: int) -> None:
        self.users[address] -= 1
        self.now -= size if self.users[address] == 0 else 0


@pytest.mark.parametrize(
    ("work", "most"),
    [
        (lambda bench, kept: fit_mix(bench, kept, 0.01, 2), 1.9),
        (lambda bench, kept: mix_blocks(kept, torch.ones(BACKBONE.card.blocks + 1)), 1.9),
        (lambda bench, kept: ScalarMix(epochs=1).fit(bench), 2.4),  # validation, half as many rows, beside train
    ],
    ids=["fit_mix", "mixed", "scalar_mix"],
)
def test_the_features_of_all_blocks_are_held_once(
    work: Callable[[Any, Any], Any], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalar_mix_layer, "BATCH", 4)
    monkeypatch.setattr(scalar_mix_layer, "EPOCHS", 1)
    bench = tiny_bench(DATA, BACKBONE)
    made = {split.name: Made(split.examples) for split in (bench.train, bench.validation)}
    monkeypatch.setattr(bench, "frozen", lambda split, depth: made[split.name])
    with Held() as held:
        work(bench, made["train"])
    of_all = (BACKBONE.card.blocks + 1) * len(DATA.train.examples) * WIDTH * 4
    assert held.most < most * of_all, held.most / of_all
