"""Digests of the parts of an export to ONNX, recorded in its self-test: if that fails, they show which part changed.

Imports no torch.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT
from graftwork.io.extras import MissingExtra, extra
from graftwork.io.files import digest, read_json
from graftwork.io.number_arrays import load_arrays
from graftwork.ship.onnx_runtime import GRAPH, TOKENIZER, open_reader
from graftwork.ship.onnx_tasks import HEAD, TASKS

MASK = "attention_mask"
POOLINGS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
MOST_AT_EDGE = 0.005  # share of a matrix's values at its largest magnitude, above which it counts as saturated
LISTED = 2  # maximum number of weights that a message names


def parts_of(folder: Path, description: Mapping[str, Any], examples: Sequence[Example]) -> dict[str, Any]:
    """Return the parts of an exported task, as JSON: digests of tokens, thresholds and weights; counts of operators."""
    return _read(folder, description["export"]["reader"], description, examples) | {"graph": graph_parts(folder)}


def parts_of_task(folder: Path, reader: Mapping[str, Any], name: str, examples: Sequence[Example]) -> dict[str, Any]:
    """Return the parts of a task of an exported bank, without the graph, which all tasks share."""
    return _read(folder, reader, read_json(folder / TASKS / f"{name}.json"), examples) | _weights_of_task(folder, name)


def changed_part(
    folder: Path, description: Mapping[str, Any], recorded: Mapping[str, Any], examples: Sequence[Example]
) -> str:
    """Return which part of an exported task differs from what was recorded, or an empty string."""
    found = _read(folder, description["export"]["reader"], description, examples)
    return _other_reading(found, recorded) or changed_graph(
        folder, recorded.get("graph", {}), len(description["task"]["labels"]), str(description["backbone"]["pooling"])
    )


def changed_task(
    folder: Path, export: Mapping[str, Any], name: str, recorded: Mapping[str, Any], examples: Sequence[Example]
) -> str:
    """Return which part of a task of an exported bank differs from what was recorded, or an empty string."""
    told = read_json(folder / TASKS / f"{name}.json")
    found = _read(folder, export["reader"], told, examples) | _weights_of_task(folder, name)
    if reading := _other_reading(found, recorded):
        return reading
    others = {one: _weights_of_task(folder, one) for one in export["tasks"] if one != name}
    for part in ("adapters", "head"):
        if part in recorded and found[part] != recorded[part]:
            owner = next((f": they are those of {one}" for one, own in others.items() if own[part] == found[part]), "")
            weights = "the adapters" if part == "adapters" else "the head's weights"
            return f"{weights} in {TASKS}/{name}.safetensors are not those that were exported{owner}"
    return changed_graph(folder, export.get("graph", {}), len(told["task"]["labels"]), told["backbone"]["pooling"])


def changed_graph(folder: Path, recorded: Mapping[str, Any], outputs: int, pooling: str) -> str:
    """Return how the graph differs from what was recorded, or an empty string; `outputs` is the number of logits."""
    try:
        model = _model(folder)
    except MissingExtra:  # onnxruntime runs without the package onnx, which is needed to read a graph
        return ""
    found = _parts(model)
    if not recorded or found == recorded:
        return ""
    if found["readers_of_mask"] != recorded["readers_of_mask"]:
        return f"{GRAPH} reads {MASK} elsewhere than when it was made: padding may count as text"
    counts = {op: found["operators"].get(op, 0) - number for op, number in recorded["operators"].items()}
    counts |= {op: number for op, number in found["operators"].items() if op not in recorded["operators"]}
    odd = ", ".join(f"{number:+d} {op}" for op, number in sorted(counts.items()) if number)
    if any(counts.get(op) for op in POOLINGS):
        return f"{GRAPH} pools otherwise than by the {pooling} of its description ({odd})"
    if odd:
        return f"{GRAPH} has other operators than when it was made ({odd})"
    differing = [
        _described(array, own, outputs)
        for array, own in zip(_arrays(model), recorded["weights"], strict=False)
        if _mark(array) != own
    ]
    return f"{GRAPH} has other weights than when it was made: {'; '.join(differing[:LISTED])}" if differing else ""


def _read(
    folder: Path, reader: Mapping[str, Any], description: Mapping[str, Any], examples: Sequence[Example]
) -> dict[str, Any]:
    ids = open_reader(folder, reader).encode(examples).ids
    thresholds = description["facts"].get(THRESHOLDS_FACT)
    return {"tokens": digest([list(map(int, one)) for one in ids]), "thresholds": digest(thresholds)}


def _other_reading(found: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    if found["tokens"] != recorded.get("tokens", found["tokens"]):
        return f"{TOKENIZER} splits the texts of the self-test into other tokens than when it was exported"
    if found["thresholds"] != recorded.get("thresholds", found["thresholds"]):
        return "the thresholds are others than when it was exported"
    return ""


def _weights_of_task(folder: Path, name: str) -> dict[str, str]:
    arrays = load_arrays(folder / TASKS / f"{name}.safetensors")
    head = {part: _mark(arrays[part]) for part in HEAD if part in arrays}
    return {
        "head": digest(head),
        "adapters": digest({place: _mark(array) for place, array in sorted(arrays.items()) if place not in HEAD}),
    }


def graph_parts(folder: Path) -> dict[str, Any]:
    """Return the parts of the graph, which all tasks of a bank share."""
    return _parts(_model(folder))


def _parts(model: Any) -> dict[str, Any]:
    nodes = model.graph.node
    return {
        "operators": dict(sorted(Counter(node.op_type for node in nodes).items())),
        "readers_of_mask": sorted(node.op_type for node in nodes if MASK in node.input),
        "weights": [_mark(array) for array in _arrays(model)],
    }


def _model(folder: Path) -> Any:
    with extra("onnx", "a look into a graph", str(folder)):
        import onnx
    return onnx.load(folder / GRAPH)


def _arrays(model: Any) -> Iterator[NDArray[Any]]:
    """Yield the matrices and vectors of the graph, in its order."""
    from onnx import numpy_helper

    constants = [one.t for node in model.graph.node if node.op_type == "Constant" for one in node.attribute]
    for tensor in [*model.graph.initializer, *constants]:
        if tensor.dims:
            yield numpy_helper.to_array(tensor)


def _mark(array: NDArray[Any]) -> list[str]:
    """Return a digest of an array, and a sum of its bytes that does not depend on the order of its values."""
    content = np.ascontiguousarray(array)
    shape = str(content.shape).encode()
    whole = hashlib.sha256(shape + content.tobytes()).hexdigest()[:16]
    return [
        whole,
        str(
            sum(
                int(content.view(np.uint8)[..., at :: content.itemsize].sum(dtype=np.uint64)) << 8 * at
                for at in range(content.itemsize)
            )
        ),
    ]


def _described(array: NDArray[Any], recorded: Sequence[str], outputs: int) -> str:
    head = array.ndim == 2 and outputs in array.shape and min(array.shape) == outputs
    name = f"{'the head' if head else 'a matrix' if array.ndim == 2 else 'an array'} of {tuple(array.shape)}"
    if not np.isfinite(array).all():
        return f"{name} has overflowed: {np.mean(~np.isfinite(array)):.0%} of it is not finite"
    largest = np.abs(array).max(initial=0)
    if not largest:
        return f"{name} is zero"
    if _mark(array)[1] == recorded[1]:
        return f"{name} has its numbers in another order"
    edge = float(np.mean(np.abs(array) >= largest * 0.995))
    if edge > MOST_AT_EDGE and array.size > 1 / MOST_AT_EDGE:
        return f"{name} is saturated: {edge:.1%} of it is at its largest number"
    return f"{name} is another"
