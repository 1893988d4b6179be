"""Run commands on hostile files: `python benchmarks/robust/hostile.py`.

Every artefact is made by artefacts.py on demand, in its own copy of a scene, and read by the command in a forked
process in which the libraries are already imported, so that the refusal is measured and not the import.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

import torch
from artefacts import BENIGN, CANARY, CASES, SECRET, TRAIN, Case, Scene
from result_file import BRIEF, result_of

from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
from graftwork.cli.main import main as graft
from graftwork.io.files import read_json, write_json, write_tensors
from graftwork.testing.tiny_media import write_folder

QUESTION = "Is every hostile file refused at once, with little memory and a message, and is nothing that it holds run?"
BAR = {"not_refused": 0, "slowest_seconds": 1.0, "most_bytes": 200_000_000, "canaries": 0, "benign_that_fail": 0}
REFUSED = 2  # exit code of a refusal
HANGING = 30  # seconds after which a command is killed
TRIES = 3  # the fastest counts, because other processes use the processor too
MOST_SAID = 1000  # characters kept of a message
LABELS = ("good", "bad")
WORDS = ("film", "plot", "scene", "actor", "score", "story", "end", "joke")


def build(folder: Path) -> Scene:
    """Make the scene: a network, modules of two methods, a bank with one of them, rows, images and sounds."""
    import torch
    from transformers import BertConfig, BertModel

    scene, tokenizer = Scene(folder), tiny_tokenizer()
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), **ARCHITECTURE)
    torch.manual_seed(0)
    network = BertModel(config)
    scene.write("network/config.json", json.dumps(config.to_diff_dict() | {"architectures": ["BertModel"]}))
    write_tensors(scene.weights, network.state_dict())
    scene.write("network/tokenizer.json", tokenizer.to_str())
    named = {"tokenizer_class": "BertTokenizer", "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    scene.write("network/tokenizer_config.json", json.dumps(named | {"sep_token": "[SEP]", "mask_token": "[MASK]"}))
    rows = [f"a {word} that is {label} {number},{label}" for number in range(8) for word in WORDS for label in LABELS]
    scene.write("data.csv", "text,label\n" + "\n".join(rows) + "\n")
    scene.write(SECRET, json.dumps({"password": "hunter2"}))
    for role in ("image", "sound"):
        write_folder(folder / f"{role}s", role, 12)
    for method, name in (("linear_probe", "module"), ("lora:rank=2", "lora")):
        words = (*TRAIN, "tiny_text", "--method", method)
        require(run_here(folder, words), words)
        (made,) = (folder / "runs").glob("*/module")
        shutil.copytree(made, folder / name)
        shutil.rmtree(folder / "runs")
    for words in (("create", "empty"), ("create", "bank"), ("add", "bank", "module", "--task", "moods")):
        require(run_here(folder, ("bank", *words)), words)
    return scene


def require(code: int, words: Sequence[str]) -> None:
    """Exit if the scene can't be made."""
    if code:
        raise SystemExit(f"graft {' '.join(words)} ended with {code}")


def run_here(folder: Path, words: Sequence[str]) -> int:
    """Run a command in this process, so that its imports are shared by all later forks."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return graft(list(words))
    finally:
        os.chdir(before)


def forked(folder: Path, words: Sequence[str]) -> dict[str, Any]:
    """Run a command in a child; return exit code, message, seconds, and bytes beyond what the process had."""
    told, said = folder / ".measured.json", folder / ".said.txt"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            _measured(folder, words, told, said)
            code = 0
        finally:
            os._exit(code)
    began = time.monotonic()
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() - began > HANGING:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"code": None, "seconds": float(HANGING), "cpu_seconds": None, "bytes": None, "said": "it hung"}
        time.sleep(0.005)
    if done[1] or not told.is_file():
        return {"code": None, "seconds": None, "cpu_seconds": None, "bytes": None, "said": f"died: status {done[1]}"}
    return dict(read_json(told)) | {"said": said.read_text(encoding="utf-8", errors="replace")}


def _measured(folder: Path, words: Sequence[str], told: Path, said: Path) -> None:
    """Run the command and write its measurements. In a child only."""
    torch.set_num_threads(1)  # torch's thread pool is recreated after a fork; two loading threads at once would race
    os.chdir(folder)
    stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    before, peak_before = memory(reset=True)
    began, processor = time.perf_counter(), time.process_time()
    code = graft(list(words))
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    peak = max(memory()[1], peak_before)
    write_json(told, {"code": code, "seconds": seconds, "cpu_seconds": processor, "bytes": max(0, peak - before)})


def memory(reset: bool = False) -> tuple[int, int]:
    """Return resident bytes now, and the peak since the last reset; if the system lacks that, the peak ever, twice."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
        return int(lines["VmRSS"].split()[0]) * 1024, int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return most, most


def meet(case: Case, scene: Path, place: Path, tries: int = TRIES) -> dict[str, Any]:
    """Make the artefact, run the command on it, and judge the outcome."""
    best: dict[str, Any] = {}
    canary = False
    for _ in range(tries):
        with tempfile.TemporaryDirectory(dir=place) as copies:
            copy = Path(shutil.copytree(scene, Path(copies) / "scene", symlinks=True))
            secret = (copy / SECRET).read_bytes()
            case.make(Scene(copy))
            found = forked(copy, case.command)
            found["said"] = found["said"].replace(f"{copy}/", "")[:MOST_SAID]
            canary = canary or bool(list(copy.rglob(CANARY))) or Path(CANARY).exists()
            canary = canary or (copy / SECRET).read_bytes() != secret
        if not best or (found["seconds"] or HANGING) < (best["seconds"] or HANGING):
            best = found
        if wrong(case, best, canary) == []:
            break
    told = {"case": case.name, "command": " ".join(case.command), **best, "canary": canary}
    return told | {"wrong": wrong(case, best, canary)}


def wrong(case: Case, found: Mapping[str, Any], canary: bool) -> list[str]:
    """Return the parts of the bar that were not met; empty if all were."""
    said = str(found["said"])
    held = {
        f"exit code {found['code']}": found["code"] == REFUSED,
        f"{found['seconds']} s": found["seconds"] is not None and found["seconds"] < BAR["slowest_seconds"],
        f"{found['bytes']} bytes": found["bytes"] is not None and found["bytes"] < BAR["most_bytes"],
        f"the message does not name {case.file}": case.file in said,
        f"the message does not say {case.rule}": re.search(case.rule, said) is not None,
        "a traceback": "Traceback" not in said,
        "something was run, or written elsewhere": not canary,
    }
    return [what for what, right in held.items() if not right]


def main() -> None:
    """Run every case, or those whose names contain a word."""
    torch.set_num_threads(1)  # a forked process can't wait for threads of its parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--tries", type=int, default=TRIES)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        scene = build(place / "scene").folder
        for words in BENIGN.values():  # once here, for their imports
            copy = Path(shutil.copytree(scene, place / "warm"))
            require(run_here(copy, words), words)
            shutil.rmtree(copy)
        import h5py  # noqa: F401
        import pyarrow.parquet  # noqa: F401

        benign = {
            name: forked(Path(shutil.copytree(scene, place / f"benign {name}")), words)
            for name, words in BENIGN.items()
        }
        cases = []
        for case in CASES:
            if chosen.only in case.name:
                cases.append(meet(case, scene, place, chosen.tries))
                show(cases[-1])
    content = judged(cases, benign)
    write_json(chosen.out / "hostile.json", content)
    print(json.dumps(content["measured"], indent=1), content["status"])


def show(told: Mapping[str, Any]) -> None:
    """Print a line per case."""
    numbers = f"{told['seconds'] or 0:6.3f} s  {(told['bytes'] or 0) / 1e6:6.1f} MB"
    print(f"{numbers}  {told['case']}{'  WRONG: ' + '; '.join(told['wrong']) if told['wrong'] else ''}", flush=True)


def judged(cases: Sequence[Mapping[str, Any]], benign: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of the result file."""
    failing = [name for name, found in benign.items() if found["code"] != 0]
    measured = {
        "artefacts": len(cases),
        "not_refused": sum(bool(case["wrong"]) for case in cases),
        "slowest_seconds": max((case["seconds"] or HANGING for case in cases), default=None),
        "slowest_processor_seconds": max((case["cpu_seconds"] or 0.0 for case in cases), default=None),
        "most_bytes": max((case["bytes"] or 0 for case in cases), default=None),
        "canaries": sum(case["canary"] for case in cases),
        "benign_that_fail": len(failing),
    }
    return result_of(
        QUESTION,
        BAR,
        measured,
        "failed" if measured["not_refused"] or failing else "ok",
        (*BRIEF, "cores", "load_average"),
        failing=failing,
        cases=[dict(case) for case in cases],
    )


if __name__ == "__main__":
    main()
