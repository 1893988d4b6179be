"""Torch's zip archives: what torch wrote is read to the bit, and nothing that one can put into them is run."""

from __future__ import annotations

import io
import os
import random
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.errors import StorageError
from graftwork.io.files import safe_load
from graftwork.io.torch_archive import LONGEST_PROGRAM


def saved(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def rewritten(path: Path, change: Callable[[str, bytes], bytes], *, method: int = zipfile.ZIP_STORED) -> Path:
    """The archive with its records changed, whose sizes and checksums are true to them."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in records.items():
            archive.writestr(name, change(name, content))
    return path


def with_program(path: Path, program: bytes) -> Path:
    return rewritten(path, lambda name, content: program if name.endswith("data.pkl") else content)


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
    with pytest.raises(StorageError, match=r"more than tensors: it names '(posix|nt) mkdir'[\s\S]*do: "):
        safe_load(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"a": torch.ones(2), "epoch": 3}, "'epoch' is no tensor"),
        ({"model": {"a": torch.ones(2)}}, "'model' is no tensor"),
        ([torch.ones(2)], "EMPTY_LIST"),
        (torch.ones(2), "something else than a dictionary"),
        ({1: torch.ones(2)}, "keys are no texts"),
        ({"a": torch.ones(2).to_sparse()}, "it names 'torch._utils _rebuild_sparse_tensor'"),
        ({"a": torch.nn.Linear(1, 1)}, "it names 'torch.nn.modules.linear Linear'"),
        ({"a": OrderedDict(a=1)}, "'a' is no tensor"),
        ({"a": b"bytes"}, "it names '_codecs encode'"),
        ({"a": {1, 2}}, "it names"),
    ],
    ids=str,
)
def test_what_is_no_tensor_is_refused(content: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=reason):
        safe_load(saved(tmp_path / "a.bin", content))


TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"


def tensor(
    storage: bytes = STORAGE, offset: bytes = b"K\x00", size: bytes = b"K\x04\x85", stride: bytes = b"K\x01\x85"
) -> bytes:
    """A program of one tensor of four numbers, in which a part may lie."""
    call = TENSOR + b"(" + storage + offset + size + stride + b"\x89ccollections\nOrderedDict\n)RtR"
    return b"\x80\x02}X\x01\x00\x00\x00a" + call + b"s."


def large(number: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", number)


def test_a_program_by_hand(tmp_path: Path) -> None:
    path = with_program(saved(tmp_path / "a.bin", {"a": torch.arange(4.0)}), tensor())
    assert safe_load(path)["a"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (tensor(size=b"K\x05\x85"), "reaches beyond"),
        (tensor(offset=b"K\x01"), "reaches beyond"),
        (tensor(offset=large(-1)), "reaches beyond"),
        (tensor(stride=b"K\x02\x85"), "reaches beyond"),
        (tensor(stride=large(-1) + b"\x85"), "reaches beyond"),
        (tensor(size=large(-4) + b"\x85"), "reaches beyond"),
        (tensor(size=b"K\x04K\x04K\x04\x87", stride=b"K\x00K\x00K\x00\x87"), "reaches beyond"),
        (tensor(size=large(2**62) + large(2**62) + b"K\x00\x87", stride=b"K\x01K\x01K\x01\x87"), "not a valid"),
        (tensor(size=b"K\x02K\x02\x86"), "not a valid archive"),  # two sizes, one stride
        (tensor(size=b"X\x01\x00\x00\x00a\x85"), "reaches beyond"),
        (tensor(storage=STORAGE.replace(b"K\x04tQ", b"K\x03tQ")), "another size than its record"),
        (tensor(storage=STORAGE.replace(b"FloatStorage", b"DoubleStorage")), "another size than its record"),
        (tensor(storage=STORAGE.replace(b"\x01\x00\x00\x000", b"\x01\x00\x00\x009")), "not a valid archive"),
        (tensor(storage=STORAGE.replace(b"\x01\x00\x00\x000", b"\x0b\x00\x00\x00../data.pkl")), "not a valid archive"),
        (tensor(storage=STORAGE.replace(b"torch\nFloatStorage", b"builtins\neval")), "it names 'builtins eval'"),
        (tensor(storage=STORAGE.replace(b"storage", b"stowage")), "no storage"),
        (tensor(storage=b"K\x01"), "something else than numbers"),
        (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "it names 'os system'"),
        (b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.", "a call of something else"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "the instruction SHORT_BINUNICODE"),
        (b"\x80\x02cos\nsystem\n.", "it names"),
        (b"\x80\x02Pabc\n.", "the instruction PERSID"),
        (b"(S'ls'\nios\nsystem\n.", "the instruction STRING"),
        (b"\x80\x02}(ios\nsystem\n.", "the instruction INST"),
        (b"\x80\x02\x82\x01.", "the instruction EXT1"),
        (b"\x80\x02}K\x01b.", "an object with a state"),
        (b"\x80\x02R.", "not a valid archive"),
        (b"\x80\x02h\x07.", "not a valid archive"),
        (b"\x80\x02}", "not a valid archive"),
        (b"", "not a valid archive"),
        (b"\x80\x02" + b"(" * 5000 + b"t" * 4999 + b".", "not a valid|something else"),
        (b"\x80\x02" + b"I" + b"9" * 5000 + b"\n.", "not a valid|the instruction"),
        (b"}" * (LONGEST_PROGRAM + 1), "a program of more than"),
        (b"\x80\x02X\xff\xff\xff\x7fabc.", "not a valid archive"),
        (b"\x80\x02\x8b\xff\xff\xff\x7fabc.", "not a valid archive"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_hostile_programs_are_refused(program: bytes, reason: str, tmp_path: Path) -> None:
    path = with_program(saved(tmp_path / "a.bin", {"a": torch.arange(4.0)}), program)
    with pytest.raises(StorageError, match=reason):
        safe_load(path)


def test_a_tensor_takes_no_more_than_its_bytes(tmp_path: Path) -> None:
    """A stride of 0 would make much of little."""
    path = with_program(saved(tmp_path / "a.bin", {"a": torch.arange(4.0)}), tensor(stride=b"K\x00\x85"))
    assert safe_load(path)["a"].untyped_storage().nbytes() == 16


def test_bombs_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"a": torch.zeros(1000)})
    with pytest.raises(StorageError, match="compressed records"):
        safe_load(rewritten(path, lambda name, content: content, method=zipfile.ZIP_DEFLATED))
    twice = saved(tmp_path / "b.bin", {"a": torch.zeros(1000)})
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("other/data.pkl", b"\x80\x02}.")
    with pytest.raises(StorageError, match="two programs"):
        safe_load(twice)
    content = bytearray(saved(tmp_path / "c.bin", {"a": torch.zeros(1000)}).read_bytes())
    directory = content.rindex(b"PK\x01\x02")  # of the last record: it claims the bytes of all others
    content[directory + 20 : directory + 28] = struct.pack("<II", 10**9, 10**9)
    (tmp_path / "c.bin").write_bytes(content)
    with pytest.raises(StorageError, match=r"overlap|not a valid"):
        safe_load(tmp_path / "c.bin")


def test_byte_order(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"a": torch.ones(2)})
    rewritten(path, lambda name, content: b"big" if name.endswith("byteorder") else content)
    with pytest.raises(StorageError, match="high byte"):
        safe_load(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x80\x02}.", b"not a zip", b"PK\x05\x06" + bytes(18)], ids=repr)
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(StorageError, match=r"not a valid archive[\s\S]*torch 1\.6"):
        safe_load(tmp_path / "a.bin")


def test_an_archive_from_before_zip_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "a.bin", _use_new_zipfile_serialization=False)
    with pytest.raises(StorageError, match="not a valid archive"):
        safe_load(tmp_path / "a.bin")


def test_a_spoilt_archive_is_read_right_or_refused(tmp_path: Path) -> None:
    """Hundreds of them, a few bytes changed or the end missing: never another error, never another program."""
    tensors = {f"layer.{i}.weight": torch.arange(12.0).view(3, 4) + i for i in range(4)}
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    original, rng, path = buffer.getvalue(), random.Random(0), tmp_path / "a.bin"
    refused = 0
    for _ in range(400):
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
    assert refused > 100


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
def test_spoilt_programs_are_read_or_refused(tmp_path: Path) -> None:
    """The same within the program, whose checksum is made to fit."""
    path = saved(tmp_path / "a.bin", {f"layer.{i}": torch.arange(12.0).view(3, 4) for i in range(3)})
    with zipfile.ZipFile(path) as archive:
        program = archive.read("a/data.pkl")
    rng, refused = random.Random(1), 0
    for _ in range(400):
        spoilt = bytearray(program)
        for _ in range(rng.randint(1, 3)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        with_program(path, bytes(spoilt))
        try:
            found = safe_load(path)
        except StorageError:
            refused += 1
        else:
            assert all(tensor.untyped_storage().nbytes() <= 48 for tensor in found.values())
    assert refused > 100


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
