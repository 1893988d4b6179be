"""ELMo as AllenNLP and bilm-tf publish it: options.json and lm_weights.hdf5, read into the network of `nn.bilm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.errors import IncompatibleModule, StorageError
from graftwork.io.extras import extra
from graftwork.io.files import require_finite, storage_errors
from graftwork.io.plain_files import inside, open_plain
from graftwork.nn.bilm import BiLM, BiLMShape
from graftwork.pretrained.model_json import checked_json, require_modest
from graftwork.pretrained.network_config import require_room

if TYPE_CHECKING:
    import h5py

OPTIONS, WEIGHTS = ("*options.json", "*weights.hdf5")  # published files prefix these names with the network's sizes
MOST_UNPACKED = 8  # maximum unpacked bytes / file bytes: trained weights hardly compress
FORGET = 1.0  # TensorFlow's cell adds this to the forget gate's bias at run time


def published_files(folder: Path) -> tuple[Path, Path]:
    """Return the options and weights files in a folder. Raises `StorageError` unless there is one of each."""
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
    """Read the network of these two files, in fp32.

    Raises `StorageError` for an unreadable file, `ConfigError` without h5py or for invalid options, and
    `IncompatibleModule` for weights that do not match the options.
    """
    network = BiLM(read_options(options, weights.stat().st_size // 2))
    with _opened(weights) as file, torch.no_grad():
        found = dict(_tensors(network, file, weights))
    require_finite(found, weights)
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


def read_options(path: Path, stored: int | None) -> BiLMShape:
    """Read the network's sizes from AllenNLP's options.json or from our config.json.

    Raises `ConfigError`, and `StorageError` for absurd sizes or far more than `stored` weights (None: fresh weights).
    """
    content = checked_json(path)
    require_modest({part: content[part] for part in ("char_cnn", "lstm") if part in content}, path)
    shape = BiLMShape.of(content, str(path))
    require_room(partial(BiLM, shape), stored, path)
    return shape


def _opened(weights: Path) -> h5py.File:
    with extra("elmo", "reading ELMo's weights, which are HDF5,", where=str(weights)):
        import h5py
    with storage_errors(weights):
        inside(weights.parent, weights.name)
        open_plain(weights).close()
    try:
        return h5py.File(weights, "r")
    except OSError as error:
        raise StorageError(f"not a whole HDF5 file: {error}", where=str(weights), do="download it again") from None


def _tensors(network: BiLM, file: h5py.File, where: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield (name in our network, tensor). TensorFlow stores the weights of linear layers as (in, out)."""

    def read(path: str) -> NDArray[np.float32]:
        values: NDArray[np.float32] = np.asarray(_own(file, path, where)[...], dtype=np.float32)
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


def _own(file: h5py.File, path: str, where: Path) -> h5py.Dataset:
    """Return an array stored in this file. Raises `IncompatibleModule` if missing, `StorageError` for a link."""
    import h5py

    group: Any = file
    for part in path.split("/"):
        link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
        if link is None:
            raise IncompatibleModule(
                "the weights are not whole", where=str(where), got=f"no {path}", do="get the file again"
            )
        if not isinstance(link, h5py.HardLink):
            raise StorageError(f"{path} is a link", where=str(where), expected="arrays that are in the file itself")
        group = group[part]
    if not isinstance(group, h5py.Dataset) or group.dtype.kind != "f":
        raise IncompatibleModule(f"{path} is no array of numbers", where=str(where), do="get the file again")
    if group.external or group.is_virtual:
        raise StorageError(
            f"the numbers of {path} are in another file", where=str(where), expected="arrays in the file itself"
        )
    if group.nbytes > MOST_UNPACKED * where.stat().st_size:
        raise StorageError(
            f"{path} unpacks to far more than the file holds",
            where=str(where),
            got=f"{group.nbytes:,} bytes",
            expected=f"at most {MOST_UNPACKED} times the file",
        )
    return group


def _direction(read: Any, path: str) -> Mapping[str, NDArray[np.float32]]:
    """Convert one LSTM: TensorFlow orders gates input, candidate, forget, output, and inputs before recurrence."""
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
