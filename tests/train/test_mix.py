"""The scalar mix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graftwork.core.opening import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.mix import fit_mix

DATA = tiny_dataset(rows=200)
BACKBONE = open_backbone("tiny_text", precision="fp32")


class Kept:
    """Pooled features of every block, made by hand: block 1 knows the class, the others do not."""

    encoded, of_sample = BACKBONE.encode(DATA.train.examples), False

    def __init__(self, scale: float = 1.0) -> None:
        random = torch.Generator().manual_seed(0)
        self.blocks = torch.randn(BACKBONE.card.blocks + 1, len(DATA.train.examples), 16, generator=random)
        self.blocks[1, :, 0] += 4 * torch.from_numpy(DATA.train.targets)
        self.blocks[1] *= scale

    def pooled(self, block: int) -> Tensor:
        return self.blocks[block]

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
