"""Losses towards a teacher against torch's cross entropy with soft targets."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from graftwork.nn.soft_targets import sigmoid_divergence, softmax_divergence


def drawn(seed: int) -> torch.Tensor:
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_softmax_divergence_is_cross_entropy_less_entropy() -> None:
    ours, theirs = drawn(0), drawn(1)
    soft = (theirs / 2).softmax(1)
    entropy = cross_entropy(theirs / 2, soft)
    assert float(softmax_divergence(ours, theirs, 2.0)) == pytest.approx(
        4 * float(cross_entropy(ours / 2, soft) - entropy)
    )


def test_sigmoid_divergence_is_binary_cross_entropy_less_entropy() -> None:
    ours, theirs = drawn(0), drawn(1)
    soft = (theirs / 2).sigmoid()
    apart = [float(binary_cross_entropy_with_logits(one / 2, soft)) for one in (ours, theirs)]
    assert float(sigmoid_divergence(ours, theirs, 2.0)) == pytest.approx(4 * (apart[0] - apart[1]))


@pytest.mark.parametrize("divergence", [softmax_divergence, sigmoid_divergence])
def test_temperature_leaves_the_size_of_the_gradient(divergence: object) -> None:
    sizes = []
    for temperature in (4.0, 16.0):
        ours = drawn(0).requires_grad_(True)
        divergence(ours, drawn(1), temperature).backward()  # type: ignore[operator]
        assert ours.grad is not None
        sizes.append(float(ours.grad.norm()))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.2)


@pytest.mark.parametrize("divergence", [softmax_divergence, sigmoid_divergence])
def test_no_rows_have_no_loss(divergence: object) -> None:
    assert float(divergence(drawn(0)[:0], drawn(1)[:0], 2.0)) == 0.0  # type: ignore[operator]
