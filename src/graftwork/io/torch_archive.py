"""Reader of the tensors that `torch.save` wrote, by torch's unpickler for weights, which runs no code of the file."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from graftwork.errors import StorageError
from graftwork.io.plain_files import LOOKED_AT, foreign

MOST_SHARED = 8  # maximum ratio of the tensors' bytes to the file's: tied weights share their bytes
_NAMED = re.compile(r"GLOBAL (\S+)")  # what torch refused to import


class NotTensors(Exception):
    """A file that holds anything but named tensors, or more than its size can hold."""


def read_archive(stream: BinaryIO, path: Path) -> dict[str, Tensor]:
    """Read the named tensors of an open file. Raises `StorageError` if it is damaged or holds anything else.

    `path` is for messages.
    """
    size = os.fstat(stream.fileno()).st_size
    try:
        _require_modest(stream, size)
        found = torch.load(stream, map_location="cpu", weights_only=True)
        _require_tensors(found, size)
    except Exception as error:  # a damaged file may raise anything
        refused = type(error).__name__ == "UnpicklingError"
        if not refused and not isinstance(error, NotTensors):
            raise StorageError(
                "not a valid archive of tensors",
                where=str(path),
                got=f"{type(error).__name__}: {str(error)[:200]}",
                expected="a file that torch.save has written",
                do="download or write the file again",
            ) from None
        named = _NAMED.search(str(error))
        what = str(error) if not refused else f"it names {named[1]}" if named else "torch does not load it as weights"
        raise StorageError(
            f"this archive holds more than tensors: {what}",
            where=str(path),
            expected="named tensors, as torch.save writes a state_dict",
            do="if you trust it, load it with its own library and save it as safetensors",
        ) from None
    return dict(found)


def _require_modest(stream: BinaryIO, size: int) -> None:
    """Raise `NotTensors` if the records are larger than the file when unpacked, `ValueError` for another format."""
    is_other = foreign(stream.read(LOOKED_AT))
    if is_other and is_other not in ("a zip archive", "a pickle"):
        raise ValueError(f"it is {is_other}")
    stream.seek(0)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            if sum(record.file_size for record in archive.infolist()) > size:
                raise NotTensors("records that are larger than the file")
    stream.seek(0)


def _require_tensors(found: Any, size: int) -> None:
    """Raise `NotTensors` unless `found` maps names to dense tensors, not far larger together than the file."""
    if not isinstance(found, Mapping):
        raise NotTensors(f"a {type(found).__name__} in place of named tensors")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            raise NotTensors(f"{str(name)[:80]!r} is no tensor with a name")
    if sum(prod(tensor.shape) * tensor.itemsize for tensor in found.values()) > MOST_SHARED * max(size, 1 << 20):
        raise NotTensors("tensors that share their bytes more than eight times")
