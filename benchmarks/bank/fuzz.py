"""Fuzz a server with malformed requests and check every response: `python fuzz.py --bank DIR`."""

from __future__ import annotations

import argparse
import collections
import importlib.metadata
import json
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fuzzing import Fuzzer, exchange, faults
from served import HERE, TOKEN, Served, get, graft_serve

from graftwork.io.files import write_json
from graftwork.machine.environment import environment

PATIENCE_SECONDS = 0.25  # to wait for a response to bytes that may not be a complete request
SHOWN = 20  # faulty requests kept in the result, at most
PACKAGES = ("starlette", "uvicorn", "httptools")


def fuzz(served: Served, count: int, seed: int, workers: int) -> dict[str, Any]:
    """Send `count` requests, each over its own connection, `workers` at a time."""
    schema = get(served.port, "/openapi.json")
    tasks = [task["name"] for task in get(served.port, "/v1/tasks")["tasks"]]
    statuses: collections.Counter[str] = collections.Counter()
    found: list[dict[str, Any]] = []
    before, began = served.resident_bytes(), time.monotonic()

    def work(number: int) -> None:
        fuzzer = Fuzzer(schema, tasks, TOKEN, seed * 1000 + number)
        for _ in range(count // workers):
            raw, whole = fuzzer.request()
            try:
                heard = exchange(served.port, raw, 30.0 if whole else PATIENCE_SECONDS)
                wrong = faults(heard) or ["no answer"] * (whole and not heard)
            except OSError as error:
                heard, wrong = b"", [f"no answer: {error}"]
            statuses.update(
                [code.decode() for code in re.findall(rb"^HTTP/1\.1 (\d{3})", heard, flags=re.MULTILINE)] or ["none"]
            )
            if wrong and len(found) < SHOWN:
                found.append({"faults": wrong, "request": repr(raw[:2000]), "answer": repr(heard[:1000])})
            statuses.update(["faults"] * bool(wrong))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    alive = served.process.poll() is None and get(served.port, "/readyz")["ready"]
    return {
        "requests": count // workers * workers,
        "seconds": time.monotonic() - began,
        "statuses": dict(sorted(statuses.items())),
        "faults": statuses["faults"],
        "found": found,
        "alive_after": alive,
        "growth_bytes": served.resident_bytes() - before,
        "internal_errors_logged": sum(event["event"] == "internal error" for event in served.events()),
    }


def main() -> None:
    """Write `results/server_fuzz.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bank", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1, help="of the server")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "server_fuzz.json")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as temporary,
        graft_serve(chosen.bank, Path(temporary), chosen.threads) as served,
    ):
        told = fuzz(served, chosen.requests, chosen.seed, chosen.workers)
    well = not told["faults"] and told["alive_after"] and not told["internal_errors_logged"]
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    result = {"format": 1, "status": "ok" if well else "failed", "seed": chosen.seed}
    result |= {"environment": environment() | {"server": versions}, **told}
    write_json(chosen.out, result)
    print(json.dumps({name: told[name] for name in told if name != "found"}, indent=1))


if __name__ == "__main__":
    main()
