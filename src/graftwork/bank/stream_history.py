"""`stream.json`: the tasks that a stream has learnt so far, rewritten after every task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment

FORMAT = 1
Row = dict[str, Any]  # one task: score, bytes, seconds, and the comparison of the earlier ones


class History:
    """The rows of a stream in the order of learning. A later command continues the same file."""

    def __init__(self, path: Path, identity: Mapping[str, Any]):
        """Read the file of an earlier command. Raises `ConfigError` if it belongs to another stream, `StorageError`."""
        self.path, self.identity = path, dict(identity)
        self.rows: dict[str, Row] = {}
        self.failed: dict[str, str] = {}  # task -> error message of this command
        self.more: dict[str, Any] = {}  # further entries of the file, which the learner sets
        if path.exists():
            try:
                self._go_on(read_json(path))
            except (KeyError, TypeError, AttributeError) as error:
                got = f"{type(error).__name__}: {error}"
                raise StorageError(
                    "this stream.json is damaged, or was not written by graft stream",
                    where=str(path),
                    got=got,
                    do="move it to another place",
                ) from None

    def put(self, row: Row) -> None:
        """Append a row, replacing an earlier one of the same task, and write the file."""
        self.rows.pop(row["task"], None)
        self.rows[row["task"]] = row
        self.write()

    def write(self) -> None:
        """Write the whole file."""
        write_json(self.path, self.content)

    @property
    def content(self) -> dict[str, Any]:
        """The content of the file."""
        told = {"format": FORMAT, "stream": self.identity, "tasks": list(self.rows.values()), "failed": self.failed}
        return told | self.more | {"environment": environment()}

    def _go_on(self, content: Mapping[str, Any]) -> None:
        if content.get("format") != FORMAT:
            raise StorageError(
                "written by another version of Graftwork",
                where=str(self.path),
                expected=f"format {FORMAT}",
                do="continue it with the version that wrote it, or name another folder: --out DIR",
            )
        differing = [
            key for key, value in self.identity.items() if _counts(content["stream"].get(key)) != _counts(value)
        ]
        if differing:
            raise ConfigError(
                f"this folder belongs to another stream: its {' and '.join(differing)} differ",
                where=str(self.path),
                got="; ".join(f"{key} {self.identity[key]}" for key in differing),
                expected="; ".join(f"{key} {content['stream'].get(key)}" for key in differing),
                do="name another folder for this one: --out DIR",
            )
        own = ("format", "stream", "tasks", "failed", "environment")
        self.rows = {row["task"]: row for row in content["tasks"]}
        self.more = {key: value for key, value in content.items() if key not in own}


def _counts(part: Any) -> Any:
    """Return the value to compare: for a backbone its revision, which may have several names."""
    return part["revision"] if isinstance(part, dict) and "revision" in part else part
