"""ELMo as AllenNLP and bilm-tf publish it: options.json and lm_weights.hdf5, read into the network of `core.bilm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.bilm import BiLM, BiLMShape
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.files import read_json, storage_errors

if TYPE_CHECKING:
    import h5py

OPTIONS, WEIGHTS = (
    "*options.json",
    "*weights.hdf5",
)  # those of the published ones carry the network's sizes before the name
FORGET = 1.0  # what TensorFlow's cell adds to the bias of the forget gate whenever it runs


def published_files(folder: Path) -> tuple[Path, Path]:
    """The options and the weights in a folder. Raises `StorageError` unless there is one of each."""
    found = [sorted(folder.glob(pattern)) for pattern in (OPTIONS, WEIGHTS)]
    for pattern, paths in zip((OPTIONS, WEIGHTS), found, strict=True):
        if len(paths) != 1:
            raise StorageError(
                "not a published ELMo",
                where=str(folder),
                got=f"{len(paths)} files {pattern}" + (f": {', '.join(p.name for p in paths[:3])}" if paths else ""),
                expected="one options.json and one lm_weights.hdf5",
                do="" if folder.is_dir() else "check the path",
            )
    return found[0][0], found[1][0]


def read_published(options: Path, weights: Path) -> BiLM:
    """The network of these two files, in fp32.

    Raises `StorageError` for a file that can't be read, `ConfigError` without h5py or for strange options, and
    `IncompatibleModule` for weights that are not those of the options.
    """
    network = BiLM(BiLMShape.of(read_json(options), str(options)))
    with _opened(weights) as file, torch.no_grad():
        found = dict(_tensors(network, file, weights))
    expected = network.state_dict()
    for name, tensor in found.items():
        if tensor.shape != expected[name].shape:
            raise IncompatibleModule(
                f"the weights have other sizes than {options.name} says",
                where=str(weights),
                got=f"{name} {tuple(tensor.shape)}",
                expected=str(tuple(expected[name].shape)),
            )
    network.load_state_dict(found)
    return network


def _opened(weights: Path) -> h5py.File:
    try:
        import h5py
    except ImportError:
        raise ConfigError("ELMo's weights are in HDF5, which needs h5py", do="pip install 'graftwork[elmo]'") from None
    with storage_errors(weights):
        weights.open("rb").close()
    try:
        return h5py.File(weights, "r")
    except OSError as error:
        raise StorageError(f"not a whole HDF5 file: {error}", where=str(weights)) from None


def _tensors(network: BiLM, file: h5py.File, where: Path) -> Iterator[tuple[str, Tensor]]:
    """Name in our network -> tensor. Maps of TensorFlow are (in, out)."""

    def read(path: str) -> NDArray[np.float32]:
        if path not in file:
            raise IncompatibleModule("the weights are not whole", where=str(where), got=f"no {path}")
        values: NDArray[np.float32] = np.asarray(file[path][...], dtype=np.float32)
        return values

    def tensor(values: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values))

    yield "words.characters", tensor(read("char_embed"))
    for number in range(len(network.words.convolutions)):
        span_first = read(f"CNN/W_cnn_{number}")[0]  # (span, width, filters)
        yield f"words.convolutions.{number}.weight", tensor(span_first.transpose(2, 1, 0))
        yield f"words.convolutions.{number}.bias", tensor(read(f"CNN/b_cnn_{number}"))
    for number in range(len(network.words.highways)):
        for ours, theirs in (("transform", "transform"), ("gate", "carry")):
            yield f"words.highways.{number}.{ours}.weight", tensor(read(f"CNN_high_{number}/W_{theirs}").T)
            yield f"words.highways.{number}.{ours}.bias", tensor(read(f"CNN_high_{number}/b_{theirs}"))
    yield "words.projection.weight", tensor(read("CNN_proj/W_proj").T)
    yield "words.projection.bias", tensor(read("CNN_proj/b_proj"))
    for number in range(network.shape.layers):
        directions = [_direction(read, f"RNN_{side}/RNN/MultiRNNCell/Cell{number}/LSTMCell") for side in (0, 1)]
        for name in directions[0]:
            yield f"layers.{number}.{name}", tensor(np.stack([one[name] for one in directions]))


def _direction(read: Any, path: str) -> Mapping[str, NDArray[np.float32]]:
    """One LSTM: TensorFlow has its gates as input, candidate, forget, output, and inputs above what recurs."""
    weight, bias, projection = read(f"{path}/W_0"), read(f"{path}/B"), read(f"{path}/W_P_0")
    width = projection.shape[1]

    def ordered(values: NDArray[np.float32]) -> NDArray[np.float32]:
        taken, candidate, kept, shown = np.split(values, 4)
        return np.concatenate([taken, kept, candidate, shown])

    bias = ordered(bias)
    bias[len(bias) // 4 : len(bias) // 2] += FORGET
    return {
        "input": ordered(weight[:-width].T),
        "recurrent": ordered(weight[-width:].T),
        "bias": bias,
        "projection": projection.T,
    }
