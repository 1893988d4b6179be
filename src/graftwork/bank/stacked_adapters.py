"""Shelves: stacked weights of adapters of equal shape, so that one batch may mix rows of all their tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from graftwork.core.model import Stacks, site_of

ROOM = 8  # slots of a new shelf
Weights = Mapping[str, Tensor]


def shape_of(adapters: Mapping[str, Stacks]) -> tuple[Any, ...]:
    """Return the key that adapters on one shelf share: sites, types and the shapes of their weights."""
    return tuple(
        (site, type(adapter), *((name, tuple(weight.shape)) for name, weight in adapter.weights().items()))
        for site, adapter in adapters.items()
    )


class Shelf:
    """The stacked weights of all adapters at every site, in the precision of the computation."""

    def __init__(self, like: Mapping[str, Stacks], dtype: torch.dtype, device: torch.device):
        self.how: dict[str, type[Stacks]] = {site: type(adapter) for site, adapter in like.items()}
        self._stacks = {
            site: {
                name: torch.empty((ROOM, *weight.shape), dtype=dtype, device=device)
                for name, weight in adapter.weights().items()
            }
            for site, adapter in like.items()
        }
        self._free = list(reversed(range(ROOM)))
        self._room = ROOM

    @torch.no_grad()
    def put(self, adapters: Mapping[str, Stacks]) -> int:
        """Store a copy of the adapters' weights and return their slot."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        for site, adapter in adapters.items():
            for name, weight in adapter.weights().items():
                self._stacks[site][name][slot] = weight
        return slot

    def drop(self, slot: int) -> None:
        """Free a slot."""
        self._free.append(slot)

    def taken(self, site: str, slots: Sequence[int]) -> dict[str, Tensor]:
        """Return the weights in these slots, (K, …) each; a view, not a copy, if the slots are consecutive."""
        if list(slots) == list(range(slots[0], slots[0] + len(slots))):
            return {name: stack[slots[0] : slots[-1] + 1] for name, stack in self._stacks[site].items()}
        chosen = torch.tensor(slots)
        return {name: stack[chosen] for name, stack in self._stacks[site].items()}

    def _grow(self) -> None:
        """Double the number of slots. Memory not yet written to is not committed."""
        for stacks in self._stacks.values():
            for name, stack in stacks.items():
                stacks[name] = stack.new_empty((2 * self._room, *stack.shape[1:]))
                stacks[name][: self._room] = stack
        self._free = list(reversed(range(self._room, 2 * self._room)))
        self._room *= 2


@dataclass(frozen=True)
class Chunks:
    """Rows, each with a slot, cut into K pieces of c rows with one slot each: the layout for a batched product."""

    slots: list[int]  # (K,)
    index: Tensor | None  # (K * c,) row at each position, some repeated to fill a piece; None: rows unchanged
    back: Tensor | None  # (R,) the position of each row

    @classmethod
    def of(cls, slots: Sequence[int]) -> Chunks:
        """Cut rows into chunks; `slots` (R,) is the slot of each row, equal ones contiguous.

        The size c is the one with the least cost; loading the weights of a piece counts as much as one of its rows.
        """
        named, first, counts = np.unique(np.asarray(slots), return_index=True, return_counts=True)
        most = int(counts.max())
        if int(counts.min()) == most:
            return cls(named.tolist(), None, None)
        sizes = [1 << power for power in range(most.bit_length() + 1)]
        size = min(sizes, key=lambda size: int(np.sum(-(-counts // size))) * (size + 1))
        pieces = -(-counts // size)
        if size == 1:
            return cls(list(slots), None, None)
        offsets = np.cumsum(pieces) - pieces
        within = np.arange(len(slots)) - np.repeat(first, counts)
        back = np.repeat(offsets * size, counts) + within
        index = np.repeat(np.repeat(first, pieces), size)
        index[back] = np.arange(len(slots))
        return cls(np.repeat(named, pieces).tolist(), torch.from_numpy(index), torch.from_numpy(back))


@dataclass(frozen=True)
class Stretch:
    """Contiguous rows of a batch whose tasks have their adapters on one shelf."""

    rows: slice
    shelf: Shelf
    chunks: Chunks

    def adapt(self, site: str, x: Tensor, y: Tensor) -> Tensor:
        """Adapt the output y of a site with input x: (R, N, in), (R, N, out) -> (R, N, out)."""
        pieces, index = len(self.chunks.slots), self.chunks.index
        if index is not None:
            x, y = x[index], y[index]
        shape = y.shape
        weights = self.shelf.taken(site, self.chunks.slots)
        x, y = x.reshape(pieces, -1, x.shape[-1]), y.reshape(pieces, -1, y.shape[-1])
        adapted = self.shelf.how[site].adapt(x, y, weights).view(shape)
        return adapted if self.chunks.back is None else adapted[self.chunks.back]


@contextlib.contextmanager
def hooked_adapters(sites: Mapping[str, nn.Module], rows: int, stretches: Sequence[Stretch]) -> Iterator[None]:
    """Hook the adapters of these stretches into `sites` for batches of `rows` sequences; other rows pass unchanged."""
    handles = []
    try:
        for place in dict.fromkeys(place for stretch in stretches for place in stretch.shelf.how):
            handles.append(_hook(sites, place, partial(_adapted, place, rows, stretches)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(sites: Mapping[str, nn.Module], place: str, cross: Callable[[Tensor, Tensor], Tensor]) -> RemovableHandle:
    """Call `cross` on a site's input and output; for an adapter of inputs on the input and a copy to change."""
    name, at = site_of(place)
    if at == "output":
        return sites[name].register_forward_hook(lambda site, args, output: cross(args[0], output))
    return sites[name].register_forward_pre_hook(lambda site, args: (cross(args[0], args[0].clone()), *args[1:]))


def _adapted(place: str, rows: int, stretches: Sequence[Stretch], before: Tensor, after: Tensor) -> Tensor:
    """Change `after`, the rows of each stretch by their own adapters: (S, …, in), (S, …, out) -> (S, …, out)."""
    x = before.reshape(rows, -1, before.shape[-1])  # (S, N, in)
    y = after.reshape(rows, -1, after.shape[-1])  # (S, N, out)
    for stretch in stretches:
        if place in stretch.shelf.how:
            y[stretch.rows] = stretch.adapt(place, x[stretch.rows], y[stretch.rows])
    return y.view(after.shape)
