"""Frozen bf16 linear layers on a CPU: oneDNN's own product, with weights packed once and the bias fused.

torch's `linear` copies the bias over the whole output and then adds the product to it, and converts the weight to the
product's layout every time. It is still used where oneDNN's cannot be (trained weights, fp32, an accelerator, a CPU
without bf16).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.flop_counter import register_flop_formula


def available() -> bool:
    """Return whether this build of torch and this CPU have the product."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise") and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


AVAILABLE = available()
GELUS = ("GELU", "GELUActivation")  # torch's class and transformers', whose import would take longer than all else


def reorder(weight: Tensor) -> Tensor:
    """Convert a weight (out, in) to the product's own layout."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    return packed


class PackedWeight:
    """A weight in the product's own layout, packed on first use, once for all layers that share the weight."""

    def __init__(self) -> None:
        self._made_of: tuple[int, int] | None = None
        self._tensor: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedWeight:
        """Return itself: layers that share the weight share this too; a copied weight has another address."""
        return self

    def of(self, weight: Tensor) -> Tensor | None:
        """Return the packed weight; None if it was packed from another weight, or from this one before a change."""
        if self._made_of is None:
            self._tensor = reorder(weight.detach())
            self._made_of = (weight.data_ptr(), weight._version)
        return self._tensor if self._made_of == (weight.data_ptr(), weight._version) else None


class Product(torch.autograd.Function):
    """x Wᵀ + b with a gradient for x only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, packed: Tensor) -> Tensor:
        """Map (…, in), (out, in), (out,) and the packed weight to (…, out)."""
        ctx.save_for_backward(weight)
        return product(x, packed, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of x."""
        (weight,) = ctx.saved_tensors
        of_x = torch.mm(gradient.flatten(0, -2), weight)  # (N, in)
        return of_x.view(*gradient.shape[:-1], -1), None, None, None


def product(x: Tensor, packed: Tensor, bias: Tensor | None, gelu: bool = False) -> Tensor:
    """Apply a packed weight, (…, in) -> (…, out), followed by GELU (erf) if `gelu`."""
    behind, how = ("gelu", "none") if gelu else ("none", "")
    output: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, behind, [], how)
    return output


class LinearMap(nn.Linear):
    """An `nn.Linear` that uses `Product` when frozen and supported; its weight is packed on first use."""

    def __init__(self, plain: nn.Linear):
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias = plain.weight, plain.bias
        self._packed = PackedWeight()

    def forward(self, input: Tensor) -> Tensor:
        """Map (…, in) to (…, out)."""
        packed = self.packed(input)
        if packed is None:
            return linear(input, self.weight, self.bias)
        output: Tensor = Product.apply(input, self.weight, self.bias, packed)  # type: ignore[no-untyped-call]
        return output

    def pack_with(self, other: nn.Module) -> None:
        """Share the packed weight of another layer of the same weight."""
        if isinstance(other, LinearMap):
            self._packed = other._packed

    def packed(self, input: Tensor) -> Tensor | None:
        """Return the packed weight; None if the product is unsupported or the layer is trained."""
        weight, bias = self.weight, self.bias
        if weight.requires_grad or (bias is not None and bias.requires_grad):
            self._packed = PackedWeight()  # an optimiser may change the weight undetected
            return None
        there = AVAILABLE and torch.backends.mkldnn.enabled and input.device.type == "cpu"
        if not there or not (input.dtype == weight.dtype == torch.bfloat16):
            return None
        found = self._packed.of(weight)
        if found is None:
            self._packed = PackedWeight()
            found = self._packed.of(weight)
        return found


class Widening(nn.Module):
    """The first half of BERT's feed-forward part, under its names: a linear layer and GELU, fused without gradients.

    They are not fused if the layer has hooks, which need its own output.
    """

    def __init__(self, dense: LinearMap, activation: nn.Module):
        super().__init__()
        self.dense, self.intermediate_act_fn = dense, activation

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Map (S, T, D) to (S, T, inner width)."""
        alone = torch.is_grad_enabled() or self.dense._forward_hooks
        packed = None if alone else self.dense.packed(hidden_states)
        if packed is not None:
            return product(hidden_states, packed, self.dense.bias, gelu=True)
        wide: Tensor = self.intermediate_act_fn(self.dense(hidden_states))
        return wide


def use_linear_maps(network: nn.Module) -> None:
    """Replace every `nn.Linear` in `network` by a `LinearMap` of the same parameters, and fuse BERT's GELU."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, LinearMap(child).train(child.training))
    for module in list(network.modules()):
        for name, child in module.named_children():
            parts = dict(child.named_children())
            if parts.keys() != {"dense", "intermediate_act_fn"}:
                continue
            dense, activation = parts["dense"], parts["intermediate_act_fn"]
            if type(dense) is LinearMap and type(activation).__name__ in GELUS:
                setattr(module, name, Widening(dense, activation).train(child.training))


def _flops(x: torch.Size, weight: torch.Size, *others: Any, **options: Any) -> int:
    """Return the FLOPs, 2 per multiply-add, of (…, in) and (out, in)."""
    return 2 * x.numel() * weight[0]


if AVAILABLE:  # builds of torch for other processors lack the operator
    register_flop_formula(torch.ops.mkldnn._linear_pointwise)(_flops)
