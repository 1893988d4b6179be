"""One seed per purpose."""

from __future__ import annotations

from itertools import product

import torch

from graftwork.train.seeds import derive


def test_seeds_are_the_same_on_every_machine() -> None:
    assert derive(0, "init") == 3598610026517748695
    assert derive(1, "order") == 6490945769113057457


def test_no_two_streams_are_the_same() -> None:
    seeds = [derive(seed, purpose) for seed, purpose in product(range(50), ("init", "order", "split"))]
    assert len(set(seeds)) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_torch_takes_them() -> None:
    torch.manual_seed(derive(7, "init"))
    first = torch.rand(3)
    torch.manual_seed(derive(7, "init"))
    assert torch.equal(first, torch.rand(3))
