"""NT-ASGD against torch's own averaged SGD, when it begins, and what a checkpoint holds."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from graftwork.pretrain.nt_asgd import PATIENCE, NtAsgd
from graftwork.pretrain.objective import Averages

RATE, DECAY = 0.3, 0.01
WORSE = [3.0, *[2.0] * PATIENCE, 3.5]  # the last is worse than the first, which is more than `PATIENCE` before it


def weights() -> dict[str, nn.Parameter]:
    draw = torch.Generator().manual_seed(0)
    return {name: nn.Parameter(torch.randn(3, 2, generator=draw)) for name in ("low", "high")}


def moved(optimiser: NtAsgd, steps: int, draw: torch.Generator) -> None:
    for _ in range(steps):
        for weight in optimiser.parameters.values():
            weight.grad = torch.randn(weight.shape, generator=draw)
        optimiser.step(1.0)


def copies(optimiser: NtAsgd) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in optimiser.parameters.items()}


def test_it_averages_as_torch_does() -> None:
    """Whose average leaves out the first step."""
    ours, theirs = NtAsgd(weights(), RATE, DECAY, math.inf, {}), weights()
    torchs = torch.optim.ASGD(theirs.values(), lr=RATE, lambd=0.0, t0=0.0, weight_decay=DECAY)
    draw = torch.Generator().manual_seed(1)
    for _ in range(7):
        for weight in theirs.values():
            weight.grad = torch.randn(weight.shape, generator=draw)
        torchs.step()
    draw = torch.Generator().manual_seed(1)
    moved(ours, 1, draw)
    for nats in WORSE:
        ours.validated(nats)
    moved(ours, 6, draw)
    for name, weight in theirs.items():
        torch.testing.assert_close(ours.parameters[name], weight)
        torch.testing.assert_close(ours.averages[name], torchs.state[weight]["ax"])


def test_the_answer_is_the_average_and_learning_goes_on_from_the_weights() -> None:
    optimiser = NtAsgd(weights(), RATE, 0.0, 1.0, {})
    assert isinstance(optimiser, Averages)
    draw = torch.Generator().manual_seed(1)
    moved(optimiser, 2, draw)
    before = copies(optimiser)
    with optimiser.answering():
        assert all(torch.equal(before[name], weight) for name, weight in optimiser.parameters.items())
    for nats in WORSE:
        optimiser.validated(nats)
    seen = []
    for _ in range(3):
        moved(optimiser, 1, draw)
        seen.append(copies(optimiser))
    with optimiser.answering():
        for name, weight in optimiser.parameters.items():
            torch.testing.assert_close(weight.detach(), torch.stack([each[name] for each in seen]).mean(dim=0))
    assert all(torch.equal(seen[-1][name], weight) for name, weight in optimiser.parameters.items())


@pytest.mark.parametrize(
    ("validations", "begins"),
    [
        (WORSE, True),
        (WORSE[:-1], False),  # the last is as good as the best
        ([2.0, *WORSE[1:]], True),
        ([3.0, 9.0, 9.0, 9.0, 9.0, 9.0], False),  # worse, but than none that is long enough ago
        ([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0], False),
    ],
)
def test_averaging_begins_when_validation_no_longer_gets_better(validations: list[float], begins: bool) -> None:
    optimiser = NtAsgd(weights(), RATE, 0.0, 1.0, {})
    for nats in validations:
        optimiser.validated(nats)
    assert bool(optimiser.averages) == begins


def test_gradients_are_cut_and_rates_differ() -> None:
    optimiser = NtAsgd(weights(), RATE, 0.0, 0.5, {"low": 0.1})
    before = copies(optimiser)
    for weight in optimiser.parameters.values():
        weight.grad = torch.ones(3, 2)
    norm = optimiser.step(0.5)
    assert norm == pytest.approx(math.sqrt(12))
    for name, share in (("low", 0.1), ("high", 1.0)):
        expected = before[name] - RATE * 0.5 * share * 0.5 / math.sqrt(12)
        torch.testing.assert_close(optimiser.parameters[name].detach(), expected)


def test_a_gradient_that_is_no_number_moves_nothing() -> None:
    optimiser = NtAsgd(weights(), RATE, 0.0, 0.5, {})
    before = copies(optimiser)
    for weight in optimiser.parameters.values():
        weight.grad = torch.full((3, 2), torch.nan)
    assert math.isnan(optimiser.step(1.0))
    assert all(torch.equal(before[name], weight) for name, weight in optimiser.parameters.items())


@pytest.mark.parametrize("averaging", [False, True])
def test_it_goes_on_from_a_checkpoint_bit_for_bit(averaging: bool) -> None:
    one = NtAsgd(weights(), RATE, DECAY, 1.0, {})
    for nats in WORSE if averaging else WORSE[:3]:
        one.validated(nats)
    moved(one, 3, torch.Generator().manual_seed(1))
    other = NtAsgd(weights(), RATE, DECAY, 1.0, {})
    with torch.no_grad():
        for name, weight in copies(one).items():
            other.parameters[name].copy_(weight)
    other.restore({name: tensor.clone() for name, tensor in one.tensors().items()})
    for optimiser in (one, other):
        optimiser.validated(9.0)
        moved(optimiser, 3, torch.Generator().manual_seed(5))
    assert one.tensors().keys() == other.tensors().keys()
    for name, tensor in one.tensors().items():
        assert torch.equal(tensor, other.tensors()[name]), name
    for name, weight in one.parameters.items():
        assert torch.equal(weight, other.parameters[name])
