"""Measure the engine against its peers: `python benchmarks/engine_speed/run.py --data FOLDER [QUESTION …]`."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import driver
from choosing import Chosen, choose
from driver import Heat
from questions import QUESTIONS, Bench, Result

from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import environment, version

HERE = Path(__file__).parent
SETTINGS = "peer_settings"
BY_DATA = ("chosen", "races", "arrivals")  # parts of a result keyed by data set
PEERS = ("transformers", "accelerate", "peft", "torch")


def main() -> None:
    """Write one results file per question, as soon as it is answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", default=[SETTINGS, *QUESTIONS])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--epochs", type=int, help="in place of a question's own number")
    parser.add_argument("--seeds", type=int, help="in place of a question's own number")
    parser.add_argument("--only", nargs="+", default=[], metavar="DATA", help="of the data sets of full, top_layers …")
    parser.add_argument(
        "--trains", nargs="+", default=[], metavar="WHAT", help="of all, top:2, lora: for peer_settings"
    )
    parser.add_argument("--rows", type=int, help="at most so many of every file: to try it; needs --out")
    chosen = parser.parse_args()
    unknown = set(chosen.questions) - {SETTINGS, *QUESTIONS}
    if unknown:
        parser.error(f"no such question: {', '.join(sorted(unknown))}; there are {SETTINGS}, {', '.join(QUESTIONS)}")
    if chosen.rows is not None and chosen.out == HERE / "results":
        parser.error("--rows is for trying: give --out another folder")
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    for name in chosen.questions:
        own = chosen.out / f"{SETTINGS}.json"
        settings = own if own.exists() else HERE / "results" / f"{SETTINGS}.json"
        bench = Bench(
            data=chosen.data,
            heat=measured,
            chosen=Chosen.read(settings),
            epochs=chosen.epochs,
            seeds=chosen.seeds,
            rows=chosen.rows,
            only=chosen.only,
            trains=chosen.trains,
        )
        answer(name, bench, chosen.out)


def answer(name: str, bench: Bench, out: Path) -> None:
    """Measure one question and write its result, also on failure."""
    question = choose if name == SETTINGS else QUESTIONS[name]
    before, begun = environment(), time.time()
    result = question(bench)
    seeds = {"seeds": result["seeds"]} if "seeds" in result else {}
    for heat in result["heats"]:
        heat["measured"] = {"commit": before["commit"], "time": before["time"]} | seeds
    path = out / f"{name}.json"
    if bench.only and path.exists():
        result = beside(read_json(path), result)
    write_json(
        path,
        {
            "format": 1,
            "question": name,
            "asked": " ".join((question.__doc__ or "").split()),
            "status": "ok" if all(heat["status"] == "ok" for heat in result["heats"]) else "partial",
            "rows_at_most": bench.rows,
            "peer_settings_measured": bool(bench.chosen.settings),
            "seconds": round(time.time() - begun, 1),
            "versions": {package: version(package) for package in PEERS},
            "environment": before,
            "load_average_after": environment()["load_average"],
        }
        | result,
    )
    print(f"{name}: written to {path}", flush=True)


def beside(earlier: Result, result: Result) -> Result:
    """Return `result` merged with earlier measurements of the other data sets."""
    fresh = {heat["label"] for heat in result["heats"]}
    there = earlier["environment"]
    older = [{"measured": {"commit": there["commit"], "time": there["time"]}} | heat for heat in earlier["heats"]]
    by_data = {name: earlier[name] | part for name, part in result.items() if name in BY_DATA}
    return result | by_data | {"heats": [heat for heat in older if heat["label"] not in fresh] + result["heats"]}


def measured(heat: Heat) -> Result:
    """Run a heat and print its progress."""
    return driver.run(heat, say=lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
