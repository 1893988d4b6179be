"""Load a server until it refuses: capacity, 0.8 and 4 times it, swaps of tasks under load, batching against none.

python benchmarks/bank/load.py --bank DIR --seconds 60
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.metadata
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from served import HERE, Memory, Served, drive, finish_driver, get, graft_serve, start_driver, started, summary

from graftwork.backbones.minilm import package_folder
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment

PARTS = ("overload", "swaps", "throughput")
PACKAGES = ("starlette", "uvicorn", "httptools", "prometheus-client")
WARM_UP_SECONDS = 3.0
OK = ("200", "429")


def read_texts(path: Path | None) -> list[str]:
    """Return the lines of a file, or the tickets that come with the package."""
    if path is not None:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    with (files("graftwork.data") / "builtin" / "tickets.csv").open(encoding="utf-8") as stream:
        return [row["text"] for row in csv.DictReader(stream)]


def text_tasks(served: Served) -> list[dict[str, Any]]:
    """Return the tasks of a server whose input is a text."""
    tasks = get(served.port, "/v1/tasks")["tasks"]
    found = [task for task in tasks if ["text"] in task.get("inputs", ()) and "failed" not in task]
    if not found:
        raise SystemExit("the bank has no task that takes a text")
    return found


def bodies_for(tasks: Sequence[str], texts: Sequence[str], seed: int = 0) -> list[str]:
    """Return one request body per text, each for a random task."""
    draw = random.Random(seed)
    return [json.dumps({"task": draw.choice(tasks), "text": text}) for text in texts]


def capacity(served: Served, bodies: Sequence[str], seconds: float) -> dict[str, Any]:
    """Measure the highest number of answers per second of closed-loop clients, over several numbers of clients."""
    tried = {}
    for clients in (16, 32, 48):
        noted = drive(served.port, bodies, seconds, clients=clients, connections=1)
        tried[clients] = summary(noted, seconds)
    best = max(tried, key=lambda clients: answered(tried[clients]))
    return {"answers_per_second": answered(tried[best]), "clients": best, "tried": tried}


def answered(told: dict[str, Any]) -> float:
    """Return the answers with status 200 per second."""
    return float(told["statuses"].get("200", {"per_second": 0.0})["per_second"])


def overload(bank: Path, folder: Path, texts: Sequence[str], chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure capacity, then send 0.8 and 4 times as many requests, each when it is due."""
    with graft_serve(bank, folder, chosen.threads) as served:
        bodies = bodies_for([task["name"] for task in text_tasks(served)], texts)
        drive(served.port, bodies, WARM_UP_SECONDS)
        found = capacity(served, bodies, max(2.0, chosen.seconds / 6))
        told: dict[str, Any] = {"capacity": found}
        for times in (0.8, 4.0):
            memory, spent = Memory(served), served.cpu_seconds()
            driver = start_driver(served.port, bodies, chosen.seconds, rate=times * found["answers_per_second"])
            memory.watch(driver)
            result = summary(finish_driver(driver), chosen.seconds)
            result |= {"memory": memory.told(), "server_cpu_seconds": served.cpu_seconds() - spent}
            told[f"{times:g}x"] = result
            print(f"{times:g}x capacity: {json.dumps(result['statuses'])} {result['memory']}", flush=True)
    calm, stormy = (told[name]["statuses"] for name in ("0.8x", "4x"))
    refused = stormy.get("429", {"since_sent_ms": {"p50": None, "p99": None, "max": None}})["since_sent_ms"]
    told["verdict"] = {
        "p99_at_4x_is": stormy["200"]["since_sent_ms"]["p99"] / calm["200"]["since_sent_ms"]["p99"],
        "refused_in_ms": refused,
        "errors": sum(part["count"] for told in (calm, stormy) for code, part in told.items() if code not in OK),
        "growth_bytes": max(told[name]["memory"]["growth_bytes"] for name in ("0.8x", "4x")),
    }
    return told


def swaps(bank: Path, folder: Path, texts: Sequence[str], chosen: argparse.Namespace) -> dict[str, Any]:
    """Replace versions of tasks from another process, on a copy of the bank, under requests at half capacity."""
    copy = folder / "swapped.bank"
    shutil.copytree(bank, copy)
    # A queue long enough for the stalls of a shared machine: a refusal would not be a failure of a swap.
    with graft_serve(copy, folder, chosen.threads, "--max-queue", "8192") as served:
        names = [task["name"] for task in text_tasks(served)][: chosen.swapped_at_once]
        bodies = bodies_for(names, texts)
        drive(served.port, bodies, WARM_UP_SECONDS)
        rate = chosen.swap_load * capacity(served, bodies, 2.0)["answers_per_second"]
        before = len(served.events())
        command = [sys.executable, str(HERE / "swap.py"), str(copy), str(chosen.swaps), str(served.port), *names]
        seconds = 0.0
        noted: list[tuple[float, float, int]] = []
        swapper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        memory = Memory(served)
        while swapper.poll() is None:  # until all swaps are done
            driver = start_driver(served.port, bodies, chosen.swap_window, rate=rate, seed=seconds)
            memory.watch(driver)
            noted += finish_driver(driver)
            seconds += chosen.swap_window
        written = json.loads(swapper.communicate()[0] or "{}")
        events, remembered = served.events()[before:], memory.told()
    taken = sum(event["event"] == "task opened" for event in events)
    failed = sum(event["event"] == "task failed to open" for event in events)
    told = summary(noted, seconds)
    counts = {code: part["count"] for code, part in told["statuses"].items()}
    return told | {
        "swaps_written": written.get("swaps"),
        "swaps_taken_in": taken,
        "tasks_that_failed_to_open": failed,
        "refused_requests": counts.get("429", 0),
        "failed_requests": sum(count for code, count in counts.items() if code not in OK),
        "memory": remembered,
    }


def throughput(bank: Path, folder: Path, texts: Sequence[str], chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure answers per second of 32 clients on one task: batches, one row at a time, and a pipeline, in turn."""
    pipeline = [sys.executable, str(HERE / "pipeline_server.py"), str(package_folder())]
    rates: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        servers = {
            "batches": stack.enter_context(graft_serve(bank, folder, chosen.threads)),
            "one row at a time": stack.enter_context(
                graft_serve(bank, folder, chosen.threads, "--max-batch-tokens", "1")
            ),
        }
        task = next((task for task in text_tasks(servers["batches"]) if task["kind"] == "classification"), None)
        if task is None:
            raise SystemExit("the bank has no classification of texts to compare a pipeline with")
        classes = str(len(task["labels"]))
        for precision, at_once in (("fp32", 40), ("fp32", 1), ("bf16", 1)):
            name = f"pipeline, {precision}, {at_once} at once"
            command = [*pipeline, precision, classes, str(chosen.threads), str(at_once)]
            servers[name] = stack.enter_context(started(command, folder / f"pipeline{len(servers)}.log"))
        bodies = bodies_for([task["name"]], texts)
        for number in range(chosen.rounds + 1):  # the first round is the warm-up
            order = list(servers)[number % len(servers) :] + list(servers)[: number % len(servers)]
            for name in order:
                noted = drive(servers[name].port, bodies, chosen.round_seconds, connections=1)
                told = summary(noted, chosen.round_seconds)
                if number:
                    rates.setdefault(name, []).append(answered(told))
                print(f"round {number}, {name}: {answered(told):.0f} answers/s {list(told['statuses'])}", flush=True)
    medians = {name: statistics.median(found) for name, found in rates.items()}
    ratios = {name: medians["batches"] / median for name, median in medians.items() if median}
    return {"answers_per_second": rates, "medians": medians, "batches_are_times": ratios, "task": task["name"]}


def main() -> None:
    """Write a JSON file with a section per part; failed parts have their error, parts not requested are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", type=Path, required=True, help="read only: swaps are made in a copy")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load of the first part")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of %(default)s")
    parser.add_argument("--threads", type=int, default=max(1, torch.get_num_threads() - 1))
    parser.add_argument("--texts", type=Path, help="a text a line; default: the tickets that come with the package")
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--swapped-at-once", type=int, default=20, help="tasks that are swapped in turn")
    parser.add_argument("--swap-load", type=float, default=0.5, help="times capacity")
    parser.add_argument("--swap-window", type=float, default=10.0, help="seconds of one driver while swaps go on")
    parser.add_argument("--rounds", type=int, default=5, help="of the last part")
    parser.add_argument("--round-seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "server_load.json")
    chosen = parser.parse_args()
    texts = read_texts(chosen.texts)
    arguments = {name: str(value) if isinstance(value, Path) else value for name, value in vars(chosen).items()}
    here = environment()
    result: dict[str, Any] = {
        "format": 1,
        "status": "ok",
        "environment": here | {"server": {name: importlib.metadata.version(name) for name in PACKAGES}},
        "arguments": arguments | {"bank": chosen.bank.name, "out": chosen.out.name},
        "texts": len(texts),
        "measured": {},
    }
    parts, asked = {"overload": overload, "swaps": swaps, "throughput": throughput}, chosen.parts.split(",")
    earlier = read_json(chosen.out) if chosen.out.is_file() else {"measured": {}}
    for name in (name for name in earlier["measured"] if name not in asked):
        result["measured"][name], result[name] = earlier["measured"][name], earlier[name]
    with tempfile.TemporaryDirectory() as temporary:
        for name in asked:
            result["measured"][name] = {"commit": here["commit"], "time": here["time"], "threads": chosen.threads}
            try:
                result[name] = parts[name](chosen.bank, Path(temporary), texts, chosen)
            except Exception as error:
                result |= {"status": "failed", name: {"error": f"{type(error).__name__}: {error}"}}
            write_json(chosen.out, result)
            print(name, json.dumps(result[name], indent=1), flush=True)


if __name__ == "__main__":
    main()
