"""The append-only ledger of a bank: one line per change, each with the hash of the previous line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import canonical, storage_errors
from graftwork.io.json_limits import JsonLimits, parse_json
from graftwork.io.plain_files import read_plain

START = "0" * 64  # hash in place of the line before the first
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")  # of a task
LONGEST = 256 << 20  # bytes: a million changes
LINE = JsonLimits(bytes=4096, lists=8, values=64)
ACTIONS = ("create", "add", "remove", "rename", "rollback")


@dataclass(frozen=True)
class Change:
    """One line of the ledger."""

    number: int  # of the line, from 1
    time: str  # ISO 8601, UTC
    action: str  # one of `ACTIONS`
    previous: str  # sha256 of the previous line
    task: str | None = None
    version: int | None = None
    digest: str | None = None  # of this version
    to: str | None = None  # the new name in a rename

    @property
    def line(self) -> bytes:
        """The line as stored in the file, without its line end; fields that are None are left out."""
        return canonical({key: value for key, value in asdict(self).items() if value is not None}).encode()

    @property
    def hash(self) -> str:
        """sha256 of the line, stored in the next line, or in `bank.json` for the last one."""
        return hashlib.sha256(self.line).hexdigest()


@dataclass(frozen=True)
class Ledger:
    """The content of the ledger file up to its head."""

    changes: tuple[Change, ...] = ()
    head: str = START  # hash of the last change
    bytes: int = 0  # of these changes
    after: int = 0  # lines after the head: of a change that was interrupted, or is in progress

    def next(
        self,
        action: str,
        task: str | None = None,
        version: int | None = None,
        digest: str | None = None,
        to: str | None = None,
    ) -> Change:
        """Build the next change, without writing it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Change(len(self.changes) + 1, now, action, self.head, task, version, digest, to)


@dataclass
class LedgerTask:
    """The state of one task according to the ledger."""

    current: int
    versions: dict[int, str] = field(default_factory=dict)  # version -> digest
    added: dict[int, str] = field(default_factory=dict)  # version -> time of its addition, ISO 8601, UTC


def read_ledger(path: Path, head: str) -> Ledger:
    """Read the changes up to the one whose hash is `head`. Raises `StorageError` when the chain is broken before it."""
    with storage_errors(path):
        raw = read_plain(path, LONGEST)
    changes: list[Change] = []
    previous, length = START, 0
    for line in raw.split(b"\n")[:-1]:
        change = _parsed(line)
        if change is None:
            raise _broken(path, len(changes) + 1, "it is not a change of a bank")
        if change.previous != previous or change.number != len(changes) + 1:
            raise _broken(path, len(changes) + 1, "it doesn't follow the line before it")
        changes.append(change)
        previous, length = hashlib.sha256(line).hexdigest(), length + len(line) + 1
        if previous == head:
            rest = raw[length:]
            return Ledger(tuple(changes), head, length, rest.count(b"\n") + (not rest.endswith(b"\n") and rest != b""))
    raise _broken(
        path, len(changes), "this is the last complete line, but not the one that bank.json names as the last"
    )


def tail_of(path: Path, ledger: Ledger) -> Change | None:
    """Read the line after the head, of an interrupted change; None when it is incomplete or follows another line."""
    with storage_errors(path):
        lines = path.read_bytes()[ledger.bytes :].split(b"\n")[:-1]
    change = _parsed(lines[0]) if lines else None
    follows = change is not None and (change.previous, change.number) == (ledger.head, len(ledger.changes) + 1)
    return change if follows else None


def append(path: Path, change: Change) -> None:
    """Append a line and sync it to disk. Raises `StorageError`."""
    with storage_errors(path), path.open("ab") as stream:
        stream.write(change.line + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def cut(path: Path, ledger: Ledger) -> None:
    """Truncate the file after the head. Raises `StorageError`."""
    with storage_errors(path), path.open("r+b") as stream:
        stream.truncate(ledger.bytes)
        os.fsync(stream.fileno())


def replay(changes: Iterable[Change]) -> dict[str, LedgerTask]:
    """Return the tasks that result from these changes, in order of addition or renaming."""
    kept: dict[str, LedgerTask] = {}
    for change in changes:
        _follow(kept, change)
    return kept


def _follow(kept: dict[str, LedgerTask], change: Change) -> None:
    task, version = change.task or "", change.version or 0
    if change.action == "add":
        one = kept.setdefault(task, LedgerTask(version))
        one.current, one.versions[version], one.added[version] = version, change.digest or "", change.time
    elif change.action == "remove":
        del kept[task]
    elif change.action == "rename":
        kept[change.to or ""] = kept.pop(task)
    elif change.action == "rollback":
        kept[task].current = version


def next_version(ledger: Ledger, task: str) -> int:
    """Return 1 + the highest version ever under this name, added or renamed to it, so that no path is ever reused."""
    return 1 + max(_ever(ledger, task), default=0)


def require_free(ledger: Ledger, task: str, new: str, where: Path) -> None:
    """Raise `ConfigError` where a version of `task` would get a name and number that another version had before."""
    had = _ever(ledger, new)
    if any(had.get(version, digest) != digest for version, digest in replay(ledger.changes)[task].versions.items()):
        raise ConfigError(
            f"another task was named {new!r}, with the same version numbers",
            where=str(where),
            do="choose another name: version numbers are never reused",
        )


def _ever(ledger: Ledger, name: str) -> dict[int, str]:
    """Return version -> digest of all versions ever stored under this name."""
    kept: dict[str, LedgerTask] = {}
    had: dict[int, str] = {}
    for change in ledger.changes:
        _follow(kept, change)
        if change.action == "add" and change.task == name:
            had[change.version or 0] = change.digest or ""
        elif change.action == "rename" and change.to == name:
            had |= kept[name].versions
    return had


def require_agreement(told: Mapping[str, tuple[int, str]], ledger: Ledger, where: Path) -> None:
    """Raise `StorageError` unless the changes lead to these tasks, each with its version and digest."""
    try:
        kept = {name: (one.current, one.versions[one.current]) for name, one in replay(ledger.changes).items()}
    except KeyError as error:
        raise _broken(
            where / "ledger.jsonl", len(ledger.changes), f"there was no {error.args[0]!r} to change"
        ) from None
    for name in sorted(told.keys() | kept.keys()):
        if told.get(name) != kept.get(name):
            got, expected = (
                f"version {one[0]}, digest {one[1][:16]}…" if one else "no such task"
                for one in (told.get(name), kept.get(name))
            )
            raise StorageError(
                f"bank.json and the ledger disagree about {name!r}",
                where=str(where),
                got=got,
                expected=expected,
                do="restore bank.json and ledger.jsonl from one backup; predictions still work",
            )


def _parsed(line: bytes) -> Change | None:
    """Parse a line, or return None if it is invalid. Names and versions become paths, so they are validated."""
    try:
        change = Change(**parse_json(line, LINE))
        named = [name for name in (change.task, change.to) if name is not None]
        sound = change.action in ACTIONS and type(change.version) in (int, type(None))
        return change if sound and all(map(NAME.fullmatch, named)) else None
    except (ValueError, TypeError):
        return None


def _broken(path: Path, number: int, why: str) -> StorageError:
    return StorageError(
        f"the ledger is damaged at line {number}: {why}",
        where=str(path),
        expected="unchanged lines, the last of which bank.json names",
        do="restore ledger.jsonl and bank.json from one backup; predictions still work",
    )
