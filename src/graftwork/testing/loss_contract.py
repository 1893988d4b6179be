"""The contract of a kind's loss: finite, lower when right, and the same for a batch that is computed in parts."""

from __future__ import annotations

import torch
from torch import Tensor

from graftwork.core.kind import Kind
from graftwork.core.ragged import Numbers, flat
from graftwork.testing.require import require


def check_finite_loss(kind: Kind, right: Tensor, targets: Tensor) -> None:
    """Check that the loss is finite on extreme logits, and lower where they are `right`. Raises `AssertionError`."""
    for factor in (1.0, -1.0, 1e3, -1e3):
        logits = (right * factor).requires_grad_(True)
        value = kind.loss(logits, targets)
        value.backward()
        finite = bool(value.isfinite()) and logits.grad is not None and bool(logits.grad.isfinite().all())
        require(value.ndim == 0 and finite, f"the loss or its gradient is not finite at logits times {factor}")
    require(float(kind.loss(right, targets)) < float(kind.loss(-right, targets)), "the loss is higher where right")


def check_parts(kind: Kind, encoded: Numbers, outputs: int) -> None:
    """Check that the loss of all examples is the weighted loss of any two parts of them. Raises `AssertionError`."""
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(len(flat(encoded)), outputs, generator=draw, dtype=torch.float64)
    targets = torch.from_numpy(flat(encoded))
    targets = targets.double() if targets.is_floating_point() else targets
    for examples in range(1, len(encoded)):
        rows = len(flat(encoded[:examples]))
        parts = [(logits[:rows], targets[:rows]), (logits[rows:], targets[rows:])]
        weights = [kind.weight(part) for _, part in parts]
        sums = sum(weight * kind.loss(*part) for weight, part in zip(weights, parts, strict=True))
        whole = kind.weight(targets) * kind.loss(logits, targets)
        require(
            sum(weights) == kind.weight(targets), f"the weights of parts are {weights}, of all {kind.weight(targets)}"
        )
        require(bool(torch.isclose(torch.as_tensor(sums), whole)), "the losses of parts do not add up by their weights")
