"""Frozen linear maps: the product that packs its weight gives what torch's `linear` gives, and never a stale one."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from graftwork.nn import packed_linear
from graftwork.nn.packed_linear import AVAILABLE, LinearMap, Widening, use_linear_maps
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.train.flops import count_flops

needs_bf16 = pytest.mark.skipif(not AVAILABLE, reason="this processor has no products in bf16")
NEAR = {"rtol": 2e-2, "atol": 2e-2}  # two roundings of bf16


def made(*, bias: bool = True, dtype: torch.dtype = torch.bfloat16) -> LinearMap:
    torch.manual_seed(0)
    plain = nn.Linear(24, 40, bias=bias, dtype=dtype).requires_grad_(False)
    return LinearMap(plain)


def given(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_it_is_linear(bias: bool, dtype: torch.dtype) -> None:
    layer, x = made(bias=bias, dtype=dtype), given(3, 5, 24, dtype=dtype).requires_grad_()
    ours, theirs = layer(x), linear(x, layer.weight, layer.bias)
    assert ours.shape == (3, 5, 40)
    torch.testing.assert_close(ours, theirs, **NEAR)
    upstream = given(3, 5, 40, dtype=dtype)
    gradients = [torch.autograd.grad(output, x, upstream)[0] for output in (ours, theirs)]
    torch.testing.assert_close(*gradients, **NEAR)


@needs_bf16
def test_it_packs_once_and_not_what_learns() -> None:
    layer, x = made(), given(2, 24)
    layer(x)
    packed = layer.packed(x)
    assert packed is not None
    layer(x)
    assert layer.packed(x) is packed
    layer.weight.requires_grad_(True)
    output = layer(x)
    assert layer.packed(x) is None
    (gradient,) = torch.autograd.grad(output.sum(), layer.weight)
    assert gradient.shape == layer.weight.shape


def test_maps_of_one_weight_pack_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them is used first; one with another weight has its own."""
    made_of: list[int] = []

    def reorder(weight: Tensor) -> Tensor:
        made_of.append(weight.data_ptr())
        return weight.clone()

    monkeypatch.setattr(packed_linear, "AVAILABLE", True)
    monkeypatch.setattr(packed_linear, "reorder", reorder)
    layer, x = made(), given(2, 24)
    twins = [copy.deepcopy(layer, {id(layer.weight): layer.weight, id(layer.bias): layer.bias}) for _ in range(3)]
    other = copy.deepcopy(layer)
    first = twins[0].packed(x)
    assert first is not None and all(one.packed(x) is first for one in (*twins, layer))
    assert other.packed(x) is not first and layer.packed(x) is first
    assert made_of == [layer.weight.data_ptr(), other.weight.data_ptr()]
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert layer.packed(x) is None


def test_a_weight_that_changes_is_packed_anew() -> None:
    layer, x = made(), given(2, 24)
    layer(x)
    with torch.no_grad():
        layer.weight.mul_(3)
    torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias), **NEAR)
    layer.weight.requires_grad_(True)
    layer(x)
    layer.weight.data.mul_(0.1)  # as an optimiser does, unseen
    layer.weight.requires_grad_(False)
    torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias), **NEAR)


def test_a_copy_has_its_own() -> None:
    layer, x = made(), given(2, 24)
    before = layer(x)
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.weight.zero_()
    assert torch.equal(layer(x), before) and not torch.equal(other(x), before)


def test_the_same_arithmetic_is_counted() -> None:
    layer, x = made(), given(3, 5, 24).requires_grad_()
    plain = nn.Linear(24, 40, dtype=torch.bfloat16).requires_grad_(False)
    flops = [count_flops(lambda work=work: work(x).sum().backward())[1] for work in (layer, plain)]  # type: ignore[misc]
    assert flops[0] == flops[1] == 2 * 2 * 15 * 24 * 40


@pytest.mark.parametrize("hooked", [False, True])
def test_gelu_behind_it(hooked: bool) -> None:
    """Alone in one go; a hook on the map sees, and may change, what comes before GELU."""
    layer, x, seen = made(), given(2, 7, 24), []
    both = Widening(layer, nn.GELU())
    if hooked:
        layer.register_forward_hook(lambda site, args, output: seen.append(output) or output + 1)
    with torch.no_grad():
        expected = gelu(linear(x, layer.weight, layer.bias) + hooked)
        torch.testing.assert_close(both(x), expected, **NEAR)
    assert len(seen) == hooked
    torch.testing.assert_close(both(x), expected, **NEAR)


def test_every_map_of_a_network_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = open_backbone("tiny_text", precision="bf16")
    maps = [module for module in backbone.module.modules() if isinstance(module, nn.Linear)]
    assert maps and all(type(module) is LinearMap for module in maps)
    assert sum(isinstance(module, Widening) for module in backbone.module.modules()) == backbone.card.blocks
    names = [name for name, _ in backbone.module.named_parameters()]
    monkeypatch.setattr(packed_linear, "AVAILABLE", False)
    assert [name for name, _ in open_backbone("tiny_text", precision="bf16").module.named_parameters()] == names


def test_only_exact_gelu_is_joined() -> None:
    network = nn.ModuleDict({"up": nn.ModuleDict({"dense": nn.Linear(4, 8), "intermediate_act_fn": nn.ReLU()})})
    use_linear_maps(network)
    assert type(network["up"]) is nn.ModuleDict and type(network["up"]["dense"]) is LinearMap
