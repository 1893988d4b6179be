"""Softmax over the rows of each example."""

from __future__ import annotations

import pytest
import torch

from graftwork.nn.segments import cross_entropy_of_segments, log_softmax_of_segments

OWNERS = torch.tensor([7, 7, 7, 2, 2, 9])


def test_each_segment_is_a_softmax_of_its_own() -> None:
    logits = torch.randn(6, 2, dtype=torch.float64)
    found = log_softmax_of_segments(logits, OWNERS)
    expected = torch.cat([part.log_softmax(dim=0) for part in (logits[:3], logits[3:5], logits[5:])])
    assert torch.allclose(found, expected)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert torch.allclose(log_softmax_of_segments(logits[order], OWNERS[order]), expected[order]), "rows in any order"


def test_nothing_overflows_and_the_gradient_is_that_of_softmax() -> None:
    logits = torch.tensor([1e4, -1e4, 0.0, 1e4, 1e4, -1e4], requires_grad=True)
    chosen = torch.tensor([False, True, False, True, False, True])
    loss = cross_entropy_of_segments(logits, chosen, OWNERS)
    assert float(loss.detach()) == pytest.approx((2e4 + torch.tensor(2.0).log() + 0) / 3)
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.allclose(logits.grad * 3, torch.tensor([1.0, -1.0, 0.0, -0.5, 0.5, 0.0]))


def test_segments_without_a_chosen_row() -> None:
    logits = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 5.0], requires_grad=True)
    chosen = torch.tensor([False, False, False, True, False, False])
    assert float(cross_entropy_of_segments(logits.detach(), chosen, OWNERS)) == pytest.approx(
        float(torch.tensor(2.0).log())
    )
    nothing = cross_entropy_of_segments(logits, torch.zeros(6, dtype=torch.bool), OWNERS)
    nothing.backward()  # type: ignore[no-untyped-call]
    assert float(nothing.detach()) == 0 and logits.grad is not None and not logits.grad.any()
    assert float(cross_entropy_of_segments(logits.detach()[:0], chosen[:0], OWNERS[:0])) == 0
