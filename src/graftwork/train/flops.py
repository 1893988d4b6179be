"""Arithmetic counted operator by operator, on a few batches, and computed for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from graftwork.core.method import Tally

T = TypeVar("T")
Curve = Callable[[int], float]


def counted(work: Callable[[], T]) -> tuple[T, float]:
    """Do `work` and count its matrix products: 2 FLOP per multiply-add, forward and backward, frozen or not.

    Elementwise work (norms, softmax, activations, the optimiser, look-ups) is not counted, as is the field's habit.
    """
    with _Products() as products:
        result = work()
    return result, float(products.flops)


class _Products(TorchDispatchMode):
    """Sums torch's formulas, as its `FlopCounterMode` does, which also splits them by module: most of its work."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self._whole: set[Any] = set()  # operators that are not made of others

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func not in self._whole:
            with self:
                result = func.decompose(*args, **named)
            if result is not NotImplemented:
                return result
            self._whole.add(func)
        result = func(*args, **named)
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **named, out_val=result)
        return result


class StepCounter:
    """Counts a few batches and knows the rest: counting an operator costs more than a short text's product.

    Per sequence a network's products grow as a quadratic in T. Once a fourth length lies on the curve through three,
    lengths between the shortest and the longest counted are computed; a length that lies outside, or a network whose
    count is no quadratic, is counted. One batch of every length is enough.
    """

    def __init__(self, tally: Tally):
        self.tally = tally
        self._counted: dict[int, float] = {}  # T -> FLOP per sequence
        self._curve: Curve | None = None

    @property
    def counts(self) -> list[tuple[int, float]]:
        """Length and FLOP per sequence of what was counted: all that decides which batch is counted next."""
        return list(self._counted.items())

    def restore(self, counts: Sequence[tuple[int, float]]) -> None:
        """Go on from `counts`."""
        self._counted = {int(positions): flops for positions, flops in counts}
        self._curve = _curve(self._counted)

    def run(self, mask: Tensor, work: Callable[[], T]) -> T:
        """Do `work` on a batch whose real tokens `mask` (S, T) marks."""
        sequences, positions = mask.shape
        known = self._known(positions)
        if known is not None:
            result = work()
        else:
            result, flops = counted(work)
            known = self._counted[positions] = flops / sequences
            self._curve = _curve(self._counted)
        self.tally.add(known * sequences, 1 - float(mask.float().mean()))
        return result

    def _known(self, positions: int) -> float | None:
        if positions in self._counted or self._curve is None:
            return self._counted.get(positions)
        return self._curve(positions) if min(self._counted) < positions < max(self._counted) else None


def _curve(counted: Mapping[int, float]) -> Curve | None:
    """The quadratic through the outer lengths and one between, if every other one lies on it and there is one."""
    if len(counted) < 4:
        return None
    lengths = sorted(counted)
    nodes = (lengths[0], lengths[len(lengths) // 2], lengths[-1])

    def curve(positions: int) -> float:
        return sum(counted[at] * _weight(positions, at, nodes) for at in nodes)

    return curve if all(math.isclose(curve(at), counted[at], rel_tol=1e-9) for at in lengths) else None


def _weight(positions: int, at: int, nodes: Sequence[int]) -> float:
    """Lagrange's polynomial: 1 at `at`, 0 at the other nodes."""
    return math.prod((positions - node) / (at - node) for node in nodes if node != at)
