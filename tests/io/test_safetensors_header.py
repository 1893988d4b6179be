"""Safetensors files: what is written is read to the bit, and a damaged file is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.errors import IncompatibleModule, StorageError
from graftwork.io import safetensors_header
from graftwork.io.files import header_of, require_finite, safe_load, write_tensors
from graftwork.io.safetensors_header import Header, end_to_end

ONE = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}


def written(path: Path, header: Any, data: bytes = bytes(16), length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


@pytest.mark.parametrize("mapped", [True, False])
def test_what_was_written_is_read_to_the_bit(tmp_path: Path, mapped: bool) -> None:
    tensors = {
        "fp32": torch.randn(3, 4), "bf16": torch.randn(7).bfloat16(), "fp16": torch.randn(2, 2).half(),
        "fp64": torch.randn(3).double(), "int64": torch.arange(5), "uint8": torch.arange(4, dtype=torch.uint8),
        "bool": torch.tensor([True, False]), "scalar": torch.tensor(2.5), "empty": torch.empty(0, 3),
    }  # fmt: skip
    write_tensors(tmp_path / "a.safetensors", tensors)
    found = safe_load(tmp_path / "a.safetensors", mapped=mapped)
    assert found.keys() == tensors.keys() == header_of(tmp_path / "a.safetensors").numbers.keys()
    assert all(
        found[name].dtype == tensor.dtype and torch.equal(found[name], tensor) for name, tensor in tensors.items()
    )


def test_a_header_that_is_written_here_is_read_by_us_and_by_the_library(tmp_path: Path) -> None:
    tensors = {name: torch.arange(3).to(getattr(torch, name)) for name in safetensors_header.DTYPES} | {
        "none": torch.ones(0)
    }
    placed = end_to_end((name, tensor.dtype, tensor.shape) for name, tensor in tensors.items())
    header = Header(placed, {"key": "of a person"})
    raw = (tensor.view(torch.uint8).numpy().tobytes() for tensor in tensors.values())
    (tmp_path / "a.safetensors").write_bytes(header.to_bytes() + b"".join(raw))
    found = header_of(tmp_path / "a.safetensors")
    assert found.numbers == {name: tensor.numel() for name, tensor in tensors.items()}
    assert found.about == header.about
    assert header.file_bytes == (tmp_path / "a.safetensors").stat().st_size
    assert len(header.to_bytes()) % safetensors_header.ALIGNED == 0
    loaded = safe_load(tmp_path / "a.safetensors")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())


def test_no_tensor_at_all_is_a_file_too(tmp_path: Path) -> None:
    assert safe_load(written(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt"}}, b"")) == {}


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"a": ONE}, bytes(17)),
        ({"a": ONE}, bytes(15)),
        ({"a": ONE, "b": ONE | {"data_offsets": [12, 28]}}, bytes(28)),
        ({"a": ONE, "b": ONE | {"data_offsets": [20, 36]}}, bytes(36)),
        ({"a": ONE | {"shape": [5]}}, bytes(16)),
        ({"a": ONE | {"shape": [1 << 32, 1 << 32, 1 << 32]}}, bytes(16)),
        ({"a": ONE | {"dtype": "OBJECT"}}, bytes(16)),
        (b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", b""),
        (b"{]", b""),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path: Path, header: Any, data: bytes) -> None:
    path = written(tmp_path / "a.safetensors", header, data)
    for mapped in (True, False):
        with pytest.raises(StorageError, match=r"a\.safetensors: not a valid safetensors file"):
            safe_load(path, mapped=mapped)


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_length_that_is_not_the_headers_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        safe_load(written(tmp_path / "a.safetensors", {"a": ONE}, length=length))


@pytest.mark.parametrize(
    ("content", "what"), [(b"\x80\x04\x95abc", "a pickle"), (b"PK\x03\x04" + bytes(99), "a zip archive"), (b"", "")]
)
def test_what_it_is_instead_is_said(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(StorageError, match=f"not a valid safetensors file: {what}"):
        safe_load(tmp_path / "a.safetensors")


def test_whatever_byte_is_changed_the_file_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": torch.randn(3), "b": torch.arange(2)})
    content, luck = path.read_bytes(), random.Random(0)
    for _ in range(100):
        changed = bytearray(content)
        for _ in range(luck.randint(1, 4)):
            changed[luck.randrange(len(changed))] = luck.randrange(256)
        path.write_bytes(bytes(changed[: luck.randint(0, len(changed))] if luck.random() < 0.2 else changed))
        try:
            safe_load(path, mapped=False)
        except StorageError as error:
            assert str(path) in error.message


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_refused(dtype: torch.dtype, number: float) -> None:
    weights = torch.ones(1000, dtype=dtype)
    require_finite({"a": weights, "b": torch.arange(3), "c": torch.empty(0)}, Path("w"))
    weights[37] = number
    with pytest.raises(IncompatibleModule, match=r"w: the weights contain NaN or infinity, in 'b'"):
        require_finite({"a": torch.ones(2), "b": weights}, Path("w"))


def test_large_numbers_are_numbers() -> None:
    require_finite({"a": torch.full((1000,), 3e38), "b": torch.full((9,), 60_000.0).half()}, Path("w"))


def test_a_pair_of_opposite_infinities_is_seen() -> None:
    with pytest.raises(IncompatibleModule):
        require_finite({"a": torch.tensor([float("inf"), float("-inf")])}, Path("w"))
