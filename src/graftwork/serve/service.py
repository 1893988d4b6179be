"""A bank that is served: what the routes share."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.errors import GraftworkError
from graftwork.module.input_format import GivenInputs
from graftwork.serve.batching import Answers, Batcher, Rows
from graftwork.serve.catalogue import Catalogue, Listed
from graftwork.serve.http_errors import HttpRefusal
from graftwork.serve.prometheus import Measures
from graftwork.serve.request_log import Records
from graftwork.serve.server_limits import ServerLimits


class ServedTask(Protocol):
    """A task in a bank."""

    @property
    def version(self) -> int:
        """Its current one."""

    @property
    def bytes(self) -> int:
        """Of its folder."""

    @property
    def description(self) -> Mapping[str, Any]:
        """The content of `module.json`."""

    @property
    def folder(self) -> Path:
        """Of the current version."""

    @property
    def has_board(self) -> bool:
        """Whether a leaderboard stands in it."""


RETRY_SECONDS = 30.0  # between two tries of what could not be opened


class Serveable(Protocol):
    """What is needed of a bank. `answers` runs in one thread while `refresh` runs in another."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def tasks(self) -> Mapping[str, ServedTask]:
        """By name."""

    @property
    def card(self) -> BackboneCard | None:
        """What is known of its backbone."""

    @property
    def precision(self) -> str | None:
        """That its backbone computes in."""

    def open_backbone(self) -> Backbone:
        """The one that all tasks share. Raises `ConfigError` before there is one."""

    def answers(self, rows: Sequence[tuple[str, Example]]) -> list[dict[str, Any]]:
        """In the order of rows."""

    def cut(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[bool]:
        """Which rows are longer than the backbone takes."""

    def refresh(self) -> object:
        """Take in what has changed in the folder."""

    def load_all(self) -> Mapping[str, str]:
        """Open what is not open yet; every task whose newest version could not be opened, with the message."""


@dataclass(eq=False)
class Service:
    """The bank, the queue before it, and what is known of both."""

    bank: Serveable
    limits: ServerLimits
    records: Records
    log_texts: bool = False
    measures: Measures = field(default_factory=Measures)
    catalogue: Catalogue = field(default_factory=lambda: Catalogue({}, {}))
    draining: bool = False  # asked to end: what was accepted is answered
    failed: Mapping[str, str] = field(default_factory=dict)  # tasks whose newest version can't be opened, and why
    trouble: str = ""  # why the folder could not be read again; what is open goes on being served
    listing: tuple[Catalogue, bytes] | None = None  # what is told of all tasks, and of which
    batcher: Batcher = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = Batcher(self._compute, self.limits, self.measures.batch)
        gauges = {
            "queue_requests": ("Requests that wait.", lambda: self.batcher.waiting[0]),
            "queue_tokens": (
                "Tokens that wait, a long request counted for its share.",
                lambda: self.batcher.waiting[1],
            ),
            "tasks": ("Tasks that are served.", lambda: len(self.catalogue.tasks)),
            "tasks_failed": ("Tasks that could not be opened.", lambda: len(self.catalogue.failed)),
        }
        for name, (says, read) in gauges.items():
            self.measures.gauge(name, says, read)

    @property
    def ready(self) -> bool:
        """Whether new requests are welcome."""
        return self.batcher.alive and not self.draining

    def _compute(self, rows: Rows) -> Answers:
        return self.bank.answers(rows)

    def turned_away(self, refused: HttpRefusal) -> None:
        """Count and log what was refused at the door: no request comes of it, and there is no time to tell."""
        self.measures.turned_away(refused.status)
        self.records.line({"route": "other", "status": refused.status, "why": refused.what})

    def renew(self) -> None:
        """Open what is new in the folder, and show it. Raises nothing: the log says what went wrong."""
        try:
            self.bank.refresh()
            failed = self.bank.load_all()
        except GraftworkError as error:
            if error.message != self.trouble:
                self.records.event("the bank can't be read; what is open goes on being served", why=error.message)
            self.trouble = error.message
            return
        self.trouble = ""
        before = self.catalogue
        tasks = {
            name: Listed(name, entry.version, entry.bytes, entry.description, entry.folder, entry.has_board)
            for name, entry in self.bank.tasks.items()
            if name not in failed or name in before.tasks  # one that fails goes on as before
        }
        unopened = {name: without_places(why) for name, why in failed.items() if name not in tasks}
        self.catalogue = Catalogue(tasks, unopened)
        former, self.failed = self.failed, dict(failed)
        self._tell(before, {name: why for name, why in failed.items() if former.get(name) != why})

    def _tell(self, before: Catalogue, failed: Mapping[str, str]) -> None:
        """The log's lines of a change."""
        for name, why in failed.items():
            self.records.event("task failed to open", task=name, why=why)
        now = {name: task.version for name, task in self.catalogue.tasks.items()}
        old = {name: task.version for name, task in before.tasks.items()}
        for name in now.keys() | old.keys():
            if name not in now:
                self.records.event("task removed", task=name, version=old[name])
            elif now[name] != old.get(name):
                self.records.event("task opened", task=name, version=now[name])


def without_places(message: str) -> str:
    """The first line of an error's message, without the file it names: clients are told no paths."""
    line = message.partition("\n")[0]
    place, colon, what = line.partition(": ")
    return re.sub(r"\S*[/\\]\S*", "…", what if colon and re.search(r"[/\\]", place) else line)


class Watcher:
    """Looks once a second whether the bank's folder has changed; what could not be opened is tried again now and then,
    as its files may have been put back."""

    def __init__(self, service: Service, pause_seconds: float = 1.0, retry_seconds: float = RETRY_SECONDS):
        self._service, self._pause, self._retry = service, pause_seconds, retry_seconds
        self._tried = time.monotonic()
        self._seen: tuple[int, ...] | None = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """A change that is being taken in is finished first, within this time."""
        self._stop.set()
        self._thread.join(timeout=seconds)

    def _mark(self) -> tuple[int, ...] | None:
        """What differs whenever `bank.json` was replaced; None while it is not there."""
        try:
            found = (self._service.bank.path / "bank.json").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _again(self) -> bool:
        """Whether something is amiss that may have been mended meanwhile, and was not tried for a while."""
        amiss = self._service.failed or self._service.trouble
        return bool(amiss) and time.monotonic() - self._tried >= self._retry

    def _work(self) -> None:
        while not self._stop.wait(self._pause):
            mark = self._mark()
            if mark == self._seen and not self._again():
                continue
            self._seen, self._tried = mark, time.monotonic()
            try:
                self._service.renew()
            except Exception as error:
                self._service.records.event("the change could not be taken in", why=f"{type(error).__name__}: {error}")
