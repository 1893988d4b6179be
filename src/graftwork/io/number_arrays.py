"""NumPy arrays in safetensors files, read without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from graftwork.io.files import storage_errors
from graftwork.io.plain_files import open_plain
from graftwork.io.safetensors_header import not_safetensors


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read a safetensors file as NumPy arrays, for dtypes that NumPy has. Raises `StorageError`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with storage_errors(path), open_plain(path) as stream:
        content = stream.read()
    try:
        return load(content)
    except SafetensorError as error:
        raise not_safetensors(path, content, error) from None
