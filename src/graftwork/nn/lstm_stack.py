"""A stack of LSTM layers over token embeddings, left to right: the network of AWD-LSTM (Merity et al. 2017,
arXiv:1708.02182) and of ULMFiT (Howard & Ruder 2018, arXiv:1801.06146)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

State = tuple[Tensor, Tensor]  # each (S, H): what a layer gave last, and the content of its cells

EMBEDDING_RANGE = 0.1


@dataclass(frozen=True)
class AwdLstmShape:
    """What config.json says of the network."""

    vocab_size: int  # V
    embedding_size: int = 400
    hidden_size: int = 1152
    layers: int = 3
    max_length: int = 512  # T at most when it is read as a backbone; the network itself has no limit

    @property
    def widths(self) -> tuple[int, ...]:
        """(L + 1,) D at every depth: the last layer is as wide as the embeddings, so that they can be its decoder."""
        return (self.embedding_size, *[self.hidden_size] * (self.layers - 1), self.embedding_size)


class LstmLayer(nn.Module):
    """(S, T, D) -> (S, T, H), from left to right. The parameters are those of `nn.LSTM`, its gates in torch's order."""

    def __init__(self, entering: int, width: int):
        super().__init__()
        self.width = width
        self.weight_ih = nn.Parameter(torch.empty(4 * width, entering))
        self.weight_hh = nn.Parameter(torch.empty(4 * width, width))
        self.bias_ih = nn.Parameter(torch.empty(4 * width))
        self.bias_hh = nn.Parameter(torch.empty(4 * width))

    def forward(self, sequence: Tensor) -> Tensor:
        """From the zero state."""
        return self.run(sequence, self.start(sequence), self.weight_hh)[0]

    def start(self, sequence: Tensor) -> State:
        """The zero state of these sequences (S, T, D)."""
        zero = sequence.new_zeros(len(sequence), self.width)
        return zero, zero

    def run(self, sequence: Tensor, state: State, weight_hh: Tensor) -> tuple[Tensor, State]:
        """What leaves (S, T, H) and the state behind the last position; `weight_hh` is its own, or what is left of it.

        cuDNN wants to know beforehand whether there will be a gradient: that is what "training" means to it.
        """
        hidden, cell = (part[None] for part in state)
        weights = [self.weight_ih, weight_hh, self.bias_ih, self.bias_hh]
        output, hidden, cell = torch.lstm(
            sequence, (hidden, cell), weights, True, 1, 0.0, torch.is_grad_enabled(), False, True
        )
        return output, (hidden[0], cell[0])


class AwdLstm(nn.Module):
    """The network without a decoder; `layers` are the blocks."""

    def __init__(self, shape: AwdLstmShape):
        super().__init__()
        self.shape = shape
        widths = shape.widths
        self.embedding = nn.Embedding(shape.vocab_size, shape.embedding_size)
        self.layers = nn.ModuleList(LstmLayer(*pair) for pair in pairwise(widths))

    def draw(self, seed: int) -> None:
        """Fresh weights, uniform as Merity et al. draw them."""
        random = torch.Generator().manual_seed(seed)
        nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE, random)
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -(layer.width**-0.5), layer.width**-0.5, random)

    def forward(self, ids: Tensor) -> Tensor:
        """(S, T) -> (S, T, D)."""
        sequence: Tensor = self.embedding(ids)
        for layer in self.layers:
            sequence = layer(sequence)
        return sequence


def _flops(x: torch.Size, weight_ih: torch.Size, weight_hh: torch.Size, *others: Any, **options: Any) -> int:
    """2 FLOP per multiply-add of oneDNN's layer, one operator to torch: (T, S, D), (4H, D), (4H, H)."""
    return 2 * x[0] * x[1] * (weight_ih.numel() + weight_hh.numel())


def _flops_of_gradient(*shapes: Any, **options: Any) -> int:
    """As much for the inputs, and as much for the weights: the kernel always computes both."""
    return 2 * _flops(*shapes)


def _flops_of_cudnn(x: torch.Size, weights: list[torch.Size], *others: Any, **options: Any) -> int:
    """The same of cuDNN's."""
    return 2 * x[0] * x[1] * sum(weight.numel() for weight in weights if len(weight) == 2)


def _flops_of_cudnn_gradient(*shapes: Any, **options: Any) -> int:
    return 2 * _flops_of_cudnn(*shapes)


register_flop_formula(torch.ops.aten.mkldnn_rnn_layer)(_flops)
register_flop_formula(torch.ops.aten.mkldnn_rnn_layer_backward)(_flops_of_gradient)
register_flop_formula(torch.ops.aten._cudnn_rnn)(_flops_of_cudnn)
register_flop_formula(torch.ops.aten._cudnn_rnn_backward)(_flops_of_cudnn_gradient)
