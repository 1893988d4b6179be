"""Shared code of the drivers of boards: flags, working folder, and log lines."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

import graftwork as gw


def flags(doc: str | None, names: Iterable[str] = (), threads: int = 1) -> argparse.ArgumentParser:
    """Return the parser of every driver: tasks (`names` are all), folders of data and runs, processor threads."""
    parser = argparse.ArgumentParser(description=doc)
    if names:
        parser.add_argument("names", nargs="*", default=list(names))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--threads", type=int, default=threads)
    return parser


def begun(chosen: argparse.Namespace) -> Path:
    """Set the threads, change to the data folder so that boards store relative paths, and return the folder of runs."""
    torch.set_num_threads(chosen.threads)
    runs: Path = chosen.runs.absolute()
    os.chdir(chosen.data)
    return runs


def compared(task: gw.Task, **settings: Any) -> Any:
    """Return the full board of a task. Finished runs are reused, so an interrupted comparison resumes."""
    board = gw.compare(task, exhaustive=True, progress=say, **settings)
    print(f"{task.name}: {board.executed} runs executed, {board.reused} reused", flush=True)
    return board


def driver_of(folder: Path) -> Any:
    """Import `run.py` of another benchmark; modules that it imports are first looked for in its own folder."""
    spec = importlib.util.spec_from_file_location(f"{folder.name}_run", folder / "run.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def say(done: float, text: str) -> None:
    """Print a line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)
