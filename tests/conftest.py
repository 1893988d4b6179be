"""What every test runs in: no network, no hub, one thread, a user folder of its own."""

from __future__ import annotations

import errno
import functools
import gc
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub, which reads it once
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
import torch

sys.path.insert(
    0, str(Path(__file__).parent)
)  # `sessions` and `pretended_cuda` are importable whatever the import mode
pytest_plugins = ("sessions",)  # fixtures of runs

CHECKOUT = Path(__file__).resolve().parents[1]
LOOPBACK = ("127.0.0.1", "::1")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Sums are added in one order, two test processes share two cores, and garbage is collected more seldom."""
    torch.set_num_threads(1)
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def still_one_thread() -> Iterator[None]:
    """A test that sets another number, and leaves it, would slow down all that come after it."""
    yield
    assert torch.get_num_threads() == 1


@pytest.fixture(autouse=True, scope="module")
def left_for_good() -> None:
    """What stays of the tests before is walked by no later collection of garbage, which would take seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A chromium of the system's, driven by playwright; the test skips without either."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are tested by playwright, which is missing")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("pages are tested in chromium, which is missing")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """A suite in the background of a shell would ignore Ctrl-C, and so would every process it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def quick() -> Iterator[None]:
    """Speed is measured on few repeats, and what a test writes need not survive a power cut.

    `tiny_text` and the prior of the shipped boards, which are the same in every run, are made once.
    """
    from graftwork.backbones.tiny_text import TinyText
    from graftwork.decision import prior
    from graftwork.run import answer_speed

    built = functools.cache(TinyText.open)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("WARM_UPS", 1), ("REPEATS", 2), ("SOME", 8), ("MANY", 8)):
            patch.setattr(answer_speed, name, value)
        patch.setattr(os, "fsync", lambda handle: None)
        patch.setattr(TinyText, "open", lambda self, source, **how: built(self, source, **how).copy())
        patch.setattr(prior, "shipped_prior", functools.cache(prior.shipped_prior))
        yield


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for another machine fails at once; this one, and sockets in the file system, stay open."""

    def guard(connect: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
                raise AssertionError(f"a test tried to reach {address!r}; tests use no network")
            return connect(self, address)

        return guarded

    lookup = socket.getaddrinfo

    def no_lookup(host: Any, *rest: Any, **named: Any) -> Any:
        if host in LOOPBACK:
            return lookup(host, *rest, **named)
        raise AssertionError(f"a test tried to look up {host!r}; tests use no network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guard(getattr(socket.socket, name)))
    monkeypatch.setattr(socket, "getaddrinfo", no_lookup)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the users' folders of all tests are."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, homes: Path) -> Path:
    """The user's folder and caches are empty and thrown away."""
    home = Path(
        tempfile.mkdtemp(dir=homes)
    )  # numbering thousands of folders, as `mktemp` does, takes milliseconds each
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("GRAFTWORK_CACHE", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture(autouse=True)
def bf16_is_faster(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the processor has its products, also in processes that a test starts: no test hangs on a measurement."""
    from graftwork.machine import faster_precision
    from graftwork.machine.environment import multiplying

    found = faster_precision.MeasuredRates("bf16", {"fp32": 1e9, "bf16": 2e9})
    monkeypatch.setattr(faster_precision, "measure_rates", lambda: found)
    place = faster_precision.place_of(multiplying())
    assert place is not None and place.is_relative_to(own_home)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(asdict(found)))


@pytest.fixture(autouse=True)
def on_the_processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without the marker `cuda` finds no CUDA device, nor do the processes that it starts."""
    if request.node.get_closest_marker("cuda") is None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def shared() -> Path:
    """The folder of real data and weights: $GRAFTWORK_SHARED, or `shared` beside the checkout. Skips when missing."""
    folder = Path(os.environ.get("GRAFTWORK_SHARED") or CHECKOUT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set GRAFTWORK_SHARED")
    return folder


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that knows no locks."""

    def refused(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refused)
