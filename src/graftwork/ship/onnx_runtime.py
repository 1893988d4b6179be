"""Prediction from a folder exported to ONNX, by its tokenizer and onnxruntime. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.extras import extra
from graftwork.machine.environment import usable_cores
from graftwork.pretrained.tokenising import TextReader
from graftwork.pretrained.tokenizer_file import read_tokenizer
from graftwork.train.answer_order import batches, in_example_order

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"
PASS_COST = 256  # cost of one more run of the graph, in positions of padding


@dataclass
class OnnxNetwork:
    """A graph that gives logits. Implements `Fitted` and `CountsCut`."""

    session: InferenceSession
    reader: TextReader
    facts: Mapping[str, Any]
    trained_parameters: int

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return (N, C), a row per example, or (W, C), a row per word or choice."""
        encoded = self.reader.encode(examples)
        order = batches(encoded, at_least=PASS_COST)
        names = [given.name for given in self.session.get_inputs()]
        parts: list[NDArray[np.float64]] = []
        for rows in order:
            arrays = self.reader.arrays(encoded, encoded.sequences(rows))
            (logits,) = run_graph(self.session, {name: arrays[name] for name in names})
            parts.append(np.asarray(logits, dtype=np.float64))
        return in_example_order(self.facts, encoded, np.concatenate(parts), np.concatenate(order))

    def cut(self, examples: Sequence[Example]) -> int:
        """Return how many of these examples are truncated."""
        return self.reader.encode(examples).cut if examples else 0

    def delta(self) -> Mapping[str, NDArray[Any]]:
        """Raise `ConfigError`: the graph holds backbone and delta together."""
        raise ConfigError("an exported folder has no delta of its own", do="use the module that it was exported from")

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Raise `ConfigError`: onnxruntime counts no operations."""
        raise ConfigError("the FLOPs of an exported folder are not known", do="see those of its task module")


def open_network(folder: Path, description: Mapping[str, Any]) -> OnnxNetwork:
    """Open the graph and the tokenizer of an exported folder. Raises `IncompatibleModule`, `MissingExtra`."""
    session = open_session(folder / GRAPH)
    reader = open_reader(folder, description["export"]["reader"])
    return OnnxNetwork(session, reader, description["facts"], int(description["trained_parameters"]))


def run_graph(session: InferenceSession, arrays: Mapping[str, NDArray[Any]]) -> Sequence[NDArray[Any]]:
    """Return all outputs of a graph. Raises `IncompatibleModule`."""
    try:
        found: Sequence[NDArray[Any]] = session.run(None, dict(arrays))
    except Exception as error:  # its error classes are made at run time and have no common base
        raise IncompatibleModule(
            "onnxruntime can't run the graph",
            where=GRAPH,
            got=str(error).splitlines()[0][:200],
            do="export the task again",
        ) from error
    return found


def reader_told(reader: TextReader) -> dict[str, Any]:
    """Return what `open_reader` needs besides the tokenizer, as JSON."""
    return {
        "max_length": reader.max_length,
        "pad_id": reader.pad_id,
        "towers": reader.towers,
        "token_types": reader.token_types,
    }


def open_reader(folder: Path, told: Mapping[str, Any]) -> TextReader:
    """Open the tokenizer of an exported folder. Raises `IncompatibleModule`, `StorageError`."""
    tokenizer = read_tokenizer(folder / TOKENIZER)
    length = (tokenizer.truncation or {}).get("max_length")
    if length != told["max_length"]:
        raise IncompatibleModule(
            f"{TOKENIZER} truncates at another length than {GRAPH} was made for",
            where=str(folder),
            got=str(length),
            expected=str(told["max_length"]),
            do="export the task again",
        )
    return TextReader(tokenizer, told["pad_id"], told["max_length"], told["towers"], told["token_types"])


def open_session(graph: Path) -> InferenceSession:
    """Open a graph on the CPU, with as many threads as torch would use. Raises `IncompatibleModule`."""
    with extra("onnx", "a folder exported to ONNX", str(graph.parent)):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    options.log_severity_level = 3  # errors only
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its error classes are made at run time and have no common base
        raise IncompatibleModule(
            f"onnxruntime can't open {graph.name}",
            where=str(graph.parent),
            got=str(error).splitlines()[0][:200],
            do="export the task again, or install the version of onnxruntime that it was exported with",
        ) from error


def thread_count() -> int:
    """Return the number of threads: that of torch (`--threads`) if it is imported, else the cores of this process."""
    import sys

    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else usable_cores() or 1
