"""Reader of the tensors of a `torch.save` zip archive, without running its pickle.

Such an archive holds the bytes of tensors and a pickle, which is a program: it may name any function and call it. Here
no name is looked up. `pickletools`, which only parses, lists the instructions, and an interpreter follows those that
a file of tensors consists of; any other instruction, name or argument is refused.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from graftwork.errors import StorageError
from graftwork.io.plain_files import LOOKED_AT, foreign

LONGEST_PROGRAM = 4 << 20  # bytes: enough for twenty thousand tensors
LONGEST_DIRECTORY = 8 << 20  # bytes: enough for as many records
MOST_SHARED = 8  # most ratio of the tensors' bytes to the stored ones: tied weights share theirs
LOCAL, END, END_64 = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06"
END_BYTES, LOCATOR_BYTES, LOCAL_BYTES = 22, 20, 30
LONGEST_DESCRIPTOR = 24  # bytes between a record's content and the next record
TYPES = {
    "torch DoubleStorage": torch.float64, "torch FloatStorage": torch.float32, "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16, "torch LongStorage": torch.int64, "torch IntStorage": torch.int32,
    "torch ShortStorage": torch.int16, "torch CharStorage": torch.int8, "torch ByteStorage": torch.uint8,
    "torch BoolStorage": torch.bool,
}  # fmt: skip
TENSOR, ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}  # instructions that push a constant
GIVEN = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE"}  # instructions that push their argument
PUT, GET = {"BINPUT", "LONG_BINPUT"}, {"BINGET", "LONG_BINGET"}
WIDTHS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
BROKEN = (
    zipfile.BadZipFile, struct.error, ValueError, KeyError, IndexError, TypeError, EOFError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


class NotTensors(Exception):
    """An archive that holds anything but tensors."""


@dataclass(frozen=True)
class Name:
    """A global that the pickle names, as the text `module attribute`; nothing is imported."""

    text: str


@dataclass(frozen=True)
class Stored:
    """The storage of one or several tensors, as (n,) numbers."""

    numbers: Tensor


def read_archive(stream: BinaryIO, path: Path) -> dict[str, Tensor]:
    """Read the named tensors of an open file. Raises `StorageError` if it is truncated or holds anything else.

    `path` is for messages.
    """
    try:
        directory = _require_zip(stream)
        with zipfile.ZipFile(stream) as archive:
            records = _records(archive, stream, directory)
            program = next(name for name in records if name.endswith("/data.pkl"))
            root = program.removesuffix("data.pkl")
            if archive.getinfo(program).file_size > LONGEST_PROGRAM:
                raise NotTensors("a program of more than 4 MiB")
            if f"{root}byteorder" in records and archive.read(f"{root}byteorder") != b"little":
                raise NotTensors("numbers that begin with their high byte")
            found = _follow(archive.read(program), lambda key: archive.read(f"{root}data/{key}"))
    except NotTensors as reason:
        raise StorageError(
            f"this archive holds more than tensors: {reason}",
            where=str(path),
            expected="named tensors, as torch.save writes a state_dict",
            do="if you trust it, load it with its own library and save it as safetensors",
        ) from None
    except (*BROKEN, StopIteration) as error:
        raise StorageError(
            "not a valid archive of tensors",
            where=str(path),
            got=f"{type(error).__name__}: {str(error)[:200]}",
            expected="a zip file as torch.save has written it since torch 1.6",
        ) from None
    return found


def _require_zip(stream: BinaryIO) -> int:
    """Check that the file is a zip archive from first byte to last; return the start of its directory."""
    start = stream.read(LOOKED_AT)
    if not start.startswith(LOCAL):
        raise zipfile.BadZipFile(f"it is {foreign(start) or 'no zip archive'}")
    size = stream.seek(0, 2)
    stream.seek(max(0, size - END_BYTES))
    end = stream.read(END_BYTES)
    if len(end) < END_BYTES or end[:4] != END or end[-2:] != b"\0\0":
        raise zipfile.BadZipFile("something stands behind the end of the archive, or the end is missing")
    length, begin = struct.unpack("<II", end[12:20])
    last = size - END_BYTES
    if 0xFFFFFFFF in (length, begin) or end[10:12] == b"\xff\xff":
        stream.seek(last - LOCATOR_BYTES)
        last = struct.unpack("<Q", stream.read(LOCATOR_BYTES)[8:16])[0]
        stream.seek(last)
        record = stream.read(56)
        if record[:4] != END_64:
            raise zipfile.BadZipFile("the end of the archive is torn")
        length, begin = struct.unpack("<QQ", record[40:56])
    if length > LONGEST_DIRECTORY:
        raise NotTensors(f"a directory of {length:,} bytes, where at most {LONGEST_DIRECTORY:,} are read")
    if begin + length > last:
        raise zipfile.BadZipFile("the directory is not before the end of the archive")
    stream.seek(0)
    return int(begin)


def _records(archive: zipfile.ZipFile, stream: BinaryIO, directory: int) -> set[str]:
    """Return the names of an archive's records, after checking that they are contiguous and uncompressed."""
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size for entry in entries):
        raise NotTensors("compressed records")
    reached = 0
    for entry in entries:
        if not reached <= entry.header_offset <= reached + (LONGEST_DESCRIPTOR if reached else 0):
            raise NotTensors(
                "records that overlap" if entry.header_offset < reached else "something between its records"
            )
        stream.seek(entry.header_offset)
        local = stream.read(LOCAL_BYTES)
        reached = entry.header_offset + LOCAL_BYTES + sum(struct.unpack("<HH", local[26:30])) + entry.compress_size
    names = {entry.filename for entry in entries}
    if len(names) != len(entries) or not reached <= directory <= reached + LONGEST_DESCRIPTOR:
        raise NotTensors("records that overlap")
    if sum(name.endswith("/data.pkl") for name in names) > 1:
        raise NotTensors("two programs")
    return names


def _follow(program: bytes, read: Callable[[str], bytes]) -> dict[str, Tensor]:
    """Interpret the pickle and return its tensors; `read` gives the bytes of a record."""
    below: list[list[Any]] = []  # the stacks below the current marks
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    storages: dict[tuple[str, str], Stored] = {}
    argument: Any  # a number or a text, depending on the instruction
    for opcode, argument, _ in pickletools.genops(program):
        name = opcode.name
        if name in PUSHED:
            stack.append(PUSHED[name])
        elif name in GIVEN:
            stack.append(argument)
        elif name in PUT:
            memo[argument] = stack[-1]
        elif name in GET:
            stack.append(memo[argument])
        elif name == "GLOBAL":
            stack.append(_name(argument))
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "MARK":
            below.append(stack)
            stack = []
        elif name == "TUPLE":
            stack, made = below.pop(), tuple(stack)
            stack.append(made)
        elif name in WIDTHS:
            made = tuple([stack.pop() for _ in range(WIDTHS[name])][::-1])
            stack.append(made)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else stack
            stack = stack if name == "SETITEM" else below.pop()
            _set(stack[-1], items)
        elif name == "BINPERSID":
            stack.append(_stored(stack.pop(), storages, read))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(_made(stack.pop(), arguments))
        elif name == "BUILD":
            _ignored(stack.pop(), stack[-1])
        elif name not in ("PROTO", "STOP"):
            raise NotTensors(f"the instruction {name}")
    return _named_tensors(stack)


def _name(text: str) -> Name:
    if text not in (TENSOR, ORDERED, *TYPES):
        raise NotTensors(f"it names {text[:100]!r}")
    return Name(text)


def _set(target: Any, items: list[Any]) -> None:
    """Store pairs of key and value in a dictionary."""
    keys = items[::2]
    if type(target) is not dict or len(items) % 2 or not all(type(key) is str for key in keys):
        raise NotTensors("a dictionary whose keys are no texts")
    target.update(zip(keys, items[1::2], strict=True))


def _ignored(state: Any, target: Any) -> None:
    """Ignore the versions of modules, which a state_dict has as an attribute; raise `NotTensors` for other states."""
    if type(state) is not dict or type(target) is not dict:
        raise NotTensors("an object with a state")


def _stored(given: Any, known: dict[tuple[str, str], Stored], read: Callable[[str], bytes]) -> Stored:
    """Return the storage of `("storage", type, key, device, count)`."""
    word, kind, key, _, count = given
    if word != "storage" or not isinstance(kind, Name) or kind.text not in TYPES or type(key) is not str:
        raise NotTensors("a record that is no storage")
    if (kind.text, key) not in known:
        if any(other == key for _, other in known):
            raise NotTensors("a record that is read as two types")
        dtype, content = TYPES[kind.text], bytearray(read(key))
        numbers = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
        known[kind.text, key] = Stored(numbers)
    if type(count) is not int or known[kind.text, key].numbers.numel() != count:
        raise NotTensors("a storage of another size than its record")
    return known[kind.text, key]


def _made(function: Any, arguments: Any) -> Any:
    """Return the result of a call: an empty dictionary, or a tensor."""
    called = function.text if isinstance(function, Name) else ""
    if called == ORDERED and arguments == ():
        return {}
    if called != TENSOR or type(arguments) is not tuple or len(arguments) not in (6, 7):
        raise NotTensors("a call of something else than a tensor")
    stored, offset, size, stride = arguments[:4]
    if not isinstance(stored, Stored) or type(size) is not tuple or type(stride) is not tuple:
        raise NotTensors("a tensor of something else than numbers")
    if not all(type(number) is int and number >= 0 for number in (offset, *size, *stride)):
        raise NotTensors("a tensor that reaches beyond its numbers")
    if 0 in size:
        return stored.numbers.new_empty(size)
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if max(last + 1, prod(size)) > stored.numbers.numel():  # a stride of 0 would make a huge tensor from few numbers
        raise NotTensors("a tensor that reaches beyond its numbers")
    return stored.numbers.as_strided(size, stride, offset)


def _named_tensors(stack: list[Any]) -> dict[str, Tensor]:
    if len(stack) != 1 or type(stack[0]) is not dict:
        raise NotTensors("something else than a dictionary")
    found: dict[str, Tensor] = stack[0]
    other = next((key for key, value in found.items() if not isinstance(value, Tensor)), None)
    if other is not None:
        raise NotTensors(f"{other[:100]!r} is no tensor")
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in found.values()}
    if sum(tensor.numel() * tensor.itemsize for tensor in found.values()) > MOST_SHARED * sum(stored.values()):
        raise NotTensors("tensors that make much of few numbers")
    return found
