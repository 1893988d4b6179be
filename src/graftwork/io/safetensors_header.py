"""Headers of safetensors files: written, and read and checked before any other code uses the file.

A file is 8 bytes with the length of the header, the header in JSON, and the tensors' bytes, contiguous.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO

from graftwork.io.json_limits import HEADER, BeyondLimits, parse_json
from graftwork.io.plain_files import LOOKED_AT, foreign

if TYPE_CHECKING:
    import torch

MOST_TENSORS = 50_000
MOST_DIMENSIONS = 16
LARGEST = 1 << 48  # most numbers of a tensor, with an empty dimension counted as 1
ABOUT = "__metadata__"
BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4,
    "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # bytes of a number  # fmt: skip
DTYPES = {  # dtypes that we write, by their torch names
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
ALIGNED = 64  # bytes: alignment of the tensors' bytes, kept by tensors ordered by falling width of their numbers


@dataclass(frozen=True)
class TensorPlace:
    """The dtype, shape and byte range of a tensor in its file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int  # bytes after the header
    end: int

    @property
    def numbers(self) -> int:
        """The number of the tensor's elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Header:
    """The header of a safetensors file."""

    tensors: Mapping[str, TensorPlace]  # in the order of the header
    about: Mapping[str, str] = field(default_factory=dict)  # `__metadata__`, for people

    def to_bytes(self) -> bytes:
        """Return the bytes at the start of the file, before the tensors' bytes."""
        content: dict[str, Any] = {ABOUT: dict(self.about)} if self.about else {}
        for name, place in self.tensors.items():
            content[name] = {
                "dtype": place.dtype,
                "shape": list(place.shape),
                "data_offsets": [place.begin, place.end],
            }
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
        begin, end = end, end + prod(sides) * BYTES[kind]
        placed[name] = TensorPlace(kind, sides, begin, end)
    return placed


def read_header(stream: BinaryIO) -> Header:
    """Read and check the header of a file, which must match it to the last byte.

    Raises `BeyondLimits` with the rule that the file breaks.
    """
    size = os.fstat(stream.fileno()).st_size
    start = stream.read(LOOKED_AT)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or start[8:9] != b"{" or length > size - 8:
        is_other = foreign(start)
        raise BeyondLimits(
            f"{is_other} by another name" if is_other else f"a header of {length:,} bytes in a file of {size:,}"
        )
    if length > HEADER.bytes:
        raise BeyondLimits(f"a header of {length:,} bytes, where at most {HEADER.bytes:,} are read")
    stream.seek(8)
    try:
        header = parse_json(stream.read(length), HEADER)
    except BeyondLimits:
        raise
    except ValueError as error:
        raise BeyondLimits(f"a header that is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise BeyondLimits("a header that is not an object")
    about = header.pop(ABOUT, {})
    _require_texts(about)
    if len(header) > MOST_TENSORS:
        raise BeyondLimits(f"{len(header):,} tensors, where at most {MOST_TENSORS:,} are read")
    placed = {name: _placed(name, told) for name, told in header.items()}
    _require_whole(placed, size - 8 - length)
    return Header(placed, about)


def _require_texts(about: Any) -> None:
    if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
        raise BeyondLimits(f"{ABOUT} that is not an object of strings")


def _placed(name: str, told: Any) -> TensorPlace:
    """Parse and check the header's entry of one tensor by itself."""
    called = f"the tensor {name[:80]!r}"
    if not isinstance(told, dict) or told.keys() != {"dtype", "shape", "data_offsets"}:
        raise BeyondLimits(f"{called} does not have exactly dtype, shape and data_offsets")
    dtype, shape, offsets = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BYTES:
        raise BeyondLimits(f"{called} has the unknown dtype {str(dtype)[:40]!r}")
    if not _counts(shape) or len(shape) > MOST_DIMENSIONS:
        raise BeyondLimits(f"{called} has a shape that is not up to {MOST_DIMENSIONS} numbers from 0 on")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise BeyondLimits(f"{called} has no range of bytes")
    if prod(max(1, length) for length in shape) > LARGEST:
        raise BeyondLimits(f"{called} has a shape that no memory holds")
    bytes_ = prod(shape) * BYTES[dtype]
    if bytes_ != offsets[1] - offsets[0]:
        raise BeyondLimits(f"{called} takes {bytes_:,} bytes by its shape and {offsets[1] - offsets[0]:,} by its range")
    return TensorPlace(dtype, tuple(shape), *offsets)


def _counts(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)


def _require_whole(placed: Mapping[str, TensorPlace], size: int) -> None:
    """Raise `BeyondLimits` unless the tensors are contiguous: every byte after the header belongs to one of them."""
    reached = 0
    for name, place in sorted(placed.items(), key=lambda item: (item[1].begin, item[1].end)):
        if place.begin != reached:
            what = "overlaps the one before it" if place.begin < reached else "begins after a gap"
            raise BeyondLimits(f"the tensor {name[:80]!r} {what}")
        reached = place.end
    if reached != size:
        raise BeyondLimits(f"{size:,} bytes behind the header, where its tensors take {reached:,}")
