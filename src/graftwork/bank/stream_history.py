"""`stream.json`: what a stream of tasks has learnt so far, written whole after every task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment

FORMAT = 1
Row = dict[str, Any]  # one task: its score, bytes and seconds, and what became of the earlier ones


class History:
    """The rows of a stream in the order in which they were learnt. A later command goes on with the same file."""

    def __init__(self, path: Path, identity: Mapping[str, Any]):
        """Read what an earlier command has left. Raises `ConfigError` where that was another stream, `StorageError`."""
        self.path, self.identity = path, dict(identity)
        self.rows: dict[str, Row] = {}
        self.failed: dict[str, str] = {}  # task -> message, of this command
        self.more: dict[str, Any] = {}  # what a learner keeps beside the rows
        if path.exists():
            try:
                self._go_on(read_json(path))
            except (KeyError, TypeError, AttributeError) as error:
                got = f"{type(error).__name__}: {error}"
                raise StorageError("not the file of a stream", where=str(path), got=got, do="move it away") from None

    def put(self, row: Row) -> None:
        """The newest row; one of the same task before it is replaced."""
        self.rows.pop(row["task"], None)
        self.rows[row["task"]] = row
        self.write()

    def write(self) -> None:
        """The file, whole."""
        write_json(self.path, self.content)

    @property
    def content(self) -> dict[str, Any]:
        """What stands in the file."""
        told = {"format": FORMAT, "stream": self.identity, "tasks": list(self.rows.values()), "failed": self.failed}
        return told | self.more | {"environment": environment()}

    def _go_on(self, content: Mapping[str, Any]) -> None:
        if content.get("format") != FORMAT:
            raise StorageError(
                "written by another version of Graftwork", where=str(self.path), expected=f"format {FORMAT}"
            )
        differing = [
            key for key, value in self.identity.items() if _counts(content["stream"].get(key)) != _counts(value)
        ]
        if differing:
            raise ConfigError(
                f"another stream is kept here: its {' and '.join(differing)} differ",
                where=str(self.path),
                got="; ".join(f"{key} {self.identity[key]}" for key in differing),
                expected="; ".join(f"{key} {content['stream'].get(key)}" for key in differing),
                do="name another folder for this one: --out DIR",
            )
        own = ("format", "stream", "tasks", "failed", "environment")
        self.rows = {row["task"]: row for row in content["tasks"]}
        self.more = {key: value for key, value in content.items() if key not in own}


def _counts(part: Any) -> Any:
    """What of a part of the identity decides: of a backbone the revision, which may be called by several names."""
    return part["revision"] if isinstance(part, dict) and "revision" in part else part
