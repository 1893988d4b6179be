"""`contrastive` against SetFit on the same draws, one after the other: `python beside_setfit.py --data FOLDER`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graftwork.backbones.minilm import package_folder
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.data.splits.draws import SubsetDraw, draw, parse_sizes
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.run.execute import workbench
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.memo import MemoEntry
from run import DRAWS, HERE, SETS, task

SIZES = ("8/class", "16/class")
OURS = ("contrastive", "contrastive, fp32", "linear_probe")  # without a precision: the processor's fastest


class SetFit:
    """A process with setfit that waits for draws."""

    def __init__(self, python: str, threads: int, stack: ExitStack):
        command = [python, str(HERE / "setfit_worker.py"), str(package_folder()), str(threads)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = stack.enter_context(process)
        stack.callback(process.kill)
        self.said: dict[str, Any] = self._hear()

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Send one draw and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process with setfit ended")
        heard: dict[str, Any] = json.loads(line)
        return heard


def ours(session: Session, drawn: SubsetDraw, method: str) -> dict[str, Any]:
    """Fit and predict the test texts; the network is already open, no forward pass is cached."""
    named = parse_method(method.partition(", ")[0])
    session = replace(session, dataset=drawn.dataset, done=MemoEntry(), frozen=FrozenStore())
    bench = workbench(session, named, Recipe(), drawn.number)
    began = time.perf_counter()
    fitted = named.method.fit(bench)
    trained = time.perf_counter()
    logits = np.asarray(fitted.logits(drawn.dataset.test.examples))
    ended = time.perf_counter()
    return {
        "predictions": logits.argmax(axis=1).tolist(),
        "train_seconds": trained - began,
        "predict_seconds": ended - trained,
    }


def theirs(peer: SetFit, drawn: SubsetDraw, setting: str) -> dict[str, Any]:
    """Run SetFit on the same rows; it gets only the training rows, as it makes no choice on validation."""
    train, test = drawn.dataset.train, drawn.dataset.test
    return peer.ask({
        "setting": setting,
        "number": drawn.number,
        "texts": [example.inputs["text"] for example in train.examples],
        "labels": train.targets.tolist(),
        "asked": [example.inputs["text"] for example in test.examples],
    })  # fmt: skip


def told(answer: dict[str, Any], drawn: SubsetDraw) -> dict[str, Any]:
    """Return the answer to keep: its score instead of its predictions."""
    right = np.array(answer.pop("predictions")) == drawn.dataset.test.targets
    return {"accuracy": float(right.mean())} | answer


def main() -> None:
    """Write a file per data set after every draw; finished draws are not repeated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--python", default=sys.executable, help="a Python that can import setfit")
    parser.add_argument("--settings", default="paper,defaults", help="of SetFit: see setfit_worker.py")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    results = chosen.results.absolute()
    os.chdir(chosen.data)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the setfit process ends too
    with ExitStack() as stack:
        peer = SetFit(chosen.python, chosen.threads, stack)
        settings = [] if "missing" in peer.said else chosen.settings.split(",")
        if not settings:
            print(f"SetFit is left out ({peer.said['missing']}): pip install setfit, or name another --python")
        for name in chosen.names:
            runs = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # no run is kept
            sessions = {one: opened(name, one, runs) for one in OURS}
            measure(name, sessions, peer, settings, results / f"setfit_{name}.json", chosen)


def opened(name: str, contender: str, runs: Path) -> Session:
    """Return a session for one of our contenders."""
    method, _, precision = contender.partition(", ")
    setup = RunSettings(runs=str(runs), cache_size="0", device="cpu", precision=precision or "auto")
    return open_session(task(name), [parse_method(method)], setup)


def measure(
    name: str, sessions: dict[str, Session], peer: SetFit, settings: list[str], path: Path, chosen: argparse.Namespace
) -> None:
    """Measure every draw at every size: ours and SetFit in turn, the first alternating with the draw."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    done = {(row["size"], row["draw"], row["contender"]) for row in content["rows"]}
    dataset = sessions[OURS[0]].dataset
    for size in parse_sizes(chosen.sizes, dataset.task):
        for number in range(chosen.draws):
            drawn = draw(dataset, size, number)
            contenders = [*OURS, *(f"setfit, {setting}" for setting in settings)]
            for contender in contenders if number % 2 else contenders[::-1]:
                if (size.word, number, contender) in done:
                    continue
                answer = (
                    ours(sessions[contender], drawn, contender)
                    if contender in OURS
                    else theirs(peer, drawn, contender.split(", ")[1])
                )
                row = {"size": size.word, "draw": number, "contender": contender} | told(answer, drawn)
                content["rows"].append(row | {"train_rows": len(drawn.dataset.train.examples)})
                print(name, row, flush=True)
                content |= {
                    "status": "ok",
                    "threads": chosen.threads,
                    "setfit": peer.said,
                    "environment": environment(),
                }
                write_json(path, content)


if __name__ == "__main__":
    main()
