"""int8 products: near those of fp32, each row by itself."""

from __future__ import annotations

import torch
from torch import nn

from graftwork.nn.int8_linear import Int8Map, use_int8_maps


def test_near_fp32_and_each_row_by_itself() -> None:
    torch.manual_seed(0)
    plain = nn.Linear(24, 16).requires_grad_(False)
    quick, x = Int8Map(plain), torch.randn(3, 5, 24)
    x[0, 0] *= 1000  # a loud row changes no other
    with torch.inference_mode():
        whole, alone = quick(x), quick(x[1:2])
        assert torch.equal(whole[1:2], alone)
        assert torch.cosine_similarity(whole[1], plain(x[1]), dim=-1).min() > 0.999
        assert not torch.equal(whole, plain(x))
    assert torch.equal(quick(x), plain(x))  # with gradients, as adapters train on it


def test_a_changed_weight_is_quantised_again() -> None:
    network = nn.Sequential(nn.Linear(8, 8, bias=False)).requires_grad_(False)
    use_int8_maps(network)
    x = torch.ones(1, 8)
    with torch.inference_mode():
        before = network(x)
    with torch.no_grad():
        network[0].weight.mul_(2.0)
    with torch.inference_mode():
        assert torch.allclose(network(x), 2 * before)
