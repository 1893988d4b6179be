"""The tensors of a zip archive that `torch.save` wrote, read without running what stands in it.

Such an archive holds the bytes of tensors and a pickle, which is a program: it may name any function and call it. Here
nothing that it names is looked up. Its instructions are listed by `pickletools`, which only parses, and followed by a
machine that knows what a file of tensors consists of; any other instruction, name or argument refuses the file.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftwork.errors import StorageError

LONGEST_PROGRAM = 4 << 20  # bytes: twenty thousand tensors
TYPES = {
    "torch DoubleStorage": torch.float64, "torch FloatStorage": torch.float32, "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16, "torch LongStorage": torch.int64, "torch IntStorage": torch.int32,
    "torch ShortStorage": torch.int16, "torch CharStorage": torch.int8, "torch ByteStorage": torch.uint8,
    "torch BoolStorage": torch.bool,
}  # fmt: skip
TENSOR, ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
PUSHED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}  # instructions that push a constant
GIVEN = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE"}  # and those that push their argument
PUT, GET = {"BINPUT", "LONG_BINPUT"}, {"BINGET", "LONG_BINGET"}
WIDTHS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
BROKEN = (
    zipfile.BadZipFile, struct.error, ValueError, KeyError, IndexError, TypeError, EOFError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


class Refused(Exception):
    """The archive holds something else than tensors."""


@dataclass(frozen=True)
class Name:
    """What the program calls by name: `module attribute`. A mere text; nothing is imported."""

    text: str


@dataclass(frozen=True)
class Stored:
    """The bytes of one or several tensors, as (n,) numbers."""

    numbers: Tensor


def read_archive(path: Path) -> dict[str, Tensor]:
    """Name -> tensor. Raises `StorageError` for what is torn, and for anything that is not tensors under names."""
    try:
        with zipfile.ZipFile(path) as archive:
            records = _records(archive, path.stat().st_size)
            program = next(name for name in records if name.endswith("/data.pkl"))
            root = program.removesuffix("data.pkl")
            if archive.getinfo(program).file_size > LONGEST_PROGRAM:
                raise Refused("a program of more than 4 MiB")
            if f"{root}byteorder" in records and archive.read(f"{root}byteorder") != b"little":
                raise Refused("numbers that begin with their high byte")
            found = _follow(archive.read(program), lambda key: archive.read(f"{root}data/{key}"))
    except Refused as reason:
        raise StorageError(
            f"this archive holds more than tensors: {reason}",
            where=str(path),
            expected="tensors under names, as torch.save writes a state_dict",
            do="where you trust it, load it with its own library and save it as safetensors",
        ) from None
    except (*BROKEN, StopIteration) as error:
        raise StorageError(
            "not a whole archive of tensors",
            where=str(path),
            got=f"{type(error).__name__}: {str(error)[:200]}",
            expected="a zip file as torch.save has written it since torch 1.6",
        ) from None
    return found


def _records(archive: zipfile.ZipFile, size: int) -> set[str]:
    """The names of an archive's records, once it is sure that they are no more than the file's own bytes."""
    entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size for entry in entries):
        raise Refused("compressed records")
    names = {entry.filename for entry in entries}
    if len(names) != len(entries) or sum(entry.file_size for entry in entries) > size:
        raise Refused("records that overlap")
    if sum(name.endswith("/data.pkl") for name in names) > 1:
        raise Refused("two programs")
    return names


def _follow(program: bytes, read: Callable[[str], bytes]) -> dict[str, Tensor]:
    """What the program leaves, `read` being the bytes of a record."""
    below: list[list[Any]] = []  # the stacks below the marks that were set
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    storages: dict[tuple[str, str], Stored] = {}
    argument: Any  # a number or a text, by the instruction
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
            raise Refused(f"the instruction {name}")
    return _named_tensors(stack)


def _name(text: str) -> Name:
    if text not in (TENSOR, ORDERED, *TYPES):
        raise Refused(f"it names {text[:100]!r}")
    return Name(text)


def _set(target: Any, items: list[Any]) -> None:
    """Pairs of key and value into a dictionary."""
    keys = items[::2]
    if type(target) is not dict or len(items) % 2 or not all(type(key) is str for key in keys):
        raise Refused("a dictionary whose keys are no texts")
    target.update(zip(keys, items[1::2], strict=True))


def _ignored(state: Any, target: Any) -> None:
    """The versions of modules, which a state_dict has as an attribute."""
    if type(state) is not dict or type(target) is not dict:
        raise Refused("an object with a state")


def _stored(given: Any, known: dict[tuple[str, str], Stored], read: Callable[[str], bytes]) -> Stored:
    """The numbers that `("storage", type, key, device, how many)` means."""
    word, kind, key, _, count = given
    if word != "storage" or not isinstance(kind, Name) or kind.text not in TYPES or type(key) is not str:
        raise Refused("a record that is no storage")
    if (kind.text, key) not in known:
        dtype, content = TYPES[kind.text], bytearray(read(key))
        numbers = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
        known[kind.text, key] = Stored(numbers)
    if type(count) is not int or known[kind.text, key].numbers.numel() != count:
        raise Refused("a storage of another size than its record")
    return known[kind.text, key]


def _made(function: Any, arguments: Any) -> Any:
    """What a call gives: an empty dictionary, or a tensor."""
    called = function.text if isinstance(function, Name) else ""
    if called == ORDERED and arguments == ():
        return {}
    if called != TENSOR or type(arguments) is not tuple or len(arguments) not in (6, 7):
        raise Refused("a call of something else than a tensor")
    stored, offset, size, stride = arguments[:4]
    if not isinstance(stored, Stored) or type(size) is not tuple or type(stride) is not tuple:
        raise Refused("a tensor of something else than numbers")
    if not all(type(number) is int and number >= 0 for number in (offset, *size, *stride)):
        raise Refused("a tensor that reaches beyond its numbers")
    if 0 in size:
        return stored.numbers.new_empty(size)
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if max(last + 1, prod(size)) > stored.numbers.numel():  # a step of 0 would make much of little
        raise Refused("a tensor that reaches beyond its numbers")
    return stored.numbers.as_strided(size, stride, offset)


def _named_tensors(stack: list[Any]) -> dict[str, Tensor]:
    if len(stack) != 1 or type(stack[0]) is not dict:
        raise Refused("something else than a dictionary")
    found: dict[str, Tensor] = stack[0]
    other = next((key for key, value in found.items() if not isinstance(value, Tensor)), None)
    if other is not None:
        raise Refused(f"{other[:100]!r} is no tensor")
    return found
