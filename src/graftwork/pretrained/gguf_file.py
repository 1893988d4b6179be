"""GGUF files, the format of llama.cpp: each is unpacked once into a transformers folder, opened like any other.

The header is checked against limits before a library reads it, because libraries allocate and loop by its counts.
"""

from __future__ import annotations

import os
import struct
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from graftwork.errors import StorageError
from graftwork.io.cache_folder import cache_folder
from graftwork.io.extras import extra
from graftwork.io.files import file_digest, read_json, storage_errors, write_json, write_tensors
from graftwork.io.json_limits import TOKENIZER, BeyondLimits

SUFFIX, MAGIC, VERSIONS = ".gguf", b"GGUF", (2, 3)
TEXT, LIST = 8, 9  # numbers of the value types string and list
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # type of a number -> bytes
MOST_ENTRIES, MOST_TENSORS, MOST_ITEMS, MOST_DIMENSIONS = 4096, 65_536, 2_000_000, 4
LONGEST = 1 << 24  # bytes of a text
MOST_PER_BYTE = 8  # weights per byte of the file


def gguf_in(source: Path) -> Path | None:
    """Return `source` if it is a GGUF file, or the only one in a folder without config.json; else None.

    Raises `StorageError` for several of them.
    """
    if source.is_file():
        return source if source.suffix == SUFFIX else None
    if not source.is_dir() or (source / "config.json").exists():
        return None
    found = sorted(source.glob(f"*{SUFFIX}"))
    if len(found) > 1:
        raise StorageError(
            "the folder has several GGUF files and no config.json",
            where=str(source),
            got=", ".join(path.name for path in found[:5]),
            do=f"name one: {found[0]}; parts of one network are joined by llama.cpp's llama-gguf-split --merge",
        )
    return found[0] if found else None


def unpacked_folder(file: Path) -> Path:
    """Unpack a GGUF file once into a transformers folder with fp32 weights, beside the cache of hidden states.

    Returns that folder. Raises `StorageError` for a damaged file or an unknown architecture, and `MissingExtra`.
    """
    with storage_errors(file):
        place = cache_folder().parent / "gguf" / file_digest(file)
        if (place / "config.json").is_file():
            return place
        numbers = _checked(file)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with extra("gguf", "a GGUF file", where=str(file)):
        import_module("accelerate")  # transformers asks for both
        import_module("gguf")
    with storage_errors(place), tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as made:
        _unpack(file, numbers, Path(made) / "network")
        try:
            os.rename(Path(made) / "network", place)
        except OSError:
            if not place.is_dir():  # the reason is not that another process was faster
                raise
    return place


def _unpack(file: Path, numbers: int, folder: Path) -> None:
    """Write the network and tokenizer of a checked file. transformers gets a folder with nothing else in it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from graftwork.pretrained.network_config import configuration, require_room
    from graftwork.pretrained.transformers_errors import transformers_errors

    with tempfile.TemporaryDirectory(prefix="graftwork-") as beside, transformers_errors(file):
        (Path(beside) / "network.gguf").symlink_to(file.resolve())
        folder.mkdir()
        write_json(folder / "config.json", AutoConfig.from_pretrained(beside, gguf_file="network.gguf").to_dict())
        require_room(partial(AutoModelForCausalLM.from_config, configuration(folder)), numbers, file)
        read = AutoModelForCausalLM.from_pretrained(
            beside, gguf_file="network.gguf", dtype=torch.float32, local_files_only=True
        )
        tensors = {tensor.data_ptr(): (name, tensor) for name, tensor in reversed(read.state_dict().items())}
        write_tensors(folder / "model.safetensors", dict(tensors.values()))  # tied tensors are stored once
        tokenizer = AutoTokenizer.from_pretrained(beside, gguf_file="network.gguf", local_files_only=True)
        _save_tokenizer(tokenizer, read.config.vocab_size, folder)


def _save_tokenizer(tokenizer: Any, rows: int, folder: Path) -> None:
    """Save a tokenizer without the token for unknown text that transformers adds beyond the network's `rows`."""
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id >= rows:
        tokenizer.unk_token = None
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer.json"
    told = read_json(path, TOKENIZER)
    write_json(path, told | {"added_tokens": [token for token in told["added_tokens"] if token["id"] < rows]})


def _checked(file: Path) -> int:
    """Return the number of weights that the header states. Raises `StorageError` for a header beyond the limits."""
    with file.open("rb") as stream:
        try:
            return _Header(stream, file.stat().st_size).numbers()
        except BeyondLimits as rule:
            raise StorageError(
                f"not a whole GGUF file: {rule}", where=str(file), do="download it again, if you trust its source"
            ) from None


class _Header:
    """A reader that checks a header and keeps nothing of it. Its methods raise `BeyondLimits`."""

    def __init__(self, stream: BinaryIO, size: int):
        self.stream, self.size = stream, size

    def numbers(self) -> int:
        """Check the whole header, and return the number of weights in all tensors."""
        if self.stream.read(len(MAGIC)) != MAGIC or self.number("<I") not in VERSIONS:
            raise BeyondLimits("it does not begin as one of version 2 or 3")
        tensors, entries = self.number("<Q", MOST_TENSORS), self.number("<Q", MOST_ENTRIES)
        for _ in range(entries):
            self.text()
            self.entry(self.number("<I"))
        return sum(self.tensor() for _ in range(tensors))

    def number(self, form: str, most: int | None = None) -> int:
        """Read an integer, at most `most`, in a format of `struct`."""
        read = self.stream.read(struct.calcsize(form))
        if len(read) < struct.calcsize(form):
            raise BeyondLimits("it ends inside its header")
        (found,) = struct.unpack(form, read)
        if most is not None and found > most:
            raise BeyondLimits(f"its header says {found:,}, where {most:,} is most")
        return int(found)

    def skip(self, many: int) -> None:
        """Skip `many` bytes, which the file must have."""
        if self.stream.tell() + many > self.size:
            raise BeyondLimits("it ends inside its header")
        self.stream.seek(many, os.SEEK_CUR)

    def text(self) -> None:
        """Skip a string."""
        self.skip(self.number("<Q", LONGEST))

    def entry(self, kind: int) -> None:
        """Skip the value of a metadata entry of type `kind`: a number, a string or a list of either."""
        many = 1
        if kind == LIST:
            kind, many = self.number("<I"), self.number("<Q", MOST_ITEMS)
        if kind in WIDTHS:
            self.skip(many * WIDTHS[kind])
        elif kind == TEXT:
            for _ in range(many):
                self.text()
        else:
            raise BeyondLimits(f"an entry of the unknown type {kind}")

    def tensor(self) -> int:
        """Skip the description of a tensor, and return its number of weights."""
        self.text()
        size = 1
        for _ in range(self.number("<I", MOST_DIMENSIONS)):
            size *= self.number("<Q", MOST_PER_BYTE * self.size)
        self.number("<I")
        if self.number("<Q") > self.size or size > MOST_PER_BYTE * self.size:
            raise BeyondLimits("a tensor is larger than the file")
        return size
