"""The file of feedback: labelled texts as JSON lines, each appended whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic_core

from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import storage_errors
from graftwork.io.locks import hold_lock
from graftwork.serve.http_errors import HttpRefusal


@dataclass(frozen=True)
class FeedbackFile:
    """A file of JSON lines that is only appended to, each line whole or not at all, also by several processes."""

    path: Path
    most_bytes: int
    _lock: Any = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path, most_bytes: int) -> FeedbackFile:
        """Make the file, for its owner only, if it is missing. Raises `StorageError`, `ConfigError` for a device."""
        with storage_errors(path):
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            os.close(handle)
        if not plain:
            raise ConfigError("--feedback is not a plain file", where=str(path), do="name a file")
        return cls(path, most_bytes)

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a line and sync it. Raises `StorageError`, `HttpRefusal`, 507, for a file that is full."""
        line = pydantic_core.to_json(row) + b"\n"
        with self._lock, storage_errors(self.path), hold_lock(self.path), self.path.open("a+b", buffering=0) as stream:
            size = stream.seek(0, os.SEEK_END)
            if size + len(line) > self.most_bytes:
                expected = f"at most {self.most_bytes:,} bytes"
                raise HttpRefusal(507, "the feedback file is full", expected=expected, do="ask for another file")
            stream.seek(max(0, size - 1))
            torn = size > 0 and stream.read(1) != b"\n"  # an incomplete line of another program is at the end
            try:
                whole = b"\n" * torn + line
                if stream.write(whole) != len(whole):
                    raise StorageError("the disk is full", where=str(self.path), do="free some space")
                os.fsync(stream.fileno())
            except BaseException:
                stream.truncate(size)
                raise
