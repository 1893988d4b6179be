"""Arithmetic counted operator by operator, on a few batches, and computed for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from graftwork.core.length_buckets import buckets_of
from graftwork.core.method import Tally

T = TypeVar("T")
Size = tuple[float, float]  # of a batch: means of T and T² over its sequences
Plane = Callable[[Size], float]


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

    Per sequence a network's products are a + b T + c T², in a batch of several buckets the mean of that: a plane over
    the means of T and T². Once a fourth batch lies on the plane through three, those between the outer ones counted are
    computed; a batch that lies outside, or any of a network whose counts lie on no plane, is counted.
    """

    def __init__(self, tally: Tally):
        self.tally = tally
        self._counted: dict[Size, float] = {}  # FLOP per sequence
        self._plane: Plane | None = None

    @property
    def counts(self) -> list[tuple[float, float, float]]:
        """Means of T and T², and FLOP per sequence of what was counted: all that decides what is counted next."""
        return [(*size, flops) for size, flops in self._counted.items()]

    def restore(self, counts: Sequence[tuple[float, float, float]]) -> None:
        """Go on from `counts`."""
        self._counted = {(length, square): flops for length, square, flops in counts}
        self._plane = _plane(self._counted)

    def run(self, mask: Tensor, work: Callable[[], T], towers: int = 1) -> T:
        """Do `work` on a batch whose real tokens `mask` (S, T) marks; two `towers` go through bucket by bucket."""
        sequences, buckets = len(mask), buckets_of(mask, towers)
        positions = sum(len(bucket) * length for bucket, length in buckets)
        size = positions / sequences, sum(len(bucket) * length**2 for bucket, length in buckets) / sequences
        known = self._known(size)
        if known is not None:
            result = work()
        else:
            result, flops = counted(work)
            known = self._counted[size] = flops / sequences
            self._plane = _plane(self._counted)
        self.tally.add(known * sequences, 1 - float(mask.sum()) / positions)
        return result

    def _known(self, size: Size) -> float | None:
        if size in self._counted or self._plane is None:
            return self._counted.get(size)
        lengths, squares = zip(*self._counted, strict=True)
        inside = min(lengths) <= size[0] <= max(lengths) and min(squares) <= size[1] <= max(squares)
        return self._plane(size) if inside else None


def _plane(counted: Mapping[Size, float]) -> Plane | None:
    """The plane through the two outer sizes and the one farthest from their line, if every other one lies on it."""
    if len(counted) < 4:
        return None
    sizes = sorted(counted)
    first, last = sizes[0], sizes[-1]
    nodes = (first, last, max(sizes, key=lambda size: abs(_area(first, last, size))))
    whole = _area(*nodes)

    def plane(size: Size) -> float:
        shares = [_area(*(size if at == node else at for at in nodes)) / whole for node in nodes]
        return sum(counted[node] * share for node, share in zip(nodes, shares, strict=True))

    return plane if whole and all(math.isclose(plane(at), counted[at], rel_tol=1e-9) for at in sizes) else None


def _area(a: Size, b: Size, c: Size) -> float:
    """Twice that of a triangle, with its sign."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
