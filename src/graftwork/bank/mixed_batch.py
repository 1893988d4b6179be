"""Mixed batches: rows of any tasks, kinds and methods, answered in one forward pass of their shared frozen backbone.

Every row of a batch runs through the same network. At adapted sites each row is changed by the adapters of its own
task, many tasks in one batched product. Then heads and probes take the states of their rows, and a method with blocks
of its own continues from the states below them. A text is tokenised once, and runs once for all tasks that change
nothing in the network.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from graftwork.bank.stacked_adapters import Chunks, Shelf, Stretch, hooked_adapters, shape_of
from graftwork.core.backbone import Backbone, Features
from graftwork.core.example import Example
from graftwork.core.hidden_states import BatchPart, BatchStates, Rows
from graftwork.core.kind import Kind
from graftwork.core.method import AdapterFitted, Fitted, Logits, ReadsStates, WritesAloud
from graftwork.core.model import Stacks
from graftwork.core.task import Task
from graftwork.core.writing import Tell
from graftwork.errors import UnknownName
from graftwork.machine.memory import in_halves
from graftwork.module.calibration import at_temperature, temperature_of
from graftwork.module.predict_many import Answer, windows_by_task
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds
from graftwork.train.answer import states_up_to
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_example_order
from graftwork.train.batch_tokens import TaskTokens, Unit, tokens_of
from graftwork.train.batches import with_little_padding

PASS_COST = {torch.float32: 256, torch.bfloat16: 512}  # cost of one more forward pass on a CPU, in positions of padding
Window = Sequence[tuple[str, Example]]  # a task's name and an example, for each row


@dataclass(frozen=True)
class AdapterPlace:
    """The shelf and slot that hold the adapters of a task."""

    number: int  # of the shelf
    shelf: Shelf
    slot: int

    @property
    def route(self) -> tuple[int, int]:
        """A key (shelf, slot): rows with equal routes pass the same adapters."""
        return self.number, self.slot


@dataclass(frozen=True)
class Resident:
    """A loaded task, predicted by adapters on a shelf, from states of the frozen backbone, or on its own."""

    task: Task
    kind: Kind
    roles: tuple[str, ...]
    facts: Mapping[str, Any]
    temperature: float  # of its probabilities
    place: AdapterPlace | None = None  # adapters on a shelf
    head: nn.Module | None = None  # the head, if on a shelf
    reader: ReadsStates | None = None
    depth: int = 0  # depth up to which states are read
    fitted: Fitted | None = None  # predicts on its own


class Mixture:
    """The tasks of one backbone, and those that need none. Thread-safe."""

    def __init__(self, tokens_at_once: int = TOKENS_AT_ONCE) -> None:
        self.tokens_at_once = tokens_at_once  # tokens of a batch, padding included
        self._residents: dict[str, Resident] = {}
        self._shelves: dict[tuple[Any, ...], tuple[int, Shelf]] = {}
        self._backbone: Backbone | None = None  # a twin: hooks on it affect nobody else
        self._sites: dict[str, nn.Module] = {}
        self._lock = threading.RLock()

    def put(self, name: str, module: TaskModule) -> None:
        """Add or replace a task. A module whose adapters were copied to a shelf is not needed any more."""
        with self._lock:
            backbone = module.backbone
            if backbone is not None and self._backbone is None and not backbone.card.writes:  # those run alone
                self._backbone = backbone.twin()
                self._sites = dict(self._backbone.module.named_modules())
            resident = self._resident_of(module)
            self.drop(name)
            self._residents[name] = resident

    def drop(self, name: str) -> None:
        """Remove a task, if present."""
        with self._lock:
            gone = self._residents.pop(name, None)
            if gone is not None and gone.place is not None:
                gone.place.shelf.drop(gone.place.slot)

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Tell | None = None) -> list[Answer]:
        """Predict every row by its task; `Kind.decode` makes the predictions. Raises `UnknownName`, `OutOfMemory`.

        `tell` is called with the texts of rows while they are written, for tasks that support it.
        """
        answers: list[Answer] = []
        with self._lock:
            for window, asked in self._windows(rows):
                found: dict[int, Answer] = {}
                for name, places, logits in self._logits(window, asked, _told_from(len(answers), tell)):
                    resident = self._residents[name]
                    tempered = at_temperature(logits, resident.temperature)
                    decoded = resident.kind.decode(tempered, resident.task, [window[i][1] for i in places])
                    found |= zip(places, decoded, strict=True)
                answers += [found[i] for i in range(len(window))]
        return answers

    def logits(self, rows: Sequence[tuple[str, Example]]) -> list[NDArray[np.float64]]:
        """Return the logits of every row: (C,), or (n, C) for n words or choices. Raises `UnknownName`."""
        found: list[NDArray[np.float64]] = []
        with self._lock:
            for window, asked in self._windows(rows):
                named = {
                    i: row
                    for _, places, logits in self._logits(window, asked)
                    for i, row in zip(places, logits, strict=True)
                }
                found += [named[i] for i in range(len(window))]
        return found

    def _windows(self, rows: Sequence[tuple[str, Example]]) -> Iterator[tuple[Window, Mapping[str, list[int]]]]:
        """Split the rows into windows whose tokens fit into memory together, as `windows_by_task`. Raises
        `UnknownName`."""
        for name in dict.fromkeys(name for name, _ in rows):
            if name not in self._residents:
                raise UnknownName("task", name, self._residents)
        yield from windows_by_task(rows)

    def _resident_of(self, module: TaskModule) -> Resident:
        """Put the adapters of a module onto a shelf if they can be stacked; else keep the module as it is."""
        fitted, backbone = module.fitted, module.backbone
        kind, temperature = kinds.get(module.task.kind), temperature_of(module.description)
        like = partial(Resident, module.task, kind, module.roles, fitted.facts, temperature)
        if backbone is None or not isinstance(fitted, ReadsStates):
            return like(fitted=fitted)
        hanging = fitted.adapters if isinstance(fitted, AdapterFitted) else {}
        adapters = {site: adapter for site, adapter in hanging.items() if isinstance(adapter, Stacks)}
        if isinstance(fitted, AdapterFitted) and adapters and len(adapters) == len(hanging) and backbone.rows_apart:
            return like(place=self._placed(adapters, backbone), head=fitted.head)
        return like(fitted=fitted) if fitted.depth is None else like(reader=fitted, depth=fitted.depth)

    def _placed(self, adapters: Mapping[str, Stacks], backbone: Backbone) -> AdapterPlace:
        shape = shape_of(adapters)
        if shape not in self._shelves:
            weights = next(backbone.module.parameters())
            self._shelves[shape] = (len(self._shelves), Shelf(adapters, weights.dtype, weights.device))
        number, shelf = self._shelves[shape]
        return AdapterPlace(number, shelf, shelf.put(adapters))

    def _logits(
        self, window: Window, asked: Mapping[str, list[int]], tell: Tell | None = None
    ) -> Iterator[tuple[str, list[int], Logits]]:
        """Yield each task, the positions of its rows in the window, and their logits."""
        shared = [name for name in asked if self._residents[name].fitted is None]
        if shared:
            assert self._backbone is not None
            wanted = {name: [window[i][1] for i in asked[name]] for name in shared}
            for name, logits in _Round(self, self._backbone, wanted).run():
                yield name, asked[name], logits
        for name in asked.keys() - set(shared):
            fitted = self._residents[name].fitted
            assert fitted is not None
            examples = [window[i][1] for i in asked[name]]
            if tell is not None and isinstance(fitted, WritesAloud):
                yield name, asked[name], fitted.written_aloud(examples, _told_at(asked[name], tell))
            else:
                yield name, asked[name], fitted.logits(examples)


class _Round:
    """The computation of the logits for one window: some examples for each of several tasks."""

    def __init__(self, mixture: Mixture, backbone: Backbone, wanted: Mapping[str, Sequence[Example]]):
        self.mixture, self.backbone = mixture, backbone
        self.residents = {name: mixture._residents[name] for name in wanted}
        routes = {name: one.place.route if one.place else None for name, one in self.residents.items()}
        roles = {name: one.roles for name, one in self.residents.items()}
        self.tokens: TaskTokens = tokens_of(backbone, wanted, roles, routes)
        self.parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in wanted}
        self.order: dict[str, list[int]] = {name: [] for name in wanted}  # numbers of the units in `parts`

    @torch.inference_mode()
    def run(self) -> Iterator[tuple[str, Logits]]:
        """Yield each task's logits, in the order of its examples."""
        weights = next(self.backbone.module.parameters())
        least = PASS_COST.get(weights.dtype, math.inf) if weights.device.type == "cpu" else math.inf
        for batch in with_little_padding(self.tokens.sizes, self.mixture.tokens_at_once, EXAMPLES_AT_ONCE, least):
            for answered in in_halves(sorted(batch.tolist()), self._answer):
                for name, (part, units) in answered.items():
                    self.parts[name].append(part)
                    self.order[name] += units
        for name, resident in self.residents.items():
            encoded, places, asked = self.tokens.answered(name, self.order[name])
            logits = in_example_order(resident.facts, encoded, np.concatenate(self.parts[name]), places)
            yield name, logits if asked is None else logits[asked]

    def _answer(self, numbers: Sequence[int]) -> dict[str, tuple[NDArray[np.float64], list[int]]]:
        """Compute one batch; return, per task, its logits and the numbers of its units. Keep nothing else.

        The units are in the order of their routes, so that rows of one route are contiguous.
        """
        tokens = self.tokens
        units = [tokens.units[i] for i in numbers]
        sequences = [tokens.sequences(unit) for unit in units]
        starts = np.cumsum([0, *map(len, sequences)]).tolist()
        inputs = self.backbone.collate(tokens.merged, [sequence for own in sequences for sequence in own])
        with hooked_adapters(self.mixture._sites, starts[-1], self._stretches(units, starts)):
            seen = BatchStates(self.backbone, inputs, states_up_to(self.backbone, inputs, self._depth(units)), 1)
        asked: dict[str, list[int]] = {}
        for place, unit in enumerate(units):
            for name in unit.tasks:
                asked.setdefault(name, []).append(place)
        found: dict[str, tuple[NDArray[np.float64], list[int]]] = {}
        for name, places in asked.items():
            encoded = tokens.of_task(name)
            part = seen.part(_rows(places, starts), encoded.towers, encoded.words is not None)
            found[name] = self._read(self.residents[name], part), [units[i].number for i in places]
        return found

    def _stretches(self, units: Sequence[Unit], starts: Sequence[int]) -> list[Stretch]:
        """Return, for each shelf, the rows that pass its adapters."""
        slots: dict[int, list[int]] = {}
        begin: dict[int, int] = {}
        shelves: dict[int, Shelf] = {}
        for unit, start, end in zip(units, starts, starts[1:], strict=False):
            place = self.residents[unit.tasks[0]].place
            if place is not None:
                begin.setdefault(place.number, start)
                shelves[place.number] = place.shelf
                slots.setdefault(place.number, []).extend([place.slot] * (end - start))
        return [
            Stretch(slice(begin[number], begin[number] + len(own)), shelves[number], Chunks.of(own))
            for number, own in slots.items()
        ]

    def _depth(self, units: Sequence[Unit]) -> int:
        """Return the number of blocks that must run."""
        readers = [self.residents[name] for unit in units for name in unit.tasks]
        return max(self.backbone.card.blocks if one.reader is None else one.depth for one in readers)

    def _read(self, resident: Resident, part: BatchPart) -> NDArray[np.float64]:
        """Return the logits of a task's rows, (B, C), or (W, C) for words."""
        if resident.reader is not None:
            logits = resident.reader.read(part)
        else:
            assert resident.head is not None
            blocks = self.backbone.card.blocks
            logits = resident.head(Features(part.state(blocks), part.mask, part.joined(blocks)))
        found: NDArray[np.float64] = logits.double().cpu().numpy()
        return found


def _told_from(start: int, tell: Tell | None) -> Tell | None:
    return None if tell is None else lambda row, text: tell(start + row, text)


def _told_at(places: Sequence[int], tell: Tell) -> Tell:
    return lambda row, text: tell(places[row], text)


def _rows(places: Sequence[int], starts: Sequence[int]) -> Rows:
    """Return the sequences of these units in a batch, as a slice if contiguous."""
    if places[-1] - places[0] == len(places) - 1:
        return slice(starts[places[0]], starts[places[-1] + 1])
    return [row for place in places for row in range(starts[place], starts[place + 1])]
