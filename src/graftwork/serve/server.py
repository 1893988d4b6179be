"""The life cycle of a server: open a bank, bind, serve until a signal, drain."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn

from graftwork.errors import ConfigError
from graftwork.serve.app import application
from graftwork.serve.connection_limits import LimitedHttpProtocol
from graftwork.serve.feedback_file import FeedbackFile
from graftwork.serve.request_log import Records
from graftwork.serve.server_limits import ServerLimits, connections_within
from graftwork.serve.service import ServedTasks, Service, Watcher

NOTICE_SECONDS = 1.0  # between "not ready" and closing the socket, so that load balancers notice
END_SECONDS = 5.0  # after that, in total, for the running batch and for a bank change that is being loaded
BACKLOG = 2048  # connections waiting to be accepted
ACCEPTED = 8  # connections accepted at once: the more, the more descriptors a flood takes before it is refused
SAME_SECONDS = 10.0  # least time between two log lines of the same trouble
KERNELS = "32"
SWITCH_SECONDS = 0.0001  # torch releases the GIL at every operation and waits at most this long for it


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the port; `Server.start` makes it listen once requests can be answered.

    Raises `ConfigError` for a port in use and for an address that is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Given the protocol, asyncio sets TCP_NODELAY and sends at once instead of waiting 40 ms for more data.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise _taken(f"{host}:{port}", error) from None
    return listener


def _taken(where: str, error: Exception) -> ConfigError:
    return ConfigError(
        "cannot listen on this address: another server may be running",
        where=where,
        got=str(getattr(error, "strerror", None) or error),
        do="choose another port with --port, or end the other server",
    )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`. Raises `ConfigError` unless it is an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ConfigError("--host is not an address", got=host, expected="an IP address, or localhost") from None


class Server:
    """A service behind a socket, in its own thread. `port` is the actual one if 0 was requested."""

    def __init__(self, service: Service, token: str, listener: socket.socket, pause_seconds: float = 1.0):
        self.service, self.port = service, int(listener.getsockname()[1])
        self.ended = threading.Event()
        self._listener = listener
        self._watcher = Watcher(service, pause_seconds)
        gate = application(service, token)
        self.routes = gate.routes
        limits = self._limits_within_descriptors()
        self._troubles: dict[str, float] = {}  # when each was logged
        config = uvicorn.Config(
            gate,
            http=cast(Any, partial(LimitedHttpProtocol, limits, service.turned_away)),
            backlog=ACCEPTED,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_keep_alive=limits.keep_alive_seconds,
            timeout_graceful_shutdown=limits.grace_seconds,
        )
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        """Start to listen and answer. The tasks must be open already: `Service.renew`.

        Raises `ConfigError` if another server listens there by now.
        """
        try:
            self._listener.listen(BACKLOG)
        except OSError as error:
            raise _taken(":".join(map(str, self._listener.getsockname()[:2])), error) from None
        self.service.records.start()
        self.service.batcher.start()
        self._watcher.start()
        self._thread.start()
        while not (self._uvicorn.started or self.ended.is_set()):
            time.sleep(0.005)
        with contextlib.suppress(OSError):  # it has ended already
            self._listener.listen(BACKLOG)  # asyncio has set it to what it accepts at once

    def stop(self, notice_seconds: float = NOTICE_SECONDS) -> None:
        """Report "not ready", serve on for `notice_seconds`, stop listening, finish accepted requests.

        Takes at most the grace and 10 s more.
        """
        self.service.draining = True
        self.service.records.event("draining")
        self.ended.wait(notice_seconds)
        self._uvicorn.should_exit = True
        self._thread.join()
        latest = time.monotonic() + END_SECONDS
        self.service.batcher.stop(END_SECONDS)
        self._watcher.stop(max(0.0, latest - time.monotonic()))
        self.service.records.event("ended")
        self.service.records.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._answer())
        finally:
            self.ended.set()

    async def _answer(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._log_trouble)
        await self._uvicorn.serve(sockets=[self._listener])

    def _log_trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the event loop, the same one at most every `SAME_SECONDS`: some are repeated all the time."""
        error, now = context.get("exception"), time.monotonic()
        why = ": ".join(str(part) for part in (context["message"], error) if part)
        if now - self._troubles.get(why, -SAME_SECONDS) >= SAME_SECONDS:
            self._troubles[why] = now
            told = (
                {}
                if error is None or isinstance(error, OSError)
                else {"traceback": "".join(traceback.format_exception(error))}
            )
            self.service.records.event("trouble in the event loop", why=why, **told)

    def _limits_within_descriptors(self) -> ServerLimits:
        limits = self.service.limits
        connections = connections_within(limits.connections)
        if connections < limits.connections:
            event = f"fewer connections than {limits.connections:,}: the limit of file descriptors is low (ulimit -n)"
            self.service.records.event(event, connections=connections)
        return replace(limits, connections=connections)


def keep_few_kernels() -> None:
    """Bound the memory of the kernels that oneDNN compiles per batch shape: a server always sees new shapes.

    Read when the first kernel is compiled; the user's own values are kept. The default, 1,024 in each of two caches,
    grows to a gigabyte and is no faster: the blocks of one batch share their shapes.
    """
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, KERNELS)


@contextlib.contextmanager
def quick_turns() -> Iterator[None]:
    """Switch Python threads more often than every 5 ms, so that requests and batches wait less for each other."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Exclude current objects from cyclic garbage collection: a full collection stops all threads for 0.3 s."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def serve_bank(
    folder: Path,
    address: tuple[str, int],
    token: str,
    limits: ServerLimits,
    *,
    device: str,
    log_texts: bool,
    feedback: Path | None = None,
    say: Callable[[int], None],
) -> None:
    """Open a bank, or a task by itself, and serve it until SIGTERM, SIGHUP or Ctrl-C, then drain.

    Labels that clients send go to the file `feedback`, if given. `say` is called with the port when it is ready.
    Before that no connection is accepted, and these signals end the process at once. A task that can't be opened is
    logged and listed as failed; the others are served. Raises as `FeedbackFile.open`, `bind`, `open_served` and
    `Server.start`.
    """
    kept = None if feedback is None else FeedbackFile.open(feedback, limits.feedback_bytes)
    keep_few_kernels()
    service = Service(open_served(folder, device), limits, Records(sys.stderr), log_texts=log_texts, feedback=kept)
    with bind(*address) as listener, quick_turns():
        service.renew()
        server = Server(service, token, listener)
        with signals() as wanted, short_pauses():
            server.start()
            say(server.port)
            while not (wanted.wait(0.5) or server.ended.is_set()):
                pass
            server.stop()


def open_served(folder: Path, device: str) -> ServedTasks:
    """Open what is to be served: a bank, an exported bank, or one task (a task module, a run or an exported task).

    Raises as `Bank.open`, and for a task as `TaskModule.load`.
    """
    from graftwork.module.exported_folder import EXPORTED_BANK, is_exported
    from graftwork.module.module_place import has_module

    if is_exported(folder, EXPORTED_BANK):
        from graftwork.bank.exported_bank import ExportedBank

        return ExportedBank.open(folder)
    if is_exported(folder) or has_module(folder):
        from graftwork.bank.single_task import SingleTask

        return SingleTask.open(folder, device=device)
    from graftwork.bank.bank import Bank

    return Bank.open(folder, device=device)


@contextlib.contextmanager
def signals() -> Iterator[threading.Event]:
    """Make SIGTERM, SIGHUP and Ctrl-C only set the yielded event. SIGHUP stays ignored where it is, as under nohup."""
    wanted, numbers = threading.Event(), [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: wanted.set()) for number in numbers}
    try:
        yield wanted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
