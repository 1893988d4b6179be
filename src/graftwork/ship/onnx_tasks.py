"""Many tasks of one ONNX graph, predicted in joint batches by onnxruntime. Imports no torch.

A shelf stacks the adapters of tasks that have equal shapes; a slot is the place of one task's adapters on a shelf.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded
from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.errors import IncompatibleModule
from graftwork.io.files import read_json
from graftwork.io.json_limits import MODULE
from graftwork.io.number_arrays import load_arrays
from graftwork.io.plain_files import inside
from graftwork.pretrained.tokenising import TextReader
from graftwork.ship.onnx_runtime import GRAPH, PASS_COST, open_reader, open_session, run_graph
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_example_order
from graftwork.train.batch_tokens import TaskTokens, Unit, tokens_of
from graftwork.train.batches import with_little_padding

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Arrays = dict[str, NDArray[Any]]
WEIGHT, BIAS, SHARES = "head.weight", "head.bias", "head.shares"  # arrays in the file of a task
HEAD = (WEIGHT, BIAS, SHARES)
SCALE_OF = "|scale"  # ends the name of the factors, one per row or column, of a matrix of 8-bit integers
TASKS = "tasks"  # the folder of the tasks' files: NAME.json and NAME.safetensors
TYPES = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int8)": np.int8}
TINY = 1e-12  # smallest norm that features are divided by, as in torch's `normalize`


def slot_name(shelf: int) -> str:
    """Return the name of the graph's input (S,) that holds each row's slot on a shelf."""
    return f"slot_{shelf}"


def stack_name(shelf: int, weight: str) -> str:
    """Return the name of the graph's input (K, …) that holds a shelf's stacked weights; `weight` is "place|weight"."""
    return f"shelf_{shelf}|{weight}"


def output_name(depth: int, words: bool) -> str:
    """Return the name of an output: pooled features (S, R) at a depth, or states (S, T, D)."""
    return f"{'states' if words else 'pooled'}_{depth}"


@dataclass(frozen=True)
class GraphTask:
    """A task: its head, and the shelf and slot of its adapters (-1 and 0 if it has none)."""

    roles: tuple[str, ...]
    facts: Mapping[str, Any]
    head: Arrays
    shelf: int = -1
    slot: int = 0

    def logits(self, read: Mapping[str, NDArray[Any]], towers: int, words: bool) -> NDArray[np.float64]:
        """Return logits (B, C), or (W, C), from the features (S, R) or (W, D) of its rows at the depths it reads."""
        shares = self.head[SHARES]
        depths = np.flatnonzero(shares).tolist()
        joined = sum(float(shares[depth]) * _joined(read[output_name(depth, words)], towers) for depth in depths)
        found: NDArray[np.float64] = np.asarray(joined @ self.head[WEIGHT].T + self.head[BIAS], dtype=np.float64)
        return found


def _joined(pooled: NDArray[Any], towers: int) -> NDArray[Any]:
    """Return the input of the head, (B, P) or (W, D): `core.model.join_towers` in NumPy."""
    length = np.maximum(np.linalg.norm(pooled, axis=-1, keepdims=True), TINY)
    unit: NDArray[Any] = pooled / length * np.float32(pooled.shape[-1] ** 0.5)
    if towers == 1:
        return unit
    return np.concatenate([np.abs(unit[0::2] - unit[1::2]), unit[0::2] * unit[1::2]], axis=-1)


class GraphOfTasks:
    """The open graph, the tasks read so far, and stacks with room for the adapters of all tasks. Thread-safe."""

    def __init__(self, session: InferenceSession, reader: TextReader, folder: Path, shelves: Sequence[Sequence[str]]):
        self.session, self.reader, self.folder = session, reader, folder
        self.tasks: dict[str, GraphTask] = {}
        self.stacks: Arrays = {}
        self._inputs = [given.name for given in session.get_inputs()]
        self._outputs = [given.name for given in session.get_outputs()]
        self._shelves = range(len(shelves))
        self._places = {task: (shelf, slot) for shelf, own in enumerate(shelves) for slot, task in enumerate(own, 1)}
        self._reading = threading.Lock()
        for given in session.get_inputs():
            shelf, _, weight = given.name.removeprefix("shelf_").partition("|")
            if weight:
                shape = (len(shelves[int(shelf)]) + 1, *given.shape[1:])
                self.stacks[given.name] = _zeros(shape, np.dtype(TYPES[given.type]))

    def read(self, name: str) -> GraphTask:
        """Return a task; on first use its files are read. Raises `IncompatibleModule`, `StorageError`."""
        with self._reading:
            if name not in self.tasks:
                self.tasks[name] = self._read(name)
            return self.tasks[name]

    def _read(self, name: str) -> GraphTask:
        arrays = load_arrays(inside(self.folder, f"{TASKS}/{name}.safetensors"))
        told = read_json(inside(self.folder, f"{TASKS}/{name}.json"), MODULE)
        shelf, slot = self._places.get(name, (-1, 0))
        for weight, array in arrays.items():
            if weight in HEAD:
                continue
            stack = self.stacks.get(stack_name(shelf, weight))
            if stack is None or (stack.shape[1:], stack.dtype) != (array.shape, array.dtype):
                raise IncompatibleModule(
                    f"{TASKS}/{name}.safetensors holds other adapters than the graph takes",
                    where=str(self.folder),
                    got=f"{weight} {array.shape} {array.dtype}",
                    do="export the bank again",
                )
            stack[slot] = array
        return GraphTask(tuple(told["roles"]), told["facts"], {part: arrays[part] for part in HEAD}, shelf, slot)

    def logits(self, wanted: Mapping[str, Sequence[Example]]) -> dict[str, Logits]:
        """Return each task's logits for its examples; rows of all tasks share batches. Raises as `read`."""
        tasks = {name: self.read(name) for name in wanted}
        routes = {name: (one.shelf, one.slot) if one.slot else None for name, one in tasks.items()}
        tokens = tokens_of(self.reader, wanted, {name: one.roles for name, one in tasks.items()}, routes)
        parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in wanted}
        order: dict[str, list[int]] = {name: [] for name in wanted}  # numbers of the units in `parts`, in their order
        for batch in with_little_padding(tokens.sizes, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE, PASS_COST):
            units = [tokens.units[number] for number in sorted(batch.tolist())]
            for name, (found, answered) in self._answer(tokens, units).items():
                parts[name].append(found)
                order[name] += answered
        whole = {}
        for name in wanted:
            encoded, places, asked = tokens.answered(name, order[name])
            logits = in_example_order(self.tasks[name].facts, encoded, np.concatenate(parts[name]), places)
            whole[name] = logits if asked is None else logits[asked]
        return whole

    def _answer(self, tokens: TaskTokens, units: Sequence[Unit]) -> dict[str, tuple[NDArray[np.float64], list[int]]]:
        """Run one batch; return each task's logits and the numbers of its units."""
        own = [list(tokens.sequences(unit)) for unit in units]
        sequences = [sequence for listed in own for sequence in listed]
        arrays: Arrays = dict(self.reader.arrays(tokens.merged, sequences))
        for shelf in self._shelves:
            tasks = [self.tasks[unit.tasks[0]] for unit in units]
            slots = [one.slot if one.shelf == shelf else 0 for one in tasks]
            arrays[slot_name(shelf)] = np.repeat(np.array(slots, np.int64), [len(listed) for listed in own])
        given = {name: self.stacks[name] if name in self.stacks else arrays[name] for name in self._inputs}
        read = dict(zip(self._outputs, run_graph(self.session, given), strict=True))
        starts = np.cumsum([0, *map(len, own)]).tolist()
        asked: dict[str, list[int]] = {}
        for place, unit in enumerate(units):
            for name in unit.tasks:
                asked.setdefault(name, []).append(place)
        found = {}
        for name, places in asked.items():
            rows = [row for place in places for row in range(starts[place], starts[place + 1])]
            encoded = tokens.of_task(name)
            some = _features(read, rows, [sequences[row] for row in rows], tokens.merged, encoded.words is not None)
            logits = self.tasks[name].logits(some, encoded.towers, encoded.words is not None)
            found[name] = logits, [units[place].number for place in places]
        return found


def _features(
    read: Mapping[str, NDArray[Any]], rows: Sequence[int], sequences: Sequence[int], merged: Encoded, words: bool
) -> Arrays:
    """Return the features of these rows of a batch: pooled (S, R), or those of each word (W, D)."""
    if not words:
        return {name: one[list(rows)] for name, one in read.items() if one.ndim == 2}
    assert merged.words is not None
    owners = [row for row, own in zip(rows, sequences, strict=True) for _ in merged.words.first[own]]
    places = [place for own in sequences for place in merged.words.first[own]]
    return {name: one[owners, places] for name, one in read.items() if one.ndim == 3}


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros that take memory only where they are written to, page by page; NumPy's own come in large pages."""
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), dtype, int(np.prod(shape))).reshape(shape)


def open_tasks(folder: Path, description: Mapping[str, Any]) -> GraphOfTasks:
    """Open the graph of an exported bank; its tasks are read on first use. Raises as `open_session`, `open_reader`."""
    export = description["export"]
    return GraphOfTasks(open_session(folder / GRAPH), open_reader(folder, export["reader"]), folder, export["shelves"])
