"""A disk cache of frozen-backbone passes, addressed by a hash of all their inputs and read by memory map.

Hidden states depend, in their last bits, on the batch in which they were computed. So an entry covers the whole
ordered list of sequences of a split, in the batches that the pass used, not single texts: a cached result equals a
computed one bit for bit. The entry's name is the hash of the backbone's revision, the exact tokens in order, the
batches and the arithmetic. Labels are not hashed, so tasks over the same texts in the same splits share one entry.

An entry is one safetensors file: `pooled` (L + 1, F, R) fp32, or (F, sum of R) where blocks differ in width: the
features of each sequence or, for a sample of the examples, of each word; `states` (tokens, D) in the backbone's own
dtype where a depth was requested; and `cost` (4,), the cost of the pass, which later users are charged in full. The
cost excludes tokenising: a caller that looks up an entry has already done that.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import mmap
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork import __version__
from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.meter import Phase
from graftwork.core.run import ENGINE
from graftwork.core.tally import Tally
from graftwork.errors import StorageError
from graftwork.io.cache_folder import CacheFolder, EntryBeingWritten, touch
from graftwork.io.files import canonical, digest, header_of, safe_load, sync_folder
from graftwork.io.locks import try_lock
from graftwork.io.safetensors_header import Header, end_to_end
from graftwork.pretrained.media_files import decoders
from graftwork.units import with_prefix

FORMAT = 2  # 2: the cost excludes tokenising
ZEROS = bytes(1 << 20)
Batches = Sequence[NDArray[np.int64]]  # row numbers, batch by batch

log = logging.getLogger("graftwork")  # with no handler set up, a warning is one line on the error stream


@dataclass(frozen=True)
class PassSpec:
    """The specification of one pass: its cache key and the sizes that follow from it."""

    key: Mapping[str, Any]  # JSON; excludes the task's labels, names and files
    name: str  # of the backbone, for display
    depth: int | None  # the block whose input states are stored; None: no states
    blocks: int  # L
    sequences: int  # S
    features: int  # F, features stored per block
    tokens: int  # positions of the states
    widths: tuple[int, ...]  # (L + 1,) R: feature size at every depth
    width: int  # D of the states
    dtype: torch.dtype  # of the states

    @classmethod
    def of(
        cls, backbone: Backbone, encoded: Encoded, depth: int | None, batches: Batches, numerics: Mapping[str, Any]
    ) -> PassSpec:
        """Describe the pass of `backbone` over these sequences in these batches."""
        card, weight = backbone.card, next(backbone.module.parameters())
        tokens = [_numbers(rows) for rows in (encoded.ids, encoded.types)]
        lengths = np.fromiter(map(len, encoded.ids), np.int64)
        key = {
            "format": FORMAT,
            "engine": ENGINE,
            "graftwork": __version__,
            "backbone": card.revision,
            "tokens": _digest_of([lengths, *tokens]),
            "batches": _digest_of([np.array([len(rows) for rows in batches], np.int64), *batches]),
            "numerics": dict(numerics) | {"weights": str(weight.dtype), "on": weight.device.type},
        }
        if encoded.words is not None:
            first = np.fromiter(chain.from_iterable(encoded.words.first), np.int64)
            key["words"] = _digest_of([encoded.read, first, encoded.sampled, encoded.sequences_of])
        if encoded.media is not None:
            key["media"] = digest([one.sha256 for one in encoded.media])
            key["decoded_by"] = decoders()
        fixed = card.shapes[depth or 0][0] if card.shapes else 0  # positions per sequence at that depth, 0 if they vary
        return cls(
            key=key,
            name=card.id,
            depth=depth,
            blocks=card.blocks,
            sequences=len(lengths),
            features=encoded.kept,
            tokens=len(lengths) * fixed or int(lengths.sum()),
            widths=card.read_widths(encoded.words is not None),
            width=card.widths[depth or 0],
            dtype=weight.dtype,
        )

    @property
    def shapes(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        """The dtype and shape of the entry's tensors in file order: widest dtype first, so that all are aligned."""
        shapes: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
            "cost": (torch.float64, (4,)),  # wall and processor seconds, FLOP, FLOP on padding
            "pooled": (torch.float32, (self.features, sum(self.widths))),
        }
        if len(set(self.widths)) == 1:
            shapes["pooled"] = (torch.float32, (self.blocks + 1, self.features, self.widths[0]))
        if self.depth is not None:
            shapes["states"] = (self.dtype, (self.tokens, self.width))
        return shapes

    def by_block(self, pooled: Tensor) -> tuple[Tensor, ...]:
        """Split the tensor `pooled` of an entry into views (F, R), one per depth."""
        return tuple(pooled) if pooled.dim() == 3 else torch.split(pooled, list(self.widths), dim=1)

    @property
    def about(self) -> dict[str, str]:
        """Human-readable metadata of the entry, and its key."""
        depth = "" if self.depth is None else str(self.depth)
        about = {"backbone": self.name, "revision": str(self.key["backbone"]), "depth": depth}
        return about | {"rows": str(self.sequences), "tokens": str(self.tokens), "key": canonical(dict(self.key))}

    @property
    def header(self) -> Header:
        """The safetensors header of the entry's file."""
        return Header(end_to_end((name, *told) for name, told in self.shapes.items()), self.about)


@dataclass(frozen=True)
class StoredPass:
    """The tensors of one pass and its cost."""

    pooled: tuple[Tensor, ...]  # L + 1 views (F, R), fp32
    states: Tensor | None  # (tokens, D)
    cost: Phase
    tally: Tally
    mapped: bool  # backed by a file: the system can reclaim its memory
    batches_in_parts: int = 0  # for lack of memory

    @property
    def bytes(self) -> int:
        """Bytes of memory held, mapped files excluded."""
        held = [tensor for tensor in (*self.pooled, self.states) if tensor is not None and not self.mapped]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)


class PrefixStore:
    """A folder that stores and finds passes. A disk error only causes a warning, issued once."""

    def __init__(self, folder: CacheFolder, numerics: Callable[[], Mapping[str, Any]]):
        """`numerics` returns the current settings that affect a result's bits, beside the tokens and the weights."""
        self.folder = folder
        self.numerics = numerics
        self._warned = False

    def find(self, wanted: PassSpec) -> StoredPass | None:
        """Open the entry without reading it; without a depth, any depth serves. Corrupt entries count as missing."""
        exact = self._path(wanted)
        others = () if wanted.depth is not None else sorted(self.folder.root.glob(f"{digest(dict(wanted.key))}-*"))
        for path in (exact, *(other for other in others if other != exact)):
            kept = _mapped_entry(path, wanted)
            if kept is not None:
                touch(path)
                return kept
        return None

    def obtain(self, wanted: PassSpec, wait: Callable[[], None]) -> StoredPass | Draft | None:
        """Return the entry, or a draft to fill where there is none; None, after a warning, where no draft can be made.

        While another process fills the entry, `wait` is called between polls; if that process dies, returns a draft.
        """
        found: StoredPass | Draft | None = self.find(wanted)
        while found is None:
            try:
                return self._draft(wanted)
            except EntryBeingWritten:
                wait()
                found = self.find(wanted)
        return found

    def _draft(self, wanted: PassSpec) -> StoredPass | Draft | None:
        """Allocate an entry to fill, or return it if it was completed meanwhile. Raises `EntryBeingWritten`."""
        path = self._path(wanted)
        size = wanted.header.file_bytes
        try:
            with self.folder.room_for(size, path) as free:
                found = self.find(wanted)
                if found is not None or free:
                    return found or Draft(path, wanted)
            cap = with_prefix(self.folder.cap_bytes, "B")
            self._warn(f"a pass of {with_prefix(size, 'B')} has no room in a cache of {cap} (--cache-size)")
        except (OSError, ValueError) as error:
            self.trouble(error)
        return None

    def trouble(self, error: Exception) -> None:
        """Warn that something could not be stored, and why."""
        self._warn(f"nothing can be kept in the cache {self.folder.root}: {getattr(error, 'strerror', None) or error}")

    def _warn(self, what: str) -> None:
        if not self._warned:
            log.warning("graft: %s; frozen states stay in memory, results are the same", what)
        self._warned = True

    def _path(self, wanted: PassSpec) -> Path:
        what = "pooled" if wanted.depth is None else str(wanted.depth)
        return self.folder.root / f"{digest(dict(wanted.key))}-{what}.safetensors"


class Draft:
    """A memory-mapped entry under a temporary name, to be filled; `keep` renames it into place."""

    def __init__(self, path: Path, wanted: PassSpec):
        self.path = path
        header, size = wanted.header.to_bytes(), wanted.header.file_bytes
        self._handle, self._part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            try_lock(self._handle)
            _take_space(self._handle, size)
            self._map = mmap.mmap(self._handle, size)
            self._map[: len(header)] = header
        except BaseException:
            self.close()
            raise
        places = wanted.header.tensors
        self.tensors = {
            name: torch.frombuffer(
                self._map, dtype=dtype, count=math.prod(shape), offset=len(header) + places[name].begin
            ).view(shape)
            for name, (dtype, shape) in wanted.shapes.items()
        }

    def flush(self) -> None:
        """Flush the mapped data to the file. Raises `OSError`."""
        self._map.flush()

    def keep(self, cost: Phase, tally: Tally) -> None:
        """Complete the entry and rename it into place; without file locks, the later of two writers wins.

        Raises `OSError`. The tensors stay usable either way.
        """
        costs = [cost.wall_seconds, cost.cpu_seconds, tally.flops, tally.padding_flops]
        self.tensors["cost"].copy_(torch.tensor(costs, dtype=torch.float64))
        self._map.flush()
        os.fsync(self._handle)
        os.replace(self._part, self.path)
        sync_folder(self.path.parent)

    def close(self) -> None:
        """Close the file and remove it unless it was kept. The tensors stay usable."""
        os.close(self._handle)
        with contextlib.suppress(OSError):
            os.unlink(self._part)


def _take_space(handle: int, size: int) -> None:
    """Write zeros to the whole file. Raises `OSError`.

    Otherwise a full disk would show only on a write to the map, as a signal that kills the process. Space that is only
    reserved (`posix_fallocate`) is slow to free where states were written here and there: 20 s for 130 MB on ext4 with
    `discard`, 0.03 s after zeros.
    """
    with open(handle, "wb", closefd=False) as stream:
        for start in range(0, size, len(ZEROS)):
            stream.write(ZEROS[: size - start])


def _mapped_entry(path: Path, wanted: PassSpec) -> StoredPass | None:
    """Map the entry at `path`; return None if its key, tensors or costs are invalid."""
    try:
        if header_of(path).about.get("key") != wanted.about["key"]:
            return None
        tensors = safe_load(path)
        states = tensors.get("states")
        pooled, costs = tensors["pooled"], tensors["cost"].tolist()
    except (StorageError, OSError, ValueError, KeyError, RuntimeError):
        return None
    shapes = wanted.shapes
    if wanted.depth is None:
        shapes.pop("states", None)
        tensors.pop("states", None)
        states = None
    sound = {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()} == shapes
    if not (sound and all(math.isfinite(cost) and cost >= 0 for cost in costs) and costs[0] > 0):
        return None
    return StoredPass(
        wanted.by_block(pooled), states, Phase(costs[0], costs[1]), Tally(costs[2], costs[3]), mapped=True
    )


def _numbers(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Concatenate the rows; if a number overflows int64 (a word's letters as one id), return a digest of all."""
    try:
        return np.fromiter(chain.from_iterable(rows), np.int64)
    except OverflowError:
        spelled = ",".join(map(hex, chain.from_iterable(rows)))
        return np.frombuffer(hashlib.sha256(spelled.encode()).digest(), np.int64)


def _digest_of(arrays: Sequence[NDArray[np.int64]]) -> str:
    """Return the sha256 over the arrays and their lengths."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(len(array).to_bytes(8, "little"))
        content.update(array.astype("<i8", copy=False).tobytes())
    return content.hexdigest()
