"""Word vectors in a folder: a memory-mapped safetensors table, with its words beside it, one per line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from graftwork.data.readers.word_vector_files import read_word_vectors
from graftwork.errors import ConfigError, DataError, IncompatibleModule, StorageError, clip
from graftwork.io.files import require_finite, safe_load, storage_errors, write_json, write_tensors, write_text
from graftwork.io.plain_files import read_plain
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_folder import WEIGHTS
from graftwork.pretrained.model_json import checked_json
from graftwork.pretrained.open_backbone import backbone_folder
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.registry import backbones

MODEL_TYPE = "word_vectors"
CONFIG, WORDS, TABLE = "config.json", "words.txt", "embedding.weight"
FORMAT = 1
MOST_OF_WORDS = 1 << 30  # most bytes of the list of words


def open_word_vectors(path: Path) -> WordVectors:
    """Read the table of a folder, or of a file in another program's format. Raises `StorageError` or `DataError`."""
    return read_folder(path) if path.is_dir() else read_word_vectors(path)


def named_word_vectors(name: str) -> WordVectors:
    """Read the table that a user names: a file, a folder, a backbone of word vectors, or the folder of a pre-training.

    Raises `StorageError` or `DataError`, `ConfigError` for the name of another backbone.
    """
    folder = backbone_folder(name)
    if folder is None and name in backbones.names():
        what = "a table of word vectors: a file, a folder, or a run of graft pretrain"
        raise ConfigError("this backbone is not a table of word vectors", got=name, expected=what)
    return open_word_vectors(folder or Path(name.removeprefix(f"{MODEL_TYPE}:")).expanduser())


def write_folder(folder: Path, vectors: WordVectors, facts: Mapping[str, Any] | None = None) -> None:
    """Write a folder that opens as a backbone; `facts` are JSON kept with it. Raises `DataError` or `StorageError`."""
    if any(not word or "\n" in word for word in vectors.words):
        raise DataError(
            "an empty word, or one with a line feed, can't be in a list of words",
            where=str(folder),
            do="leave such words out",
        )
    write_tensors(folder / WEIGHTS, {TABLE: torch.from_numpy(vectors.table)})
    write_text(folder / WORDS, "".join(f"{word}\n" for word in vectors.words))
    config = {"model_type": MODEL_TYPE, "format": FORMAT, "words": len(vectors.words), "width": vectors.width}
    write_json(folder / CONFIG, config | dict(facts or {}))


def read_folder(folder: Path) -> WordVectors:
    """Read what `write_folder` wrote. Raises `StorageError`, `DataError`, `IncompatibleModule` if parts don't match."""
    config = checked_json(model_file(folder, CONFIG))
    if config.get("model_type") != MODEL_TYPE:
        raise StorageError(
            "the folder holds no word vectors",
            where=str(folder),
            got=f"a model of type {clip(str(config.get('model_type')))}",
            expected=f"model_type {MODEL_TYPE!r}",
            do="name a folder that graft vectors or graft pretrain wrote, or a file of vectors",
        )
    if config.get("format") != FORMAT:
        raise StorageError(
            "the word vectors have another format",
            where=str(folder),
            got=str(config.get("format")),
            expected=str(FORMAT),
        )
    words = _words(model_file(folder, WORDS))
    tensors = safe_load(model_file(folder, WEIGHTS))
    require_finite(tensors, folder / WEIGHTS)
    table = tensors.get(TABLE)
    if table is None or table.shape != (len(words), config.get("width")) or len(words) != config.get("words"):
        raise IncompatibleModule(
            "words and vectors do not belong together",
            where=str(folder),
            got=f"{len(words):,} words and a table {'missing' if table is None else tuple(table.shape)}",
            expected=f"{config.get('words')} words of {config.get('width')} numbers",
        )
    return WordVectors(words, table.float().numpy())


def _words(path: Path) -> tuple[str, ...]:
    with storage_errors(path):
        content = read_plain(path, MOST_OF_WORDS)
    try:
        return tuple(content.decode().split("\n")[:-1])
    except UnicodeDecodeError as error:
        raise DataError(
            f"the list of words is not UTF-8 (byte {error.start:,} of the file)",
            where=str(path),
            do="convert the file: iconv -t UTF-8",
        ) from None
