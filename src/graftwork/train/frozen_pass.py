"""One pass of the frozen backbone over a split: pooled features of every block, and the states entering one block.

Frozen states are computed once, in eval mode, and shared by epochs, seeds, methods and learning rates; with a
`PrefixStore` also by other processes, tasks over the same texts and later runs.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded, real_positions
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import Workbench
from graftwork.core.model import join_towers
from graftwork.core.tally import Tally
from graftwork.core.task import Split
from graftwork.machine.memory import Rows, in_halves
from graftwork.machine.page_release import AT_ONCE, let_go
from graftwork.train.batches import by_length
from graftwork.train.flops import StepCounter
from graftwork.train.prefix_store import Draft, PassSpec, PrefixStore, StoredPass

SECONDS_BETWEEN_LOOKS = 0.1  # between polls for a pass that another process computes
TOKENS_PER_BATCH = 4096  # padding counted; bounds the memory of a pass and keeps matrix products large
MOST_KEPT_BESIDE = 1 << 30  # maximum bytes of states kept by a pass that itself needs none
BATCHES_AT_ONCE = 16  # of a pass, before the mapped pages that they filled are released

_Key = tuple[str, str, str, int | None]  # backbone's revision, data set's digest, split, depth


class Pass:
    """Hidden states of one split, in memory or mapped from a file. Implements `FrozenPass`."""

    def __init__(self, encoded: Encoded, kept: StoredPass):
        self.encoded, self.kept = encoded, kept
        self._lengths = _state_lengths(encoded, kept.states)
        self._offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        self._touched = 0  # bytes of states read since pages were last released

    @property
    def of_sample(self) -> bool:
        """Return whether only `encoded.sampled` was computed, as is the case where no states are kept."""
        return self.kept.states is None and not _all_sampled(self.encoded)

    def pooled(self, block: int) -> Tensor:
        """Return pooled features (N, P) fp32 after `block` blocks, or (W, P) of the seen words of `encoded.sampled`."""
        joined = join_towers(self.kept.pooled[block], self.encoded.towers)
        if self.kept.mapped:
            let_go([self.kept.pooled[block]])
        return joined

    def entering(self, sequences: Sequence[int], mask: Tensor) -> Tensor:
        """Return the states (S, T, D) at the real tokens of `mask` (S, T), on either padding side; zero at padding.

        The states are moved to the device of `mask` here: only one batch of a pass is ever on an accelerator.
        """
        states = self.kept.states
        assert states is not None, "no depth was asked for"
        self._touch(states, sequences)
        if _changed(self.encoded, states):
            mask = mask.new_ones(len(sequences), int(self._lengths[0]))
        real = torch.cat([states[self._offsets[row] : self._offsets[row + 1]] for row in sequences])
        batch = states.new_zeros(*mask.shape, states.shape[1], device=mask.device)
        batch[mask] = real.to(mask.device)
        return batch

    def _touch(self, states: Tensor, sequences: Sequence[int]) -> None:
        """Count the bytes read and release mapped pages once they exceed `AT_ONCE`."""
        self._touched += int(self._lengths[list(sequences)].sum()) * states.shape[1] * states.element_size()
        if self.kept.mapped and self._touched > AT_ONCE:
            let_go([states])
            self._touched = 0


@dataclass(frozen=True)
class PassesOf:
    """The passes of a store over one data set. Implements `FrozenPasses`."""

    store: FrozenStore
    backbone: Backbone
    data: str  # its digest

    def get(self, split: Split, depth: int | None, bench: Workbench) -> Pass:
        """As `FrozenStore.get`; if an earlier attempt of the run has paid for the pass, only recomputing it costs."""
        if not bench.keeper.already_charged(split.name, depth):
            return self.store.get(self.backbone, self.data, split, depth, bench)
        there = self.store.holds(self.backbone, self.data, split, depth)
        aside = replace(bench, tally=Tally(), charged=Phase())
        found = self.store.get(self.backbone, self.data, split, depth, aside)
        if not there:
            bench.tally.include(aside.tally)
        return found


class FrozenStore:
    """The passes of one process; the least recently used are dropped when memory exceeds `cap_bytes`.

    With `disk`, passes are looked up and stored there too. Every split is tokenised once.
    """

    def __init__(self, cap_bytes: int = 4 << 30, disk: PrefixStore | None = None):
        self.cap_bytes, self.disk = cap_bytes, disk
        self.keeps: int | None = None  # block whose input states are kept even by a pass that needs none
        self._passes: OrderedDict[_Key, Pass] = OrderedDict()
        self._encoded: dict[tuple[str, str, str], tuple[Encoded, Phase]] = {}

    def of(self, backbone: Backbone, data: str) -> PassesOf:
        """Return the passes of `backbone` over the data set `data` (its digest)."""
        return PassesOf(self, backbone, data)

    def encoded(self, backbone: Backbone, data: str, split: Split) -> Encoded:
        """Return the tokens of `split` of the data set `data` (its digest)."""
        return self._tokens(backbone, data, split)[0]

    def get(self, backbone: Backbone, data: str, split: Split, depth: int | None, bench: Workbench) -> Pass:
        """Return the pass over `split` of data set `data` (its digest), with states entering block `depth` if given.

        Work done earlier is charged to `bench` in full: a price tag states the cost of a run alone.
        """
        encoded = self._read(backbone, data, split, bench)
        key = (backbone.card.revision, data, split.name, depth)
        key = self._equal_pass(*key) or key
        known = self._passes.get(key)
        if known is None and depth is None and self._keeps_more(backbone, encoded):
            return self.get(backbone, data, split, self.keeps, bench)
        if known is None:
            known = self._passes[key] = self._stored_or_computed(backbone, encoded, depth, bench)
        else:
            bench.charged.add(known.kept.cost)
        if known.kept.batches_in_parts:
            bench.memory.passes[split.name] = known.kept.batches_in_parts
        tally = known.kept.tally
        bench.tally.add(tally.flops, tally.padding_flops / max(tally.flops, 1.0))
        self._passes.move_to_end(key)
        while len(self._passes) > 1 and sum(other.kept.bytes for other in self._passes.values()) > self.cap_bytes:
            self._passes.popitem(last=False)
        return known

    def _read(self, backbone: Backbone, data: str, split: Split, bench: Workbench) -> Encoded:
        """Return the tokens; tokenising is paid for once per run, by doing it or by being charged for it."""
        key = key_of(backbone, data, split)
        read_before = key in self._encoded
        with bench.profile.phase("tokenise"):
            encoded, reading = self._tokens(backbone, data, split)
        if read_before and key not in bench.tokenised:
            bench.charged.add(reading)
        bench.tokenised.add(key)
        return encoded

    def forget_all_but(self, data: str) -> None:
        """Drop from memory the tokens and passes of every other data set than `data` (its digest)."""
        self._encoded = {key: kept for key, kept in self._encoded.items() if key[1] == data}
        for key in [key for key in self._passes if key[1] != data]:
            del self._passes[key]

    def holds(self, backbone: Backbone, data: str, split: Split, depth: int | None) -> bool:
        """Return whether `get` would compute nothing."""
        if self._equal_pass(backbone.card.revision, data, split.name, depth) is not None:
            return True
        if self.disk is None:
            return False
        return self.disk.find(self._wanted(backbone, self.encoded(backbone, data, split), depth)[0]) is not None

    def _keeps_more(self, backbone: Backbone, encoded: Encoded) -> bool:
        """Return whether a new pass without states should also keep states for a later run, at no extra time.

        Its pooled features are the same, bit for bit, where all examples are sampled.
        """
        if self.keeps is None or not _all_sampled(encoded):
            return False
        wanted = self._wanted(backbone, encoded, self.keeps)[0]
        if self.disk is not None and self.disk.find(self._wanted(backbone, encoded, None)[0]) is not None:
            return False
        return wanted.tokens * wanted.width * wanted.dtype.itemsize <= MOST_KEPT_BESIDE

    def _equal_pass(self, revision: str, data: str, split: str, depth: int | None) -> _Key | None:
        """Return the key of a pass in memory with, bit for bit, the pooled features of a pass for this depth.

        Without a depth, a pass with states serves too if all examples are sampled: its batches are the same.
        """
        for key, known in self._passes.items():
            serves = key[3] == depth or (depth is None and _all_sampled(known.encoded))
            if key[:3] == (revision, data, split) and serves:
                return key
        return None

    def _stored_or_computed(self, backbone: Backbone, encoded: Encoded, depth: int | None, bench: Workbench) -> Pass:
        """Return a pass from the disk, charged in full, or compute it."""
        wanted, batches = self._wanted(backbone, encoded, depth)
        waited = Phase()

        def wait() -> None:
            bench.progress(0.0, "another process computes the same states")
            watch = Stopwatch()
            time.sleep(SECONDS_BETWEEN_LOOKS)
            waited.add(watch.read())

        found = self.disk.obtain(wanted, wait) if self.disk else None
        bench.charged.add(Phase(-waited.wall_seconds, -waited.cpu_seconds))  # no work: alone the run would not wait
        if isinstance(found, StoredPass):
            bench.charged.add(found.cost)
            return Pass(encoded, found)
        with bench.profile.phase("prefix"):
            return Pass(encoded, self._computed(backbone, encoded, wanted, batches, found))

    def _wanted(
        self, backbone: Backbone, encoded: Encoded, depth: int | None
    ) -> tuple[PassSpec, list[NDArray[np.int64]]]:
        """Return the specification of a pass, and the batches that compute it."""
        batches = batches_of_pass(encoded, depth)
        return PassSpec.of(backbone, encoded, depth, batches, self.disk.numerics() if self.disk else {}), batches

    def _computed(
        self,
        backbone: Backbone,
        encoded: Encoded,
        wanted: PassSpec,
        batches: list[NDArray[np.int64]],
        draft: Draft | None,
    ) -> StoredPass:
        watch = Stopwatch()
        try:
            tensors = draft.tensors if draft else _in_memory(wanted)
            pooled, states = tensors["pooled"], tensors.get("states")
            mapped = draft is not None
            tally, in_parts = fill(backbone, encoded, batches, wanted.by_block(pooled), states, wanted.depth, mapped)
            cost = self._finish(None if in_parts else draft, watch, tally)
        finally:
            if draft:
                draft.close()
        return StoredPass(
            wanted.by_block(pooled), states, cost, tally, mapped=draft is not None, batches_in_parts=in_parts
        )

    def _finish(self, draft: Draft | None, watch: Stopwatch, tally: Tally) -> Phase:
        """Keep the draft, or warn of a disk error; return the cost of the pass, writing included.

        A pass run in parts is not kept: its last bits may differ from what others would compute.
        """
        try:
            if draft:
                draft.flush()
            cost = watch.read()
            if draft:
                draft.keep(cost, tally)
        except OSError as error:
            assert self.disk is not None
            self.disk.trouble(error)
            cost = watch.read()
        return cost

    def _tokens(self, backbone: Backbone, data: str, split: Split) -> tuple[Encoded, Phase]:
        key = key_of(backbone, data, split)
        if key not in self._encoded:
            watch = Stopwatch()
            encoded = backbone.encode(split.examples)
            self._encoded[key] = (encoded, watch.read())
        return self._encoded[key]


def _all_sampled(encoded: Encoded) -> bool:
    return len(encoded.sampled) == len(encoded)


def batches_of_pass(encoded: Encoded, depth: int | None) -> list[NDArray[np.int64]]:
    """Return the sequences of every batch of a pass: all where states are kept, else those of the sampled examples.

    Of equal sequences only the first is included.
    """
    read = np.array(encoded.sequences(encoded.sampled) if depth is None else range(len(encoded.ids)), dtype=np.int64)
    read = read[encoded.firsts[read] == read]
    return [read[batch] for batch in by_length(_lengths(encoded)[read], TOKENS_PER_BATCH)]


def key_of(backbone: Backbone, data: str, split: Split) -> tuple[str, str, str]:
    """Return the key of the tokens of a split."""
    return (backbone.card.revision, data, split.name)


@torch.no_grad()
def fill(
    backbone: Backbone,
    encoded: Encoded,
    batches: Sequence[NDArray[np.int64]],
    pooled: Sequence[Tensor],
    states: Tensor | None,
    depth: int | None,
    mapped: bool = False,
) -> tuple[Tally, int]:
    """Run the backbone batch by batch into `pooled`, L + 1 x (F, R), and `states` (tokens, D) at `depth`.

    F features are kept per block: one per sequence, or one per word of `encoded.sampled`; equal sequences share the
    features of the first. A batch that runs out of memory is run in halves. Returns the FLOPs, and how many batches
    were halved. Pages `mapped` from a file are released on the way. Raises `OutOfMemory`.
    """
    tally = Tally()
    counter = StepCounter(tally)
    offsets = np.concatenate([[0], np.cumsum(_state_lengths(encoded, states))])
    slots, equal = _slots(encoded), _equal(encoded)

    def run(rows: Rows) -> int:
        inputs = backbone.collate(encoded, rows)
        mask = inputs["attention_mask"].bool()  # (S, T)
        hidden = counter.run(mask, partial(backbone.states, inputs))
        of_features = np.split(np.arange(encoded.read[rows].sum()), np.cumsum(encoded.read[rows])[:-1])
        found = np.concatenate([own for row, own in zip(rows, of_features, strict=True) for _ in equal[row]])
        places = np.concatenate([slots[one] for row in rows for one in equal[row]])
        found, places = found[places >= 0], places[places >= 0]
        for block, after in enumerate(hidden):
            read = backbone.pool(after, mask, inputs.get("words")).float()
            pooled[block][places] = read[found].cpu()
        if states is not None and depth is not None:
            marked = real_positions(mask, hidden[depth]).cpu()
            for row, sequence, real in zip(rows, hidden[depth].cpu(), marked, strict=True):
                for one in equal[row]:
                    states[offsets[one] : offsets[one + 1]] = sequence[real]
        return len(rows)

    filled = [one for one in (*pooled, states) if one is not None and mapped]
    parts = []
    for done, batch in enumerate(batches, start=1):
        parts.append(in_halves(batch.tolist(), run))
        if done % BATCHES_AT_ONCE == 0 or done == len(batches):
            let_go(filled)
    return tally, sum(len(part) > 1 for part in parts)


def _slots(encoded: Encoded) -> list[NDArray[np.int64]]:
    """Return the storage rows of each sequence's features, in reading order; -1 for those that are not kept."""
    sampled = np.zeros(len(encoded), dtype=bool)
    sampled[encoded.sampled] = True
    read = encoded.read
    kept = np.repeat(np.repeat(sampled, encoded.sequences_of), read)
    slots = np.where(kept, np.cumsum(kept) - 1, -1)
    return np.split(slots, np.cumsum(read)[:-1])


def _equal(encoded: Encoded) -> list[NDArray[np.int64]]:
    """Return, per sequence, all sequences equal to it, itself included; none if it repeats an earlier one."""
    order = np.argsort(encoded.firsts, kind="stable")
    counts = np.bincount(encoded.firsts, minlength=len(order))
    return np.split(order, np.cumsum(counts)[:-1])


def _in_memory(wanted: PassSpec) -> dict[str, Tensor]:
    return {name: torch.empty(shape, dtype=dtype) for name, (dtype, shape) in wanted.shapes.items()}


def _lengths(encoded: Encoded) -> NDArray[np.int64]:
    """Return the (S,) tokens of each sequence."""
    return np.array([len(ids) for ids in encoded.ids], dtype=np.int64)


def _changed(encoded: Encoded, states: Tensor | None) -> bool:
    """Return whether the states have other positions than the inputs: then the same number for every sequence."""
    return states is not None and len(states) != int(_lengths(encoded).sum())


def _state_lengths(encoded: Encoded, states: Tensor | None) -> NDArray[np.int64]:
    """Return the (S,) positions of each sequence's states."""
    lengths = _lengths(encoded)
    if states is None or not _changed(encoded, states):
        return lengths
    return np.full(len(lengths), len(states) // len(lengths), dtype=np.int64)
