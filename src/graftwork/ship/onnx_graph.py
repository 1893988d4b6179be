"""A task's network as one ONNX graph: from tokens to logits, with any number of rows of any length."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor, nn

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.hidden_states import BatchStates
from graftwork.core.method import ReadsStates
from graftwork.errors import ConfigError
from graftwork.nn.tracing import tracing_context
from graftwork.train.answer import states_up_to

OPSET = 20  # the lowest that has GELU as one operator
MOST_BYTES = 1_900_000_000  # of weights: protobuf holds at most 2 GB in a file
ROWS, LENGTH, ANSWERS = "rows", "length", "answers"  # names of the free dimensions


class TracedTask(nn.Module):
    """The network of a task as a function of the tensors `names`, in order: logits (B, C), or (W, C) of words."""

    def __init__(self, fitted: ReadsStates, backbone: Backbone, towers: int, names: Sequence[str]):
        super().__init__()
        self.fitted, self.backbone, self.towers, self.names = fitted, backbone, towers, tuple(names)
        own = [value for value in vars(fitted).values() if isinstance(value, nn.Module)]
        self.parts = nn.ModuleList([*own, backbone.module])  # registered, so that their weights become the graph's

    def forward(self, *tensors: Tensor) -> Tensor:
        """Compute the logits from inputs (S, T)."""
        inputs = dict(zip(self.names, tensors, strict=True))
        depth = self.fitted.depth
        states = () if depth is None else states_up_to(self.backbone, inputs, depth, self.towers)
        return self.fitted.read(BatchStates(self.backbone, inputs, states, self.towers))


def write_graph(
    network: nn.Module,
    inputs: Inputs,
    outputs: Mapping[str, Sequence[str]],
    path: Path,
    others: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write `network` as an ONNX graph, traced on `inputs`, of which only the rows and the length may vary later.

    `outputs` maps each output, in order, to the names of its leading dimensions that may vary; `others` does so for
    inputs in which other dimensions than rows and length vary. Raises `ConfigError` where the network computes
    something that ONNX has no operator for.
    """
    free = {name: {0: ROWS, 1: LENGTH} for name in inputs}
    free |= {name: dict(enumerate(dimensions)) for name, dimensions in [*outputs.items(), *(others or {}).items()]}
    quiet = patch.object(torch._C, "_jit_onnx_log", lambda *graph: None)  # torch prints a graph that it can't write
    with torch.no_grad(), tracing_context(), warnings.catch_warnings(), quiet:
        warnings.simplefilter("ignore")  # about shapes taken as constants: the comparison of logits finds wrong ones
        try:
            torch.onnx.export(
                network.eval(),
                tuple(inputs.values()),
                str(path),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_axes=free,
                opset_version=OPSET,
                dynamo=False,  # the other exporter takes three times as long, and can't look at the values of constants
            )
        except (RuntimeError, TypeError, ValueError) as error:
            raise ConfigError(
                "this network can't be written as an ONNX graph",
                got=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
                do="export a task on another backbone, or serve this one with `graft serve`",
            ) from error


def numbers_of(network: nn.Module) -> int:
    """Return the number of weights, shared ones counted once."""
    return sum(one.numel() for one in {id(one): one for one in network.parameters()}.values())


def quantized(source: Path, target: Path, reduce_range: bool) -> None:
    """Write the graph with weights as 8-bit integers, per channel; activations are quantised when it runs."""
    import logging

    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)  # it recommends another tool of its own
    try:
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=reduce_range)
    finally:
        logging.disable(logging.NOTSET)
