"""The network against a written-out LSTM, and its state carried from part to part."""

from __future__ import annotations

import math

import pytest
import torch

from graftwork.nn.lstm_stack import AwdLstm, AwdLstmShape, LstmLayer
from graftwork.train.flops import count_flops

SHAPE = AwdLstmShape(vocab_size=11, embedding_size=4, hidden_size=6)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def by_hand(layer: LstmLayer, sequence: list[list[float]]) -> list[list[float]]:
    """Hochreiter & Schmidhuber 1997 with forget gates, number by number: (T, D) -> (T, H)."""
    weights = (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
    of_input, of_hidden, bias, more = (weight.tolist() for weight in weights)
    width = layer.width
    hidden, cell, left = [0.0] * width, [0.0] * width, []
    for entering in sequence:
        gates = [
            sum(w * x for w, x in zip(of_input[row], entering, strict=True))
            + sum(w * h for w, h in zip(of_hidden[row], hidden, strict=True))
            + bias[row]
            + more[row]
            for row in range(4 * width)
        ]
        taken, kept, candidate, shown = (gates[part * width : (part + 1) * width] for part in range(4))
        for unit in range(width):
            cell[unit] = sigmoid(kept[unit]) * cell[unit] + sigmoid(taken[unit]) * math.tanh(candidate[unit])
        hidden = [sigmoid(shown[unit]) * math.tanh(cell[unit]) for unit in range(width)]
        left.append(hidden)
    return left


def network(seed: int = 0) -> AwdLstm:
    drawn = AwdLstm(SHAPE)
    drawn.draw(seed)
    return drawn


def test_it_computes_what_the_equations_say() -> None:
    drawn, ids = network(), torch.tensor([[1, 7, 7, 0, 10], [3, 2, 1, 9, 4]])
    with torch.no_grad():
        output = drawn(ids)
    for row, listed in enumerate(ids):
        states = drawn.embedding.weight[listed].tolist()
        for layer in drawn.layers:
            assert isinstance(layer, LstmLayer)
            states = by_hand(layer, states)
        torch.testing.assert_close(output[row], torch.tensor(states))
    assert output.shape == (2, 5, 4) and float(output.std()) > 1e-3


def test_a_state_is_carried() -> None:
    layer = network().layers[0]
    assert isinstance(layer, LstmLayer)
    sequence = torch.randn(3, 8, 4, generator=torch.Generator().manual_seed(0))
    whole, end = layer.run(sequence, layer.start(sequence), layer.weight_hh)
    first, between = layer.run(sequence[:, :5], layer.start(sequence), layer.weight_hh)
    second, last = layer.run(sequence[:, 5:], between, layer.weight_hh)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(last, end)
    torch.testing.assert_close(end[0], whole[:, -1])
    fresh = layer.run(sequence[:, 5:], layer.start(sequence), layer.weight_hh)[0]
    assert float((fresh - second).detach().abs().max()) > 1e-3


def test_weights_are_drawn_from_the_seed() -> None:
    one, same, other = network(1), network(1), network(2)
    for a, b, c in zip(one.parameters(), same.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)
    assert SHAPE.widths == (4, 6, 6, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_product_is_counted(dtype: torch.dtype) -> None:
    """The kernel is one operator to torch; a gradient takes twice the products of the pass forward.

    A processor without bf16 products has no kernel for bf16: torch's own steps take no gradient of the starting state.
    """
    drawn, ids = network().to(dtype), torch.zeros(3, 7, dtype=torch.int64)
    once = 2 * 3 * 7 * sum(w.numel() for name, w in drawn.named_parameters() if "layers" in name and w.dim() == 2)
    with torch.no_grad():
        assert count_flops(lambda: drawn(ids))[1] == once
    start = 2 * 3 * sum(w.numel() for name, w in drawn.named_parameters() if "weight_hh" in name)
    assert count_flops(lambda: drawn(ids).sum().backward())[1] in (3 * once, 3 * once - start)
