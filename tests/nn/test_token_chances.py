"""Log-probabilities of tokens and their gradient are those of PyTorch's cross entropy."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from graftwork.nn.token_chances import ROWS_AT_ONCE, token_chances

NOTHING = -100


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradient_are_those_of_cross_entropy(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(0)
    rows = ROWS_AT_ONCE + 3  # a full part and one of three rows
    logits = (3 * torch.randn(rows, 11, generator=random)).to(dtype)
    tokens = torch.randint(0, 11, (rows,), generator=random).masked_fill(torch.arange(rows) % 5 == 0, NOTHING)
    weights = torch.rand(rows, generator=random)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    found = token_chances(ours, tokens, NOTHING)
    expected = -cross_entropy(theirs.float(), tokens, ignore_index=NOTHING, reduction="none")
    torch.testing.assert_close(found, expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert ours.grad is not None and ours.grad.dtype == dtype
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_the_gradient_in_double_precision_is_that_of_differences() -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    tokens = torch.tensor([0, 4, NOTHING, 2])
    assert torch.autograd.gradcheck(lambda one: token_chances(one, tokens, NOTHING), (logits,), eps=1e-3, atol=1e-2)
