"""The loss in parts against torch's in one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from graftwork.nn import token_loss as module
from graftwork.nn.token_loss import token_loss
from graftwork.train.flops import count_flops

TOKENS, WIDTH, VOCABULARY = 23, 6, 17


def given(dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((TOKENS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY,))
    tensors = [torch.randn(shape, generator=draw).requires_grad_() for shape in shapes]
    tensors[0] = tensors[0].detach().to(dtype).requires_grad_()
    return tensors, torch.randint(VOCABULARY, (TOKENS,), generator=draw)


@pytest.mark.parametrize("at_once", [1, 5 * VOCABULARY, 1 << 20])
def test_it_is_torchs_loss_with_its_gradient(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", at_once)
    tensors, targets = given()
    loss = token_loss(*tensors, targets)
    found = torch.autograd.grad(3 * loss, tensors)
    x, weight, bias = tensors
    expected = cross_entropy(linear(x, weight, bias), targets, reduction="sum")
    torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(found, torch.autograd.grad(3 * expected, tensors), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_states_in_bf16_move_fp32_weights() -> None:
    tensors, targets = given(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = token_loss(*tensors, targets)
    of_x, of_weight, of_bias = torch.autograd.grad(loss, tensors)
    assert (loss.dtype, of_x.dtype, of_weight.dtype) == (torch.float32, torch.bfloat16, torch.float32)
    exact = [tensor.detach().float().requires_grad_() for tensor in tensors]
    expected = cross_entropy(linear(*exact), targets, reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), rel=0.01)
    for ours, theirs in zip((of_x, of_weight, of_bias), torch.autograd.grad(expected, exact), strict=True):
        torch.testing.assert_close(ours.float(), theirs, atol=0.05, rtol=0.05)


def test_large_logits_stay_numbers() -> None:
    tensors, targets = given()
    x, weight, bias = (100 * tensor.detach() for tensor in tensors)
    loss = token_loss(x, weight, bias, targets)
    torch.testing.assert_close(loss, cross_entropy(linear(x, weight, bias), targets, reduction="sum"))
    assert bool(loss.isfinite())


def test_only_what_learns_is_computed() -> None:
    """Three products with a gradient, one without."""
    tensors, targets = given()
    product = 2 * TOKENS * WIDTH * VOCABULARY
    with torch.no_grad():
        assert count_flops(lambda: token_loss(*tensors, targets))[1] == product
    assert count_flops(lambda: token_loss(*tensors, targets).backward())[1] == 3 * product  # type: ignore[no-untyped-call]
