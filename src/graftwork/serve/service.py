"""The service: a served bank and the state that the routes share."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from graftwork.bank.task_version import BankChanges, TaskEntry
from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.core.writing import Tell
from graftwork.errors import GraftworkError
from graftwork.module.input_format import GivenInputs
from graftwork.module.task_module import TaskModule
from graftwork.serve.batching import Batcher
from graftwork.serve.catalogue import Catalogue
from graftwork.serve.feedback_file import FeedbackFile
from graftwork.serve.http_errors import HttpRefusal
from graftwork.serve.prometheus import Measures
from graftwork.serve.request_log import Records
from graftwork.serve.server_limits import ServerLimits

RETRY_SECONDS = 30.0  # between two attempts to open a task that failed


class ServedTasks(Protocol):
    """A bank, as the server uses it."""

    @property
    def path(self) -> Path:
        """Its folder."""

    @property
    def tasks(self) -> Mapping[str, TaskEntry]:
        """The tasks that it serves, by name."""

    @property
    def card(self) -> BackboneCard | None:
        """The backbone's card."""

    @property
    def precision(self) -> str | None:
        """The precision of the backbone."""

    @property
    def by_version(self) -> Mapping[str, TaskEntry]:
        """Every stored version as `TASK@VERSION`. Raises `StorageError`."""

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Tell | None = None) -> list[dict[str, Any]]:
        """Predict rows of any tasks, in order; `tell` is called with the texts of rows while they are written."""

    def cut(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[bool]:
        """Return, per row, whether it is too long and therefore truncated."""

    def refresh(self) -> BankChanges:
        """Load the changes of the folder."""

    def load_all(self) -> Mapping[str, str]:
        """Open all tasks; return task -> message of those that can't be opened."""

    def module(self, name: str) -> TaskModule:
        """Return a task on its own. Raises `UnknownName`, `IncompatibleModule`, `StorageError`."""

    def open_backbone(self) -> Backbone:
        """Return the backbone. Raises `ConfigError` if there is none to look into."""


@dataclass(eq=False)
class Service:
    """The bank, its request queue, and their state and measures."""

    bank: ServedTasks  # predicts in the batching thread while the watcher's thread refreshes it
    limits: ServerLimits
    records: Records
    log_texts: bool = False
    feedback: FeedbackFile | None = None
    measures: Measures = field(default_factory=Measures)
    catalogue: Catalogue = field(default_factory=lambda: Catalogue({}, {}))
    draining: bool = False  # shutting down: accepted requests are still answered
    failed: Mapping[str, str] = field(default_factory=dict)  # task -> why its newest version can't be opened
    trouble: str = ""  # why the folder could not be re-read; open tasks are still served
    listing: tuple[Catalogue, bytes] | None = None  # cached `GET /v1/tasks` body and its catalogue
    batcher: Batcher = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = Batcher(lambda rows, tell: self.bank.answers(rows, tell), self.limits, self.measures.batch)
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
        """True if new requests are accepted."""
        return self.batcher.alive and not self.draining

    def turned_away(self, refused: HttpRefusal, client: str) -> None:
        """Count and log a connection refused before it became a request; it has no duration."""
        self.measures.requests.labels("other", str(refused.status)).inc()
        why = ": ".join(part for part in (refused.what, refused.got) if part)
        self.records.line({"route": "other", "status": refused.status, "why": why, "client": client})

    def mistake(self, error: Exception, scope: Mapping[str, Any]) -> HttpRefusal:
        """Log an internal error of a request, with its ASGI scope; return the message for the client."""
        lines, request = traceback.format_exception(error), scope["record"]["request_id"]
        self.records.event("internal error", path=scope["path"], request_id=request, traceback="".join(lines))
        return HttpRefusal(500, "an internal error; details are in the server's log")

    def renew(self) -> None:
        """Open new versions in the folder and update the catalogue. A `GraftworkError` is logged, not raised."""
        try:
            self.bank.refresh()
            failed = self.bank.load_all()
        except GraftworkError as error:
            if error.message != self.trouble:
                self.records.event(
                    "the bank cannot be read; tasks that are open already are still served", why=error.message
                )
            self.trouble = error.message
            return
        self.trouble = ""
        before = self.catalogue
        tasks = {
            name: entry
            for name, entry in self.bank.tasks.items()
            if name not in failed or name in before.tasks  # a failed one keeps its old version
        }
        unopened = {name: without_places(why) for name, why in failed.items() if name not in tasks}
        by_version: Mapping[str, TaskEntry] = {}
        with suppress(GraftworkError):  # the ledger is broken: current versions are still served
            by_version = self.bank.by_version
        self.catalogue = Catalogue(tasks, unopened, by_version)
        former, self.failed = self.failed, dict(failed)
        self._tell(before, {name: why for name, why in failed.items() if former.get(name) != why})

    def _tell(self, before: Catalogue, failed: Mapping[str, str]) -> None:
        """Log the differences from the catalogue `before`, and the newly failed tasks."""
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
    """Return the first line of an error message without paths, which clients must not see."""
    line = message.partition("\n")[0]
    place, colon, what = line.partition(": ")
    return re.sub(r"\S*[/\\]\S*", "…", what if colon and re.search(r"[/\\]", place) else line)


class Watcher:
    """A thread that checks once a second for changes in the bank's folder, and retries failed tasks now and then, as
    their files may have been restored."""

    def __init__(self, service: Service, pause_seconds: float = 1.0, retry_seconds: float = RETRY_SECONDS):
        self._service, self._pause, self._retry = service, pause_seconds, retry_seconds
        self._tried = time.monotonic()
        self._seen: tuple[int, ...] | None = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Stop the thread, waiting up to this time for a change that is being loaded."""
        self._stop.set()
        self._thread.join(timeout=seconds)

    def _mark(self) -> tuple[int, ...] | None:
        """Return a value that changes whenever `bank.json` is replaced; None while it does not exist."""
        try:
            found = (self._service.bank.path / "bank.json").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _again(self) -> bool:
        """Return whether there is a failure that may be fixed by now and whose last attempt is long enough ago."""
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
                self._service.records.event(
                    "the change of the bank could not be loaded", why=f"{type(error).__name__}: {error}"
                )
