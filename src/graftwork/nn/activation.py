"""Activations by name, as used between two linear layers in adapters and heads of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import gelu, leaky_relu, silu

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_new": partial(gelu, approximate="tanh"),
    "leaky_relu": leaky_relu,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": silu,
    "tanh": torch.tanh,
}
