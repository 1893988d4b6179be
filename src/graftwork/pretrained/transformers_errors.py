"""Conversion of the errors that transformers raises for a bad folder or file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError
from transformers.utils import logging

from graftwork.errors import GraftworkError, StorageError
from graftwork.pretrained.tokenizer_file import unreadable

KNOWN = (  # errors that transformers raises for a bad folder
    OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, AttributeError, IndexError, SafetensorError,
)  # fmt: skip


@contextlib.contextmanager
def transformers_errors(folder: Path) -> Iterator[None]:
    """Convert errors of transformers for a bad folder or file to `StorageError`, and silence its logs in this block."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except GraftworkError:
        raise
    except KNOWN as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        what, do = ("folder", "use the files as save_pretrained writes them")
        if folder.is_file():  # GGUF
            what, do = ("file", "use the folder that it was made of")
        raise StorageError(f"transformers can't open this {what}: {reason[0]}", where=str(folder), do=do) from error
    except BaseException as error:
        raise unreadable(error, folder) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
