"""A FLOP counter: a few batches are counted operator by operator, the rest are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from graftwork.core.length_buckets import buckets_of
from graftwork.core.tally import Tally

T = TypeVar("T")
Size = tuple[float, float]  # of a batch: the means of T and T² over its sequences
Plane = Callable[[Size], float]


def count_flops(work: Callable[[], T]) -> tuple[T, float]:
    """Run `work` and count its matrix products: 2 FLOP per multiply-add, forward and backward, frozen or not.

    Elementwise work (norms, softmax, activations, the optimiser, look-ups) is not counted, as is customary.
    """
    with _Products() as products:
        result = work()
    return result, float(products.flops)


class _Products(TorchDispatchMode):
    """A sum of torch's FLOP formulas, like `FlopCounterMode` but without its costly split by module."""

    _whole: ClassVar[set[Any]] = set()  # operators that do not decompose into others; the same for all counts

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

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
    """A FLOP counter that counts a few batches and interpolates the rest: counting slows short texts down.

    Per sequence a network's FLOPs are a + b T + c T², averaged over a batch with several buckets: a plane over the
    means of T and T². Once a fourth batch lies on the plane through three, batches within the counted range are
    interpolated; a batch outside it, or any batch of a network whose counts lie on no plane, is counted.
    """

    def __init__(self, tally: Tally):
        self.tally = tally
        self._counted: dict[Size, float] = {}  # FLOP per sequence
        self._plane: Plane | None = None

    @property
    def counts(self) -> list[tuple[float, float, float]]:
        """The means of T and T² and the FLOP per sequence of each counted batch: the counter's whole state."""
        return [(*size, flops) for size, flops in self._counted.items()]

    def restore(self, counts: Sequence[tuple[float, float, float]]) -> None:
        """Continue from `counts`."""
        self._counted = {(length, square): flops for length, square, flops in counts}
        self._plane = _plane(self._counted)

    def run(self, mask: Tensor, work: Callable[[], T], towers: int = 1) -> T:
        """Run `work` on a batch with real tokens `mask` (S, T), and tally FLOPs; two `towers` run bucket by bucket."""
        sequences, buckets = len(mask), buckets_of(mask, towers)
        positions = sum(len(bucket) * length for bucket, length in buckets)
        size = positions / sequences, sum(len(bucket) * length**2 for bucket, length in buckets) / sequences
        known = self._known(size)
        if known is not None:
            result = work()
        else:
            result, flops = count_flops(work)
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


class PairCounter:
    """A FLOP counter of batches with two lengths, T of inputs and U of outputs: some are counted, others interpolated.

    Per sequence an encoder-decoder's FLOPs are a polynomial of the second degree in T and U. Batches are counted until
    it fits one more than are needed to determine it.
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[int, int], float] = {}  # FLOP per sequence

    def run(self, size: tuple[int, int], sequences: int, work: Callable[[], T]) -> tuple[T, float]:
        """Run `work` on a batch of sequences padded to (T, U); return its result and its FLOPs."""
        known = self.known(size)
        if known is not None:
            return work(), known * sequences
        result, flops = count_flops(work)
        self._counted[size] = flops / sequences
        return result, flops

    def known(self, size: tuple[int, int]) -> float | None:
        """Return the FLOPs per sequence of this size if they are counted or interpolated, else None."""
        if size in self._counted or len(self._counted) <= len(_terms(size)):
            return self._counted.get(size)
        table, flops = np.array([*map(_terms, self._counted)]), np.array([*self._counted.values()])
        shares, _, rank, _ = np.linalg.lstsq(table, flops)
        exact = rank == len(shares) and np.allclose(table @ shares, flops, rtol=1e-6, atol=0)
        return float(np.dot(_terms(size), shares)) if exact else None


def _terms(size: tuple[int, int]) -> tuple[float, ...]:
    read, wrote = size
    return 1.0, read, wrote, read**2, wrote**2, read * wrote


def _plane(counted: Mapping[Size, float]) -> Plane | None:
    """Return the plane through the two extreme sizes and the one farthest from their line, if all others lie on it."""
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
    """Return twice the signed area of a triangle."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
