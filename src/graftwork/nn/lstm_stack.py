"""A stack of LSTM layers over token embeddings, left to right: the network of AWD-LSTM (Merity et al. 2017,
arXiv:1708.02182) and of ULMFiT (Howard & Ruder 2018, arXiv:1801.06146)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

State = tuple[Tensor, Tensor]  # each (S, H): the last hidden state of a layer, and its cell state

EMBEDDING_RANGE = 0.1


@dataclass(frozen=True)
class AwdLstmShape:
    """The sizes of the network, as in config.json."""

    vocab_size: int  # V
    embedding_size: int = 400
    hidden_size: int = 1152
    layers: int = 3
    max_length: int = 512  # T at most when used as a backbone; the network itself has no limit

    @property
    def widths(self) -> tuple[int, ...]:
        """(L + 1,) D at every depth: the last layer is as wide as the embeddings, so that they can be the decoder."""
        return (self.embedding_size, *[self.hidden_size] * (self.layers - 1), self.embedding_size)


class LstmLayer(nn.Module):
    """A left-to-right LSTM layer, (S, T, D) -> (S, T, H), with `nn.LSTM`'s parameters and torch's gate order."""

    def __init__(self, entering: int, width: int):
        super().__init__()
        self.width = width
        self.weight_ih = nn.Parameter(torch.empty(4 * width, entering))
        self.weight_hh = nn.Parameter(torch.empty(4 * width, width))
        self.bias_ih = nn.Parameter(torch.empty(4 * width))
        self.bias_hh = nn.Parameter(torch.empty(4 * width))

    def forward(self, sequence: Tensor) -> Tensor:
        """Run from the zero state; (S, T, D) -> (S, T, H)."""
        return self.run(sequence, self.start(sequence), self.weight_hh)[0]

    def start(self, sequence: Tensor) -> State:
        """Return the zero state for these sequences (S, T, D)."""
        zero = sequence.new_zeros(len(sequence), self.width)
        return zero, zero

    def run(self, sequence: Tensor, state: State, weight_hh: Tensor) -> tuple[Tensor, State]:
        """Return the outputs (S, T, H) and the last state; `weight_hh` is the layer's own, or a masked version of it.

        cuDNN needs to know beforehand whether there will be a gradient: its "training" flag means that.
        """
        hidden, cell = (part[None] for part in state)
        weights = [self.weight_ih, weight_hh, self.bias_ih, self.bias_hh]
        output, hidden, cell = torch.lstm(
            sequence, (hidden, cell), weights, True, 1, 0.0, torch.is_grad_enabled(), False, True
        )
        return output, (hidden[0], cell[0])


class AwdLstm(nn.Module):
    """The AWD-LSTM network without a decoder; `layers` are the blocks."""

    def __init__(self, shape: AwdLstmShape):
        super().__init__()
        self.shape = shape
        widths = shape.widths
        self.embedding = nn.Embedding(shape.vocab_size, shape.embedding_size)
        self.layers = nn.ModuleList(LstmLayer(*pair) for pair in pairwise(widths))

    def draw(self, seed: int) -> None:
        """Draw fresh weights, uniform as in Merity et al."""
        random = torch.Generator().manual_seed(seed)
        nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE, random)
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -(layer.width**-0.5), layer.width**-0.5, random)

    def forward(self, ids: Tensor) -> Tensor:
        """Map token ids (S, T) to states (S, T, D)."""
        sequence: Tensor = self.embedding(ids)
        for layer in self.layers:
            sequence = layer(sequence)
        return sequence


def _flops(x: torch.Size, weight_ih: torch.Size, weight_hh: torch.Size, *others: Any, **options: Any) -> int:
    """Return the FLOPs, 2 per multiply-add, of oneDNN's fused layer: (T, S, D), (4H, D), (4H, H)."""
    return 2 * x[0] * x[1] * (weight_ih.numel() + weight_hh.numel())


def _flops_of_gradient(*shapes: Any, **options: Any) -> int:
    """Return the FLOPs of the gradients of inputs and weights: the kernel always computes both."""
    return 2 * _flops(*shapes)


def _flops_of_cudnn(x: torch.Size, weights: list[torch.Size], *others: Any, **options: Any) -> int:
    """Return the FLOPs of cuDNN's fused layer."""
    return 2 * x[0] * x[1] * sum(weight.numel() for weight in weights if len(weight) == 2)


def _flops_of_cudnn_gradient(*shapes: Any, **options: Any) -> int:
    return 2 * _flops_of_cudnn(*shapes)


register_flop_formula(torch.ops.aten.mkldnn_rnn_layer)(_flops)
register_flop_formula(torch.ops.aten.mkldnn_rnn_layer_backward)(_flops_of_gradient)
register_flop_formula(torch.ops.aten._cudnn_rnn)(_flops_of_cudnn)
register_flop_formula(torch.ops.aten._cudnn_rnn_backward)(_flops_of_cudnn_gradient)
