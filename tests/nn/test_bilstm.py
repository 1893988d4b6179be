"""A layer of two directions: against torch's own LSTM where nothing is clipped, and what it remembers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from graftwork.nn.bilstm import BiLSTM, LSTMShape, Places

P, C = 3, 5
MASK = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [True] + [False] * 5])  # (3, 6)


def layer(cell_clip: float = 0.0, projection_clip: float = 0.0, skip: bool = False) -> BiLSTM:
    torch.manual_seed(0)
    made = BiLSTM(LSTMShape(P, C, cell_clip, projection_clip), skip)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.requires_grad_(False)


def sequence() -> Tensor:
    return torch.randn(*MASK.shape, 2 * P, generator=torch.Generator().manual_seed(1))


def by_torch(made: BiLSTM, side: int, read: Tensor) -> Tensor:
    """(T, P) -> (T, P)."""
    own = nn.LSTM(P, C, proj_size=P, batch_first=True)
    weights = (made.input[side], made.recurrent[side], made.bias[side], torch.zeros(4 * C), made.projection[side])
    with torch.no_grad():
        for parameter, weight in zip(own.parameters(), weights, strict=True):
            parameter.copy_(weight)
        left: Tensor = own(read[None])[0][0]
    return left


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_each_direction_is_torchs_lstm() -> None:
    made, read = layer(), sequence()
    left = made(read, Places.of(MASK))
    for row, length in enumerate(MASK.sum(dim=1).tolist()):
        forward = by_torch(made, 0, read[row, :length, :P])
        backward = by_torch(made, 1, read[row, :length, P:].flip(0)).flip(0)
        torch.testing.assert_close(left[row, :length], torch.cat([forward, backward], dim=1))


@pytest.mark.parametrize("clips", [(0.2, 0.0), (0.0, 0.2)])
def test_clipping_bounds_what_it_clips(clips: tuple[float, float]) -> None:
    read, places = sequence(), Places.of(MASK)
    clipped, free = layer(*clips), layer()
    left, state = clipped.resume(read, places, clipped.zero(read))
    other, beyond = free.resume(read, places, free.zero(read))
    bounded, unbounded = (state.cell, beyond.cell) if clips[0] else (left, other)
    assert float(bounded.abs().max()) == pytest.approx(0.2)
    assert float(unbounded.abs().max()) > 0.5


def test_skipping_adds_what_entered() -> None:
    read, places = sequence(), Places.of(MASK)
    torch.testing.assert_close(layer(skip=True)(read, places), layer()(read, places) + read)


def test_the_directions_do_not_see_each_other() -> None:
    made, read, places = layer(), sequence(), Places.of(MASK)
    left, other = made(read, places), read.clone()
    other[0, 3] += 1.0
    changed = (made(other, places) != left).any(dim=2)  # (S, T)
    forward = (made(other, places) != left)[:, :, :P].any(dim=2)
    assert forward[0].tolist() == [False] * 3 + [True] * 3
    assert changed[0].tolist() == [True] * 6  # by the other direction
    assert not changed[1:].any()


def test_going_on_is_reading_in_one_go() -> None:
    made, read = layer(), sequence()
    mask = torch.ones(3, 6, dtype=torch.bool)
    whole, _ = made.resume(read, Places.of(mask), made.zero(read))
    first, state = made.resume(read[:, :2], Places.of(mask[:, :2]), made.zero(read))
    second, _ = made.resume(read[:, 2:], Places.of(mask[:, 2:]), state)
    torch.testing.assert_close(torch.cat([first, second], dim=1)[:, :, :P], whole[:, :, :P])


def test_a_row_that_has_ended_keeps_its_state() -> None:
    made, read = layer(), sequence()
    _, state = made.resume(read, Places.of(MASK), made.zero(read))
    _, alone = made.resume(read[2:, :1], Places.of(MASK[2:, :1]), made.zero(read[2:]))
    torch.testing.assert_close(state.cell[:, 2:], alone.cell)
    torch.testing.assert_close(state.hidden[:, 2:], alone.hidden)


def test_cells_stay_in_fp32() -> None:
    made, read = layer().bfloat16(), sequence().bfloat16()
    left, state = made.resume(read, Places.of(MASK), made.zero(read))
    assert (left.dtype, state.cell.dtype) == (torch.bfloat16, torch.float32)
