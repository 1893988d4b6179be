"""Servers and drivers as separate processes, for the benchmarks of this folder."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent.absolute()
TOKEN = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the process so far."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def events(self) -> list[dict[str, Any]]:
        """Return the log's lines that are not requests."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"time"') and '"event"' in line]


@contextlib.contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[Served]:
    """Start a process that prints `http://HOST:PORT/…` as its first line when ready; end it and wait for it on exit."""
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("http"):
                raise RuntimeError(f"it did not start: {line}{log.read_text()[-2000:]}")
            yield Served(process, int(line.split(":")[2].split("/")[0]), log)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


@contextlib.contextmanager
def graft_serve(bank: Path, folder: Path, threads: int, *flags: str) -> Iterator[Served]:
    """Run `graft serve BANK` on a free port; its token and its log are kept in `folder`."""
    secret = folder / "token"
    secret.unlink(missing_ok=True)
    secret.touch(0o600)
    secret.write_text(TOKEN)
    command = [sys.executable, "-m", "graftwork", "serve", str(bank), "--port", "0", "--token-file", str(secret)]
    number = len(list(folder.glob("*.log")))
    with started([*command, "--threads", str(threads), *flags], folder / f"server{number}.log") as served:
        yield served


def get(port: int, path: str) -> Any:
    """Return the JSON of a GET request."""
    url = f"http://127.0.0.1:{port}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})) as response:
        return json.load(response)


def drive(port: int, bodies: Sequence[str], seconds: float, **plan: Any) -> list[tuple[float, float, int]]:
    """Run a driver process and return its measurements: seconds since due, seconds since sent, status."""
    process = start_driver(port, bodies, seconds, **plan)
    return finish_driver(process)


def start_driver(port: int, bodies: Sequence[str], seconds: float, **plan: Any) -> subprocess.Popen[str]:
    """Start a driver process."""
    whole = {"clients": 32, "connections": 8, "rate": None, "seed": 0} | plan
    whole |= {"port": port, "token": TOKEN, "bodies": list(bodies), "seconds": seconds}
    command = [sys.executable, str(HERE / "driver.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(whole))
    process.stdin.close()
    process.stdin = None
    return process


def finish_driver(process: subprocess.Popen[str]) -> list[tuple[float, float, int]]:
    """Wait for a driver and return its measurements."""
    output, _ = process.communicate(timeout=3600)
    if process.returncode:
        raise RuntimeError("the driver failed")
    return [tuple(line) for line in json.loads(output)]


def summary(noted: list[tuple[float, float, int]], seconds: float) -> dict[str, Any]:
    """Summarise by status: requests, requests per second, and latency since due and since sent."""
    told: dict[str, Any] = {"requests": len(noted), "sent_per_second": len(noted) / seconds, "statuses": {}}
    for status in sorted({line[2] for line in noted}):
        chosen = np.array([line[:2] for line in noted if line[2] == status])
        told["statuses"][str(status)] = {
            "count": len(chosen),
            "per_second": len(chosen) / seconds,
            "since_due_ms": quantiles(chosen[:, 0]),
            "since_sent_ms": quantiles(chosen[:, 1]),
        }
    return told


def quantiles(seconds: Any) -> dict[str, float]:
    """Return quantiles in milliseconds."""
    listed = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100}
    return {name: round(float(np.percentile(seconds, share)) * 1000, 2) for name, share in listed.items()}


class Memory:
    """The memory of a server, sampled while something else runs."""

    def __init__(self, served: Served):
        self._served = served
        self.readings = [served.resident_bytes()]

    def watch(self, process: subprocess.Popen[str]) -> None:
        """Sample until the process ends."""
        while process.stdout is not None and process.poll() is None and not _readable(process):
            self.readings.append(self._served.resident_bytes())
            time.sleep(0.25)

    def told(self) -> dict[str, int]:
        """Return the memory before, after, and at most."""
        before, after = self.readings[0], self._served.resident_bytes()
        most = max(*self.readings, after)
        return {"before_bytes": before, "after_bytes": after, "most_bytes": most, "growth_bytes": most - before}


def _readable(process: subprocess.Popen[str]) -> bool:
    """Return whether the process has begun to write its output; it then blocks until the output is read."""
    return bool(select.select([process.stdout], [], [], 0)[0])
