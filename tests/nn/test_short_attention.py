"""The short softmax against torch's own: values, gradients, padding, scores out of exp's range."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from graftwork.nn.short_attention import SAFE, ShortAttention, attend, register_key_hook, visible_keys

S, H, T, D = 3, 2, 7, 4


def tensors(size: float = 1.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    random = torch.Generator().manual_seed(0)
    drawn = [torch.randn(S, H, T, D, generator=random, dtype=torch.float64) * size for _ in range(3)]
    return [tensor.to(dtype).requires_grad_() for tensor in drawn]


def real_keys() -> Tensor:
    real = torch.ones(S, T, dtype=torch.bool)
    real[1, -3:], real[2, :2] = False, False  # padding on the right, and on the left
    return real


def plain(query: Tensor, key: Tensor, value: Tensor, real: Tensor | None, scale: float) -> Tensor:
    scores = query @ key.transpose(-1, -2) * scale
    if real is not None:
        scores = scores.masked_fill(~real[:, None, None, :], -torch.inf)
    return scores.softmax(dim=-1) @ value


@pytest.mark.parametrize("real", [None, real_keys()], ids=["no padding", "padding"])
@pytest.mark.parametrize("size", [1.0, 30.0], ids=["usual scores", "scores beyond exp"])
def test_values_and_gradients_are_those_of_a_softmax(real: Tensor | None, size: float) -> None:
    inputs = tensors(size)
    largest = (inputs[0] @ inputs[1].transpose(-1, -2)).abs().max()
    assert (largest > SAFE) == (size > 1)
    ours, theirs = ShortAttention.apply(*inputs, real, 0.5), plain(*inputs, real, 0.5)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours, theirs)
    weight = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).view_as(ours)
    for own, other in zip(
        torch.autograd.grad((ours * weight).sum(), inputs),
        torch.autograd.grad((theirs * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(own, other)


def test_the_gradient_is_the_numeric_one() -> None:
    assert torch.autograd.gradcheck(lambda q, k, v: ShortAttention.apply(q, k, v, real_keys(), 0.5), tensors())


def test_there_may_be_more_keys_than_queries() -> None:
    query, key, value = tensors()
    fewer = query[:, :, :3].detach().requires_grad_()
    found = ShortAttention.apply(fewer, key, value, real_keys(), 0.5)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, plain(fewer, key, value, real_keys(), 0.5))
    assert torch.autograd.gradcheck(lambda *of: ShortAttention.apply(*of, real_keys(), 0.5), (fewer, key, value))


def test_padded_keys_change_nothing() -> None:
    query, key, value = tensors()
    real = real_keys()
    before = ShortAttention.apply(query, key, value, real, 0.5)  # type: ignore[no-untyped-call]
    noise = torch.where(real, 0.0, 5.0)[:, None, :, None]
    after = ShortAttention.apply(query, key + noise, value + noise, real, 0.5)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(before, after)


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    query, key, value = tensors()
    output = ShortAttention.apply(query, key.detach(), value.detach(), None, 0.5)  # type: ignore[no-untyped-call]
    output.sum().backward()
    assert query.grad is not None and key.grad is None and value.grad is None


def test_in_bf16_it_is_as_near_to_fp64_as_a_softmax_is() -> None:
    exact = plain(*tensors(), real_keys(), 0.5)
    half = tensors(dtype=torch.bfloat16)
    usual = plain(*half, real_keys(), 0.5).double()
    ours = ShortAttention.apply(*half, real_keys(), 0.5).double()  # type: ignore[no-untyped-call]
    assert (ours - exact).abs().max() < 1.5 * (usual - exact).abs().max() < 0.05


@pytest.mark.parametrize("causal", [False, True])
def test_any_mask_is_attended_through(causal: bool) -> None:
    query, key, value = tensors()
    mask = real_keys()[:, None, None, :].expand(S, 1, T, T)
    if causal:
        mask = mask & torch.ones(T, T, dtype=torch.bool).tril() | torch.eye(T, dtype=torch.bool)
    scores = (query @ key.transpose(-1, -2) * 0.5).masked_fill(~mask, -torch.inf)
    output, weights = attend(nn.Identity(), query, key, value, mask, scaling=0.5)
    torch.testing.assert_close(output, (scores.softmax(-1) @ value).transpose(1, 2))
    assert weights is None and output.is_contiguous()


def test_a_mask_of_padding_is_a_view() -> None:
    from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

    sizes = {"batch_size": S, "q_length": T, "kv_length": T, "attention_mask": real_keys()}
    mask = visible_keys(**sizes, mask_function=bidirectional_mask_function)
    assert mask is not None and mask.stride(2) == 0 and torch.equal(mask[:, 0, 0], real_keys())
    causal = visible_keys(**sizes, mask_function=causal_mask_function)
    assert causal is not None and causal.stride(2) != 0
    whole = {**sizes, "attention_mask": torch.ones(S, T, dtype=torch.bool)}
    assert visible_keys(**whole, mask_function=bidirectional_mask_function, allow_is_bidirectional_skip=True) is None


class Before:
    """Puts the first two keys, raised, and values before all."""

    def __call__(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([key[:, :, :2] + 1, key], dim=2), torch.cat([value[:, :, :2] - 1, value], dim=2)


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
def test_what_a_hook_puts_before_the_keys_is_seen_by_every_query(mask: str) -> None:
    query, key, value = tensors()
    seen = None if mask == "none" else real_keys()[:, None, None, :].expand(S, 1, T, T)
    if mask == "causal":
        assert seen is not None
        seen = seen & torch.ones(T, T, dtype=torch.bool).tril() | torch.eye(T, dtype=torch.bool)
    module = nn.Identity()
    before = attend(module, query, key, value, seen)[0]
    handle = register_key_hook(module, Before())
    found, twin = attend(module, query, key, value, seen)[0], copy.deepcopy(module)
    scores = query @ Before()(key, value)[0].transpose(-1, -2) * D**-0.5
    if seen is not None:
        scores = scores.masked_fill(~torch.cat([torch.ones(S, 1, T, 2, dtype=torch.bool), seen], dim=3), -torch.inf)
    torch.testing.assert_close(found, (scores.softmax(-1) @ Before()(key, value)[1]).transpose(1, 2))
    handle.remove()
    assert torch.equal(attend(module, query, key, value, seen)[0], before)
    assert torch.equal(attend(twin, query, key, value, seen)[0], found), "a copy has hooks of its own"


def test_a_mask_of_padding_stays_one_for_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nn.Identity()
    register_key_hook(module, Before())
    monkeypatch.setattr(Tensor, "softmax", None)  # of the path for masks that differ between queries
    found, _ = attend(module, *tensors(), real_keys()[:, None, None, :].expand(S, 1, T, T))
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("padded", [False, True])
def test_a_bias_of_positions_is_added_and_that_of_keys_in_front_is_none(padded: bool) -> None:
    query, key, value = tensors()
    bias = torch.randn(1, H, T, T, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    seen = real_keys()[:, None, None, :].expand(S, 1, T, T) if padded else None
    module = nn.Identity()
    register_key_hook(module, Before())
    found, _ = attend(module, query, key, value, seen, scaling=1.0, position_bias=bias)
    keys, values = Before()(key, value)
    scores = query @ keys.transpose(-1, -2) + torch.cat([torch.zeros_like(bias[..., :2]), bias], dim=3)
    if seen is not None:
        scores = scores.masked_fill(~torch.cat([torch.ones(S, 1, T, 2, dtype=torch.bool), seen], dim=3), -torch.inf)
    torch.testing.assert_close(found, (scores.softmax(-1) @ values).transpose(1, 2))
