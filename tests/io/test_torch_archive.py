"""Files of `torch.save`: tensors are read to the bit, and nothing that one can put into them is run."""

from __future__ import annotations

import io
import os
import random
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.errors import StorageError
from graftwork.io.files import safe_load


def saved(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """The archive with its records changed, whose sizes and checksums are true to them."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, change(name, content))
    return path


def test_what_torch_wrote_is_read_to_the_bit(tmp_path: Path) -> None:
    whole = torch.randn(6, 5)
    tensors = {
        "fp32": torch.randn(3, 4),
        "bf16": torch.randn(7).bfloat16(),
        "fp16": torch.randn(2, 2, 2).half(),
        "fp64": torch.randn(3).double(),
        "int64": torch.arange(5),
        "int32": torch.arange(4, dtype=torch.int32),
        "int16": torch.arange(4, dtype=torch.int16),
        "int8": torch.arange(-2, 2, dtype=torch.int8),
        "uint8": torch.arange(4, dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "transposed": torch.randn(4, 3).T,
        "a part": whole[2:4, 1:],
        "the whole": whole,
    }
    found = safe_load(saved(tmp_path / "a.bin", tensors))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name


def test_a_state_dict_is_read(tmp_path: Path) -> None:
    layer = torch.nn.Linear(3, 2)
    found = safe_load(saved(tmp_path / "a.bin", layer.state_dict()))  # an OrderedDict with an attribute
    assert torch.equal(found["weight"], layer.weight) and torch.equal(found["bias"], layer.bias)


class Runs:
    """Unpickled it makes a folder: the classical attack."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_program_is_not_run(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"weight": torch.ones(2), "x": Runs(tmp_path / "made")})
    with pytest.raises(StorageError, match=r"more than tensors: it names (posix|nt)\.mkdir[\s\S]*do: "):
        safe_load(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"a": torch.ones(2), "epoch": 3}, "'epoch' is no tensor"),
        ({"model": {"a": torch.ones(2)}}, "'model' is no tensor"),
        ([torch.ones(2)], "a list in place of"),
        (torch.ones(2), "a Tensor in place of"),
        ({1: torch.ones(2)}, "'1' is no tensor with a name"),
        ({"a": torch.ones(2).to_sparse()}, "'a' is no tensor"),
        ({"a": torch.nn.Linear(1, 1)}, "it names torch.nn.modules.linear.Linear"),
        ({"a": OrderedDict(a=1)}, "'a' is no tensor"),
        ({"a": torch.zeros(1).expand(1 << 24)}, "share their bytes"),
    ],
    ids=str,
)
def test_what_is_no_tensor_is_refused(content: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"holds more than tensors: .*{reason}"):
        safe_load(saved(tmp_path / "a.bin", content))


@pytest.mark.parametrize(
    "program", [b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", b"(S'ls'\nios\nsystem\n.", b"\x80\x02}", b""]
)
def test_programs_by_hand_are_refused(program: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"a": torch.arange(4.0)})
    rewritten(path, lambda name, content: program if name.endswith("data.pkl") else content)
    with pytest.raises(StorageError, match=r"more than tensors|not a valid archive"):
        safe_load(path)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"a": torch.zeros(100_000)})
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    with pytest.raises(StorageError, match="larger than the file"):
        safe_load(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"\x80\x02}.", b"not a zip", b"#!/bin/sh", b"PK\x05\x06" + bytes(18)], ids=repr
)
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(StorageError, match=r"not a valid archive|more than tensors"):
        safe_load(tmp_path / "a.bin")


def test_a_file_from_before_zip_is_read(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "a.bin", _use_new_zipfile_serialization=False)
    assert safe_load(tmp_path / "a.bin")["a"].tolist() == [1, 1]


def test_a_spoilt_archive_is_read_right_or_refused(tmp_path: Path) -> None:
    """Fifty of them, a few bytes changed or the end missing: never another error, never another program."""
    tensors = {f"layer.{i}.weight": torch.arange(12.0).view(3, 4) + i for i in range(4)}
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    original, rng, path = buffer.getvalue(), random.Random(0), tmp_path / "a.bin"
    refused = 0
    for _ in range(50):
        spoilt = bytearray(original)
        for _ in range(rng.randint(1, 4)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        if rng.random() < 0.2:
            del spoilt[rng.randrange(len(spoilt)) :]
        path.write_bytes(spoilt)
        try:
            found = safe_load(path)
        except StorageError:
            refused += 1
        else:
            assert all(isinstance(tensor, torch.Tensor) for tensor in found.values())
    assert refused > 10


@pytest.mark.real
def test_an_archive_off_the_hub(shared: Path) -> None:
    folder = shared / "fixtures" / "adapters" / "adapterhub_xlmt_sentiment"
    found = safe_load(folder / "pytorch_adapter.bin")
    assert len(found) == 48 and {tuple(tensor.shape) for tensor in found.values()} == {
        (48, 768),
        (48,),
        (768, 48),
        (768,),
    }
    expected = torch.load(folder / "pytorch_adapter.bin", map_location="cpu", weights_only=True)
    assert found.keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())
