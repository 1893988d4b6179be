"""Safetensors files: what the library writes is read to the bit, and each rule of a header refuses what breaks it."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
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
    assert found.keys() == tensors.keys() == header_of(tmp_path / "a.safetensors").tensors.keys()
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
    assert header_of(tmp_path / "a.safetensors") == header
    assert header.file_bytes == (tmp_path / "a.safetensors").stat().st_size
    assert len(header.to_bytes()) % safetensors_header.ALIGNED == 0
    found = safe_load(tmp_path / "a.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_every_dtype_of_the_library_is_known() -> None:
    from safetensors.torch import _TYPES

    assert {name for name in _TYPES if name in safetensors_header.BYTES} >= {
        "F64",
        "F32",
        "F16",
        "BF16",
        "I64",
        "U8",
        "BOOL",
    }
    for name, dtype in _TYPES.items():
        assert safetensors_header.BYTES.get(name, dtype.itemsize) == dtype.itemsize


def test_no_tensor_at_all_is_a_file_too(tmp_path: Path) -> None:
    assert safe_load(written(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt"}}, b"")) == {}


@pytest.mark.parametrize(
    ("header", "data", "rule"),
    [
        ({"a": ONE}, bytes(17), "17 bytes behind the header, where its tensors take 16"),
        ({"a": ONE}, bytes(15), "15 bytes behind the header"),
        ({"a": ONE, "b": ONE}, bytes(32), "overlaps"),
        ({"a": ONE, "b": ONE | {"data_offsets": [12, 28]}}, bytes(28), "overlaps"),
        ({"a": ONE, "b": ONE | {"data_offsets": [20, 36]}}, bytes(36), "a gap"),
        ({"a": ONE | {"data_offsets": [4, 20]}}, bytes(20), "a gap"),
        ({"a": ONE | {"shape": [5]}}, bytes(16), "20 bytes by its shape and 16 by its range"),
        ({"a": ONE | {"shape": [-4]}}, bytes(16), "shape"),
        ({"a": ONE | {"shape": [4.0]}}, bytes(16), "shape"),
        ({"a": ONE | {"shape": [True, 4]}}, bytes(16), "shape"),
        ({"a": ONE | {"shape": 4}}, bytes(16), "shape"),
        ({"a": ONE | {"shape": [1] * 16 + [4]}}, bytes(16), "shape"),
        ({"a": ONE | {"shape": [1 << 32, 1 << 32, 1 << 32]}}, bytes(16), "no memory holds"),
        ({"a": ONE | {"shape": [0, 1 << 60], "data_offsets": [0, 0]}}, b"", "no memory holds"),
        ({"a": ONE | {"data_offsets": [16, 0]}}, bytes(16), "no range"),
        ({"a": ONE | {"data_offsets": [-16, 0]}}, bytes(16), "no range"),
        ({"a": ONE | {"data_offsets": [0, 16, 32]}}, bytes(16), "no range"),
        ({"a": ONE | {"dtype": "OBJECT"}}, bytes(16), "unknown dtype 'OBJECT'"),
        ({"a": ONE | {"dtype": ["F32"]}}, bytes(16), "unknown dtype"),
        ({"a": ONE | {"more": 1}}, bytes(16), "does not have exactly"),
        ({"a": [1]}, bytes(16), "does not have exactly"),
        ({"a": ONE, "__metadata__": {"a": 1}}, bytes(16), "object of strings"),
        ({"a": ONE, "__metadata__": "a"}, bytes(16), "object of strings"),
        (b'{"a":1,"a":1}', b"", "occurs twice"),
        (b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", b"", "deep"),
        (b"{]", b"", "not JSON"),
        (b'{"\xff": 1}', b"", "not JSON"),
    ],
)  # fmt: skip
def test_a_header_that_breaks_a_rule_is_refused(tmp_path: Path, header: Any, data: bytes, rule: str) -> None:
    path = written(tmp_path / "a.safetensors", header, data)
    for mapped in (True, False):
        with pytest.raises(StorageError, match=rf"a\.safetensors: not a valid safetensors file[\s\S]*{rule}"):
            safe_load(path, mapped=mapped)


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_length_that_is_not_the_headers_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        safe_load(written(tmp_path / "a.safetensors", {"a": ONE}, length=length))


def test_a_header_as_large_as_it_says_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.safetensors", b"{", b"", length=100 << 20)
    os.truncate(path, 200 << 20)
    with pytest.raises(StorageError, match="a header of 104,857,600 bytes, where at most 16,777,216"):
        safe_load(path)


def test_too_many_tensors_are_refused(tmp_path: Path) -> None:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    with pytest.raises(StorageError, match="at most"):
        safe_load(written(tmp_path / "a.safetensors", {f"{number}": empty for number in range(50_001)}, b""))


def test_a_zip_archive_behind_the_tensors_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("evil.py", "import os")
    path = written(tmp_path / "a.safetensors", {"a": ONE}, bytes(16) + stream.getvalue())
    assert zipfile.is_zipfile(path)
    with pytest.raises(StorageError, match="behind the header"):
        safe_load(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"\x80\x04\x95abc", "a pickle"), (b"PK\x03\x04" + bytes(99), "a zip archive"), (b"", "0 bytes")],
)
def test_what_it_is_instead_is_said(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(StorageError, match=what):
        safe_load(tmp_path / "a.safetensors")


def test_whatever_byte_is_changed_the_file_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": torch.randn(3), "b": torch.arange(2)})
    content, luck = path.read_bytes(), random.Random(0)
    for _ in range(300):
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
