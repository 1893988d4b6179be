"""Headers of safetensors files. They are written here so that a file can be written tensor by tensor.

A file is 8 bytes with the length of the header, the header in JSON, and the tensors' bytes, contiguous.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.errors import StorageError
from graftwork.io.plain_files import foreign

if TYPE_CHECKING:
    import torch

ABOUT = "__metadata__"
FROM_ITS_SOURCE = "download the file again, if you trust its source"
DTYPES = {  # dtypes that we write, by their torch names
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
ALIGNED = 64  # bytes: the first tensor begins at a multiple of it; later ones are aligned if item sizes never grow


@dataclass(frozen=True)
class TensorPlace:
    """The dtype, shape and byte range of a tensor in its file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int  # bytes after the header
    end: int


@dataclass(frozen=True)
class Contents:
    """The content of a file's header."""

    numbers: Mapping[str, int]  # tensor -> its number of elements, in the order of their bytes
    about: Mapping[str, str]  # `__metadata__`, for people


@dataclass(frozen=True)
class Header:
    """The header of a safetensors file."""

    tensors: Mapping[str, TensorPlace]  # in the order of the header
    about: Mapping[str, str] = field(default_factory=dict)  # `__metadata__`, for people

    def to_bytes(self) -> bytes:
        """Return the bytes at the start of the file, before the tensors' bytes."""
        content: dict[str, Any] = {ABOUT: dict(self.about)} if self.about else {}
        for name, place in self.tensors.items():
            content[name] = {"dtype": place.dtype, "shape": list(place.shape), "data_offsets": [place.begin, place.end]}
        text = json.dumps(content).encode()
        text += b" " * (-(8 + len(text)) % ALIGNED)
        return len(text).to_bytes(8, "little") + text

    @property
    def file_bytes(self) -> int:
        """The length of the whole file."""
        return len(self.to_bytes()) + max((place.end for place in self.tensors.values()), default=0)


def end_to_end(tensors: Iterable[tuple[str, torch.dtype, Iterable[int]]]) -> dict[str, TensorPlace]:
    """Lay out tensors of the given names, dtypes and shapes contiguously."""
    placed, end = dict[str, TensorPlace](), 0
    for name, dtype, shape in tensors:
        kind, sides = DTYPES[str(dtype).removeprefix("torch.")], tuple(shape)
        begin, end = end, end + prod(sides) * dtype.itemsize
        placed[name] = TensorPlace(kind, sides, begin, end)
    return placed


def not_safetensors(path: Path, start: bytes, error: Exception) -> StorageError:
    """Return the error for a file that begins with the bytes `start` and that the library refuses to read."""
    is_other = "" if start[8:9] == b"{" else foreign(start)
    rule = f"{is_other} by another name" if is_other else str(error)
    return StorageError(f"not a valid safetensors file: {rule}", where=str(path), do=FROM_ITS_SOURCE)


def read_header(path: Path) -> Contents:
    """Read the header of a file, which the library checks against the file's length.

    Raises `SafetensorError` with what is wrong.
    """
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        numbers = {name: prod(file.get_slice(name).get_shape()) for name in file.offset_keys()}
        return Contents(numbers, file.metadata() or {})
