"""Many tasks on one backbone as one ONNX graph: adapters are inputs of the graph, heads are stored outside of it.

The inputs of the graph are tokens, the slot of each row's task, and the stacked weights of all tasks' adapters; at each
adapted place a row is adapted by the weights of its slot. The outputs are pooled features, or the hidden states of
words, at the depths that the tasks' heads use. Slot 0 has weights of zero, which change nothing. Weights are expanded
to fp32 inside the graph, for the rows of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graftwork.core.backbone import Backbone
from graftwork.core.method import AdapterFitted, ReadsStates
from graftwork.core.model import Stacks, hook_into, site_of
from graftwork.io.files import write_bytes, write_json, write_tensors, write_text
from graftwork.module.exported_folder import EXPORTED_BANK
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.ship.compressed_costs import without_speeds
from graftwork.ship.onnx_graph import LENGTH, ROWS, write_graph
from graftwork.ship.onnx_readme import bank_readme_of
from graftwork.ship.onnx_runtime import GRAPH, TOKENIZER, reader_told
from graftwork.ship.onnx_tasks import BIAS, SCALE_OF, SHARES, TASKS, WEIGHT, Arrays, output_name, slot_name, stack_name
from graftwork.targets.linear_head import PooledHead
from graftwork.train.answer import states_up_to
from graftwork.train.probe import Probe


def unfit_in_bank(module: TaskModule) -> str:
    """Return why a task can't share a graph with others, or an empty string."""
    fitted, backbone, name = module.fitted, module.backbone, module.description["method"]["name"]
    if isinstance(fitted, Probe):
        return ""
    if not isinstance(fitted, AdapterFitted) or not isinstance(fitted, ReadsStates):
        return f"{name} has no head on the states of the shared backbone"
    if not fitted.adapters or not all(isinstance(one, Stacks) for one in fitted.adapters.values()):
        return f"{name} has weights of its own in place of the shared backbone's: it needs a graph of its own"
    if backbone is None or not backbone.rows_apart:
        return "the backbone mixes the rows of a batch, so each row can't have the adapter of its own task"
    if type(fitted.head) is not PooledHead:
        return f"the head of {name} is not one linear layer"
    return ""


@dataclass
class ShelfPlan:
    """A shelf: tasks whose adapters have the same places, and stored weights of the same shapes and types."""

    number: int
    how: dict[str, type[Stacks]]  # place -> class of adapters
    like: Arrays  # "place|weight" -> an array of this shape and type: the first task's
    tasks: list[str] = field(default_factory=list)


def stored_weights(module: TaskModule, stored_as: str) -> Arrays:
    """Return "place|weight" -> weights of a task's adapters as they are stored: in "fp16", "fp32" or "int8"."""
    if isinstance(module.fitted, Probe):
        return {}
    assert isinstance(module.fitted, AdapterFitted)
    adapters: dict[str, Any] = dict(module.fitted.adapters)
    found: Arrays = {}
    for place, adapter in adapters.items():
        for name, weight in adapter.weights().items():
            array = weight.detach().float().cpu().numpy()
            if stored_as == "int8" and array.ndim > 1:
                found |= _in_8_bits(f"{place}|{name}", array)
            else:
                with np.errstate(over="ignore"):  # the comparison of logits finds infinities
                    found[f"{place}|{name}"] = array if stored_as == "fp32" else array.astype(np.float16)
    return found


def _in_8_bits(name: str, array: NDArray[np.float32]) -> Arrays:
    """Return a matrix as 8-bit integers, with a scale for each row, or each column if these are the longer ones."""
    largest = np.abs(array).max(axis=int(np.argmax(array.shape)), keepdims=True)
    scale = np.where(largest > 0, largest / np.float32(127), np.float32(1))
    return {name: np.rint(array / scale).astype(np.int8), name + SCALE_OF: scale}


def shelves_of(modules: Mapping[str, TaskModule], weights: Mapping[str, Arrays]) -> list[ShelfPlan]:
    """Group the tasks with adapters by the places of these, and the shapes and types of their stored `weights`."""
    plans: dict[Any, ShelfPlan] = {}
    for task, module in modules.items():
        if not weights[task]:
            continue
        assert isinstance(module.fitted, AdapterFitted)
        how: dict[str, Any] = {place: type(one) for place, one in module.fitted.adapters.items()}
        key = (*how.items(), *((name, one.shape, one.dtype) for name, one in weights[task].items()))
        plans.setdefault(key, ShelfPlan(len(plans), how, weights[task])).tasks.append(task)
    return list(plans.values())


def head_of(module: TaskModule) -> Arrays:
    """Return the head: weight (C, P), bias (C,), and the shares (L + 1,) of the depths it uses."""
    fitted, backbone = module.fitted, module.backbone
    assert backbone is not None
    if isinstance(fitted, Probe):
        found = {WEIGHT: fitted.weight, BIAS: fitted.bias, SHARES: fitted.shares}
    else:
        assert isinstance(fitted, AdapterFitted) and isinstance(fitted.head, PooledHead)
        shares = torch.zeros(backbone.card.blocks + 1)
        shares[-1] = 1.0
        found = {WEIGHT: fitted.head.out.weight, BIAS: fitted.head.out.bias, SHARES: shares}
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in found.items()}


def outputs_of(modules: Mapping[str, TaskModule]) -> list[tuple[int, bool]]:
    """Return the outputs that the heads need, sorted: (depth, whether states of words or pooled features)."""
    return sorted(
        {
            (int(depth), kinds.get(module.task.kind).per_word)
            for module in modules.values()
            for depth in np.flatnonzero(head_of(module)[SHARES])
        }
    )


class BankNetwork(nn.Module):
    """The backbone, with hooks at the adapted places that adapt each row by the weights of its slot."""

    def __init__(
        self,
        backbone: Backbone,
        shelves: Sequence[ShelfPlan],
        outputs: Sequence[tuple[int, bool]],
        names: Sequence[str],
    ):
        super().__init__()
        self.backbone, self.outputs, self.names = backbone.twin(), outputs, tuple(names)
        self.network = self.backbone.module
        self._given: dict[str, Tensor] = {}
        sites = dict(self.network.named_modules())
        for shelf in shelves:
            for place, how in shelf.how.items():
                site, at = site_of(place)
                hook_into(sites[site], RowAdapters(self._given, shelf, place, how), at)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute the outputs: pooled (S, R), or states (S, T, D)."""
        given = dict(zip(self.names, tensors, strict=True))
        self._given.clear()
        self._given |= {name: tensor for name, tensor in given.items() if not name.endswith(("_ids", "_mask"))}
        inputs = {name: tensor for name, tensor in given.items() if name not in self._given}
        states = states_up_to(self.backbone, inputs, max(depth for depth, _ in self.outputs))
        mask = inputs["attention_mask"].bool()
        return tuple(
            states[depth] if words else self.backbone.pool(states[depth], mask) for depth, words in self.outputs
        )


class RowAdapters(nn.Module):
    """The adapters of one place: each row's slot selects its weights from a shelf, which is an input of the graph."""

    def __init__(self, given: dict[str, Tensor], shelf: ShelfPlan, place: str, how: type[Stacks]):
        super().__init__()
        self.given, self.shelf, self.place, self.how = given, shelf, place, how

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Adapt (S, …, in), (S, …, out) -> (S, …, out)."""
        slot = self.given[slot_name(self.shelf.number)]  # (S,)
        given = {
            name.partition("|")[2]: self.given[stack_name(self.shelf.number, name)][slot].float()
            for name in self.shelf.like
            if name.partition("|")[0] == self.place
        }
        weights = {name: one for name, one in given.items() if not name.endswith(SCALE_OF)}
        weights |= {name: one * given[name + SCALE_OF] for name, one in weights.items() if name + SCALE_OF in given}
        rows = slot.shape[0]
        x3, y3 = x.reshape(rows, -1, x.shape[-1]), y.reshape(rows, -1, y.shape[-1])
        return self.how.adapt(x3, y3, weights).reshape(y.shape)


def write_bank(modules: Mapping[str, TaskModule], folder: Path, stored_as: Mapping[str, str]) -> None:
    """Write the graph of all tasks, the tokenizer, and the description and the weights of each task.

    Adapters are stored, and given to the graph, in fp16, except for tasks that `stored_as` maps to "fp32" or "int8".
    """
    first = next(iter(modules.values()))
    backbone = first.backbone
    assert isinstance(backbone, TransformerBackbone)
    weights = {name: stored_weights(one, stored_as.get(name, "fp16")) for name, one in modules.items()}
    shelves, outputs = shelves_of(modules, weights), outputs_of(modules)
    encoded = backbone.encode(first.self_test_examples()[:4])
    inputs = backbone.collate(encoded, range(len(encoded.ids)))
    inputs.pop("words", None)
    others: dict[str, list[str]] = {}
    for shelf in shelves:
        inputs[slot_name(shelf.number)] = torch.zeros(len(encoded.ids), dtype=torch.int64)
        others[slot_name(shelf.number)] = [ROWS]
        for name, one in shelf.like.items():
            inputs[stack_name(shelf.number, name)] = torch.from_numpy(np.zeros((2, *one.shape), one.dtype))
            others[stack_name(shelf.number, name)] = [f"slots_{shelf.number}"]
    network = BankNetwork(backbone, shelves, outputs, list(inputs))
    free = {output_name(*one): [ROWS, LENGTH] if one[1] else [ROWS] for one in outputs}
    write_graph(network, inputs, free, folder / GRAPH, others)
    write_bytes(folder / TOKENIZER, backbone.tokenizer.to_str().encode())
    (folder / TASKS).mkdir(exist_ok=True)
    for name, module in modules.items():
        write_tensors(folder / TASKS / f"{name}.safetensors", head_of(module) | weights[name])
        costs = without_speeds(module.description.get("costs", {}))
        described = dict(module.description) | {"precision": "fp32", "costs": costs}
        write_json(folder / TASKS / f"{name}.json", described)
    told = {
        "to": "onnx",
        "reader": reader_told(backbone.reader),
        "shelves": [shelf.tasks for shelf in shelves],
        "tasks": list(modules),
    }
    write_json(folder / EXPORTED_BANK, {"backbone": first.description["backbone"], "export": told})
    write_text(folder / "README.md", bank_readme_of(first, list(modules)))
