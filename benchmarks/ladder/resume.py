"""Kill a pre-training by SIGKILL at random steps, resume it, and compare its weights with those of an unbroken run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from plan import Plan
from rungs import write_corpus
from units import Result, Unit

from graftwork.io.files import read_json, write_json

SIZES: dict[str, dict[str, Any]] = {
    "word_vectors": {"width": 50},
    "bidirectional": {
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8], [3, 8]], "n_highway": 1,
                     "max_characters_per_token": 50, "activation": "relu"},
        "lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3,
                 "use_skip_connections": True},
    },
    "awd_lstm": {"embedding_size": 16, "hidden_size": 24, "layers": 2},
    "causal": {"n_embd": 32, "n_layer": 2, "n_head": 2, "resid_pdrop": 0.1},
    "masked": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    "replaced_token": {"hidden_size": 32, "embedding_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "intermediate_size": 64},
}  # fmt: skip
OBJECTIVES = {  # name -> the objective, and further arguments
    "word_vectors": ("word_vectors", ("--tokens", "3200000", "--checkpoint-every", "0")),
    "bidirectional": ("bidirectional:samples=64", ()),
    "awd_lstm": ("awd_lstm", ()),
    "awd_lstm, varied steps, NT-ASGD": (
        "awd_lstm:bptt=varied:updates=nt_asgd", ("--learning-rate", "5", "--schedule", "constant"),
    ),
    "causal": ("causal", ()),
    "masked": ("masked", ()),
    "masked, next sentence": ("masked:second=next_sentence", ("--short-length", "16")),
    "replaced_token": ("replaced_token", ()),
}  # fmt: skip
STEPS = 150
EARLIEST, LATEST = 0.1, 0.8  # shares of the steps between which it is killed
TIMES = 3  # number of kills
TEXT = 2_000_000  # bytes
WAIT = 0.005  # seconds between two checks of the checkpoint


def units(plan: Plan) -> list[Unit]:
    """Return one unit per objective."""
    return [Unit(f"resume.{name}", partial(killed, plan, name)) for name in OBJECTIVES]


def killed(plan: Plan, name: str) -> Result:
    """Make one unbroken run and several interrupted ones, each by the command line in separate processes."""
    objective, more = OBJECTIVES[name]
    kind = objective.split(":")[0]
    folder = plan.place.work / "resume" / name.replace(", ", "_").replace(" ", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_corpus(plan.place.data / "lm_imdb_unsup/train.txt.gz", folder / "texts.txt", TEXT)
    write_json(folder / "size.json", SIZES[kind])
    words = ["pretrain", str(folder / "texts.txt"), "--objective", objective, "--size", str(folder / "size.json"),
             "--threads", "1", "--device", "cpu", "--cache", str(plan.place.work / "cache"), "--json"]  # fmt: skip
    words += ["--vocabulary", "2000"]
    if kind != "word_vectors":
        words += ["--steps", str(STEPS), "--batch", "8", "--length", "24", "--checkpoint-every", "0"]
    command = [sys.executable, "-m", "graftwork", *words, *more]
    whole = finished(command, folder / "whole")
    draw, broken = random.Random(name), []
    for number in range(TIMES if plan.place.seeds > 1 else 1):
        runs = folder / f"broken_{number}"
        at = draw.uniform(EARLIEST, LATEST)
        step, steps = killed_at(command, runs, at)
        result = finished(command, runs)
        broken.append({
            "killed_after_step": step, "of": steps, "attempts": result["attempts"], "sha256": result["sha256"],
            "equal": result["sha256"] == whole["sha256"], "log_equal": result["log"] == whole["log"],
        })  # fmt: skip
    return {"objective": objective, "sha256": whole["sha256"], "broken": broken,
            "equal": all(one["equal"] for one in broken)}  # fmt: skip


def finished(command: Sequence[str], runs: Path) -> Result:
    """Run to the end; return the hash of the weights, the number of attempts, and the log."""
    done = subprocess.run([*command, "--runs", str(runs)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-300:].replace(str(runs), 'RUNS')}")
    facts = json.loads(done.stdout)["facts"]
    (log,) = runs.glob("*/log.jsonl")
    return {"sha256": facts["weights_sha256"], "attempts": facts["attempts"], "log": log.read_text(encoding="utf-8")}


def killed_at(command: Sequence[str], runs: Path, share: float) -> tuple[int, int]:
    """Start a run and kill it once a checkpoint has that share of the steps; return the checkpoint's step and total."""
    process = subprocess.Popen(
        [*command, "--runs", str(runs)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while True:
            for path in runs.glob("*/checkpoint/*.json"):
                found = progress_of(path)
                if found is not None and found[0] >= share * found[1]:
                    return found
            if process.poll() is not None:
                raise RuntimeError(f"it ended before it could be killed, exit code {process.returncode}")
            time.sleep(WAIT)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def progress_of(path: Path) -> tuple[int, int] | None:
    """Return steps done and steps in total; None if the file was just being replaced."""
    try:
        content = read_json(path)["numbers"]
        return int(content["step"]), int(content["steps"])
    except Exception:  # the folder was replaced meanwhile
        return None
