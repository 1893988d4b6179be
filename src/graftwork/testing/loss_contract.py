"""The contract of a kind's losses: finite, lower when right, and the same for a batch that is computed in parts."""

from __future__ import annotations

import torch
from torch import Tensor

from graftwork.core.kind import Kind, LearnsFromLogits
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
    """Check that the losses of two parts of a batch, weighted, add up to its own. Raises `AssertionError`."""
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


def check_teaching(kind: Kind, right: Tensor) -> None:
    """Check the distillation loss, if the kind has one; `right` are a teacher's logits. Raises `AssertionError`."""
    if not isinstance(kind, LearnsFromLogits):
        return
    for temperature in (0.5, 1.0, 4.0):
        own = float(kind.teaching_loss(right, right, temperature))
        require(abs(own) < 1e-6, f"at temperature {temperature} the teacher's own logits have the loss {own}")
        require(float(kind.teaching_loss(-right, right, temperature)) > 1e-3, "the loss is as low where all is wrong")
    for factor in (1e3, -1e3):
        logits = (right * factor).requires_grad_(True)
        value = kind.teaching_loss(logits, right * 1e3, 2.0)
        value.backward()
        finite = bool(value.isfinite()) and logits.grad is not None and bool(logits.grad.isfinite().all())
        require(value.ndim == 0 and finite, f"the loss towards a teacher is not finite at logits times {factor}")
    halves = ((-right[:1], right[:1]), (-right[1:], right[1:]))
    parts = [kind.teaching_loss(*half, 2.0) * len(half[0]) for half in halves]
    whole = kind.teaching_loss(-right, right, 2.0) * len(right)
    require(bool(torch.isclose(parts[0] + parts[1], whole)), "the losses of parts towards a teacher do not add up")
