"""Kill runs and pre-trainings by SIGKILL at random moments, repeat the same command until it is done, and compare its
results with those of an undisturbed one: `python benchmarks/robust/kills.py --work FOLDER`.

Results in the work folder are not computed again. `--only 'full, fp32;masked' --kills 1` tries a part of it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from result_file import result_of
from victim import AFTER, BEFORE, STEPPING, Marks

import graftwork as gw
from graftwork.io.files import digest, file_digest, read_json, write_json
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_media import write_folder
from graftwork.testing.tiny_networks import write_network
from graftwork.train.checkpoint_files import EVERY_SECONDS, SHARE, Checkpoints

HERE = Path(__file__).parent
QUESTION = (
    "Does a run or a pre-training that is killed by SIGKILL at random moments, and started again by the same command, "
    "end bit for bit as one that nothing disturbed; and what is lost by a kill, and paid for checkpoints?"
)
KILLS = 3  # per case
EVERY = 0.05  # seconds between two checkpoints
GRACE = 1.0  # seconds allowed beyond an interval, for the current step and writing the checkpoint
BAR = {
    "kills_with_a_checkpoint_at_least": 60,
    "of_every_case_at_least": 1,
    "different": 0,
    "lost_seconds_at_most": EVERY + GRACE,
    "overhead_at_most": SHARE,
}
SPREAD = 0.8  # share of a kill's part of the steps within which it comes
STEP = 0.05  # seconds after a step at which it comes, at most
WAIT, TOO_LONG = 0.002, 900.0  # seconds between two checks of a victim; a victim's time limit
BY_STEPS = ("full", "top_layers:k=1", "adapter", "lora", "bitfit", "ulmfit", "contrastive")
SIZES: dict[str, dict[str, Any]] = {
    "masked": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
               "hidden_dropout_prob": 0.1},
    "replaced_token": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    "causal": {"n_embd": 32, "n_layer": 2, "n_head": 2, "resid_pdrop": 0.1},
    "awd_lstm": {"embedding_size": 16, "hidden_size": 24, "layers": 2},
    "bidirectional": {
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8], [3, 8]], "n_highway": 1,
                     "max_characters_per_token": 50, "activation": "relu"},
        "lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3,
                 "use_skip_connections": True},
    },
    "word_vectors": {"width": 50},
    "span_corruption": {"d_model": 32, "num_layers": 2, "num_heads": 2, "d_kv": 16, "d_ff": 64},
    "denoising": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
                  "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
    "translation": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
                    "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
}  # fmt: skip
Words = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A command that is killed."""

    name: str
    words: Words  # after `graft`, without the folder of runs
    pretrains: bool = False


def cases(work: Path) -> list[Case]:
    """Return all cases, over files in `work`."""
    files = inputs(work)

    def trained(kind: str, method: str, precision: str, epochs: int, *more: str) -> Case:
        words = ("train", str(files[kind]), "--method", method, "--epochs", str(epochs), "--precision", precision)
        backbone = () if "--backbone" in more else ("--backbone", "tiny_text")
        return Case(f"{kind}, {method}, {precision}", (*words, *backbone, *more))

    found = [
        trained("classification", f"{method}:epochs=300" if method == "contrastive" else method, precision, 80)
        for precision in ("fp32", "bf16")
        for method in BY_STEPS
    ]
    found += [
        trained("tagging", *settings, 60, "--kind", "tagging") for settings in (("full", "fp32"), ("lora", "bf16"))
    ]
    found += [
        trained("span", *settings, 60, "--kind", "span") for settings in (("ulmfit", "fp32"), ("adapter", "bf16"))
    ]
    found += [
        trained("images", method, precision, 60, "--backbone", f"hf:{files['network']}")
        for method, precision in (("full", "fp32"), ("lora", "bf16"))
    ]
    found += [
        pretrained(files["pairs" if objective[1] == "translation" else "texts"], work, *objective)
        for objective in OBJECTIVES
    ]
    return found


OBJECTIVES: tuple[tuple[str, str, int, Words], ...] = (  # name, objective, steps, further arguments
    ("masked", "masked", 150, ()),
    ("masked, next sentence", "masked:second=next_sentence", 120, ("--short-length", "16")),
    ("replaced token", "replaced_token", 120, ()),
    ("causal", "causal", 150, ()),
    ("awd_lstm", "awd_lstm", 200, ()),
    ("awd_lstm, NT-ASGD", "awd_lstm:bptt=varied:updates=nt_asgd", 200,
     ("--learning-rate", "5", "--schedule", "constant")),
    ("bidirectional", "bidirectional:samples=64", 100, ()),
    ("word vectors", "word_vectors", 0, ("--tokens", "2000000")),
    ("span corruption", "span_corruption", 100, ()),
    ("denoising", "denoising", 100, ()),
    ("translation", "translation", 100, ()),
)  # fmt: skip


def pretrained(texts: Path, work: Path, name: str, objective: str, steps: int, more: Words) -> Case:
    """Return a pre-training of a tiny network."""
    words = ("pretrain", str(texts), "--objective", objective, "--cache", str(work / "cache"))
    words += ("--size", str(work / f"{objective.partition(':')[0]}.json"), "--vocabulary", "300")
    long = ("--steps", str(steps), "--batch", "8", "--length", "24") if steps else ()
    return Case(f"pretrain, {name}", (*words, *long, *more, "--checkpoint-every", f"{EVERY}s"), pretrains=True)


def inputs(work: Path) -> dict[str, Path]:
    """Write toy data of every sort, and a tiny image network."""
    work.mkdir(parents=True, exist_ok=True)
    files = {"classification": work / "texts.csv", "tagging": work / "words.conll", "span": work / "questions.jsonl",
             "images": work / "images", "network": work / "vit", "texts": work / "corpus.txt",
             "pairs": work / "pairs.tsv"}  # fmt: skip
    if files["texts"].is_file():
        return files
    with files["classification"].open("w", newline="", encoding="utf-8") as stream:
        rows = [(f"{e.inputs['text']} {number}", e.target) for number, e in enumerate(examples("classification", 64))]
        csv.writer(stream).writerows([("text", "label"), *rows])
    sentences = [
        [*zip(e.inputs["words"], e.target, strict=True), (str(n), "O")] for n, e in enumerate(examples("tagging", 64))
    ]
    files["tagging"].write_text("\n".join("".join(f"{w}\t{t}\n" for w, t in words) for words in sentences))
    with files["span"].open("w", encoding="utf-8") as stream:
        for number, e in enumerate(examples("span", 48)):
            answers = [{"text": gold.text, "answer_start": gold.start} for gold in e.target]
            row = {
                "id": number,
                "context": f"{e.source} {number}.",
                "question": e.inputs["question"],
                "answers": answers,
            }
            stream.write(json.dumps(row) + "\n")
    write_folder(files["images"], "image", 24)
    write_network(files["network"], "vit")
    for name, size in SIZES.items():
        write_json(work / f"{name}.json", size)
    lines = sentences_of(3000)
    pairs = ["source\ttarget", *(f"{line}\t{' '.join(reversed(line.split()))}" for line in lines)]
    files["pairs"].write_text("".join(f"{pair}\n" for pair in pairs))
    files["texts"].write_text("".join(f"{line}\n" for line in lines))
    return files


def examples(kind: str, rows: int) -> list[Any]:
    """Return the examples of all splits of a toy task."""
    return [example for split in tiny_dataset(kind, rows=rows).splits.values() for example in split.examples]


def sentences_of(count: int) -> list[str]:
    """Return lines of a small grammar, always the same ones."""
    draw, parts = random.Random(0), ("cat dog king teacher friend", "reads eats sees finds", "letters bread birds gold")
    chosen = [part.split() for part in parts]
    return [
        " . ".join(f"the {' '.join(draw.choice(part) for part in chosen)}" for _ in range(3))
        + f" {draw.randrange(10**4)} ."
        for _ in range(count)
    ]


class Victim:
    """A running process that will be killed."""

    def __init__(self, case: Case, runs: Path, every: float):
        self.marks = Marks(runs.with_suffix(".marks"))
        self.marks.write(BEFORE, 0)
        command = [sys.executable, str(HERE / "victim.py"), str(runs.with_suffix(".marks")), str(every)]
        self.began = time.time()
        with runs.with_suffix(".err").open("ab") as said:
            self.process = subprocess.Popen(
                [*command, *case.words, "--threads", "1", "--device", "cpu", "--runs", str(runs), "--json"],
                stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
            )  # fmt: skip

    def wait_for(self, where: int, steps: int = 0) -> bool:
        """Wait until `where` is reached and `steps` are done, or the end; False if it exited first or took too long."""
        while time.time() - self.began < TOO_LONG:
            there, done, _ = self.marks.read()
            if there >= where and (done >= steps or there == AFTER):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(WAIT)
        return False

    def kill(self) -> tuple[int, float, float]:
        """Kill it and its children by SIGKILL; return its position, when its steps began, and the time of the kill."""
        killed = time.time()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        where, _, began = self.marks.read()
        return where, began, killed

    def end(self) -> float:
        """Let it finish; return its seconds. Raises `RuntimeError` if it fails."""
        code = self.process.wait(timeout=TOO_LONG)
        self.marks.close()
        if code:
            raise RuntimeError(f"exit code {code}")
        return time.time() - self.began


def undisturbed(case: Case, runs: Path) -> dict[str, Any]:
    """Return its results, the seconds until its first step, and the number of steps."""
    victim = Victim(case, runs, EVERY_SECONDS)
    victim.wait_for(STEPPING)
    before = time.time() - victim.began
    victim.wait_for(AFTER)
    _, steps, _ = victim.marks.read()
    return {"before": before, "steps": steps, "seconds": victim.end(), **left(case, runs)}


def disturbed(case: Case, runs: Path, whole: Mapping[str, Any], kills: int, draw: random.Random) -> dict[str, Any]:
    """Kill it `kills` times in or between steps (the second time before its steps), then let it finish."""
    killed: list[dict[str, Any]] = []
    for number in range(kills):
        victim = Victim(case, runs, EVERY)
        if number != 1:
            victim.wait_for(STEPPING, draw.randint(1, max(1, int(SPREAD * whole["steps"] / kills))))
            time.sleep(draw.uniform(0, STEP))
        else:
            time.sleep(draw.uniform(0, whole["before"]))
        if victim.process.poll() is not None:
            break
        where, began, at = victim.kill()
        kept = last_kept(case, runs)
        seconds = at - max(began, kept or 0.0) if where == STEPPING else None
        place = ("before", "stepping", "after")[where]
        killed.append({"where": place, "with_a_checkpoint": kept is not None, "lost_seconds": seconds})
    victim = Victim(case, runs, EVERY)
    victim.end()
    return {"killed": killed, **left(case, runs)}


def last_kept(case: Case, runs: Path) -> float | None:
    """Return when the last checkpoint was written; None if there is none."""
    found = runs.glob("*/checkpoint/*.json" if case.pretrains else ".*.checkpoint/*.json")
    return max((path.stat().st_mtime for path in found if path.stem.isdecimal()), default=None)


def left(case: Case, runs: Path) -> dict[str, Any]:
    """Return the results that must be equal, as hashes, and the recorded number of attempts."""
    (folder,) = (path.parent for path in runs.glob("[!.]*/result.json"))
    result = read_json(folder / "result.json")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    untimed = [{name: value for name, value in line.items() if name != "time"} for line in lines]
    same = {"log": digest(untimed), "scores": digest([result["scores"], result["validation"]])}
    if case.pretrains:
        same |= {"weights": result["facts"]["weights_sha256"]}
    else:
        files = {"weights": "module/delta.safetensors", "predictions": "predictions.jsonl"}
        same |= {name: file_digest(folder / path) for name, path in files.items()}
    rest = [path.name for path in runs.glob(".*.checkpoint")] + [path.name for path in folder.glob("checkpoint")]
    return {"same": same, "attempts": result["facts"].get("attempts", 1), "checkpoints_left": rest}


def tried(case: Case, work: Path, kills: int) -> dict[str, Any]:
    """Measure one case, in its own folder."""
    folder = work / "runs" / digest(case.name)[:12]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("whole", "broken"):
        (folder / name).mkdir()
    try:
        whole = undisturbed(case, folder / "whole")
        broken = disturbed(case, folder / "broken", whole, kills, random.Random(case.name))
    except Exception as error:
        return {"case": case.name, "equal": False, "failed": f"{type(error).__name__}: {error}"}
    shutil.rmtree(folder)
    unequal = [name for name, value in whole["same"].items() if broken["same"][name] != value]
    told = {"case": case.name, "kills": broken["killed"], "attempts": broken["attempts"], "unequal": unequal}
    clean = not broken["checkpoints_left"]
    size = {"steps": whole["steps"], "seconds": round(whole["seconds"], 2)}
    return {**told, "equal": not unequal and clean, "sha256": whole["same"]["weights"], **size}


def overhead(work: Path) -> dict[str, Any]:
    """Measure a checkpoint of all that `full` trains of the default backbone, the largest one here."""
    spent: list[tuple[float, int]] = []
    write = Checkpoints.write

    def timed(self: Checkpoints, checkpoint: Any) -> None:
        began = time.perf_counter()
        write(self, checkpoint)
        size = max(path.stat().st_size for path in self.folder.iterdir())
        spent.append((time.perf_counter() - began, size))

    from graftwork.run import run_checkpoint

    every, run_checkpoint.EVERY_SECONDS = run_checkpoint.EVERY_SECONDS, 0.0
    Checkpoints.write = timed  # type: ignore[method-assign]
    try:
        runs = work / "overhead"
        shutil.rmtree(runs, ignore_errors=True)
        gw.train(inputs(work)["classification"], method="full", epochs=2, runs=runs, precision="fp32", device="cpu")
    finally:
        Checkpoints.write, run_checkpoint.EVERY_SECONDS = write, every  # type: ignore[method-assign]
    seconds = sorted(one for one, _ in spent)[len(spent) // 2]
    found = {"case": "minilm, full, fp32", "bytes": max(size for _, size in spent), "seconds": round(seconds, 3)}
    return found | {"written": len(spent), "share": round(seconds / max(EVERY_SECONDS, seconds / SHARE), 5)}


def summary(found: Sequence[Mapping[str, Any]], paid: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the measurements for the bar."""
    kills = [kill for case in found for kill in case.get("kills", ())]
    seconds = [kill["lost_seconds"] for kill in kills if kill["lost_seconds"] is not None]
    resumed = {case["case"]: sum(kill["with_a_checkpoint"] for kill in case.get("kills", ())) for case in found}
    return {
        "cases": len(found),
        "kills": len(kills),
        "before_the_first_step": sum(kill["where"] == "before" for kill in kills),
        "kills_with_a_checkpoint": sum(resumed.values()),  # from which the next attempt resumed
        "of_every_case": min(resumed.values(), default=0),
        "different": [case["case"] for case in found if not case["equal"]],
        "interval_seconds": EVERY,
        "lost_seconds": round(max(seconds, default=0.0), 2),
        "overhead": None if paid is None else paid["share"],
        "checkpoint": paid,
    }


def status(measured: Mapping[str, Any]) -> str:
    """Return `ok`, `failed`, or `partial` if too few kills came after a checkpoint."""
    bad = measured["different"] or measured["lost_seconds"] > BAR["lost_seconds_at_most"]
    if bad or (measured["overhead"] or 0.0) > SHARE:
        return "failed"
    few = any(measured[name] < BAR[f"{name}_at_least"] for name in ("kills_with_a_checkpoint", "of_every_case"))
    return "partial" if few or measured.get("not_run") or measured["overhead"] is None else "ok"


def kept(path: Path, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of `work`, from `path` if it is there."""
    content = read_json(path) if path.is_file() else {}
    if name not in content:
        content[name] = work()
        write_json(path, content)
    found: dict[str, Any] = content[name]
    return found


def main() -> None:
    """Measure every case, then the cost of checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("kills"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--only", help="cases whose names hold one of these words, parted by semicolons")
    chosen = parser.parse_args()
    work = chosen.work.absolute()
    words = chosen.only.split(";") if chosen.only else [""]
    asked = [case for case in cases(work) if any(word in case.name for word in words)]
    found: list[dict[str, Any]] = []
    for case in asked:
        found.append(kept(work / "kept.json", case.name, partial(tried, case, work, chosen.kills)))
        print(f"{'equal' if found[-1]['equal'] else 'DIFFERENT'}  {case.name}", flush=True)
        write_result(chosen.out / "kills.json", found, asked, None)
    paid = kept(work / "kept.json", "overhead", partial(overhead, work)) if not chosen.only else None
    print(json.dumps(write_result(chosen.out / "kills.json", found, asked, paid), indent=1))


def write_result(
    path: Path, found: Sequence[Mapping[str, Any]], asked: Sequence[Case], paid: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write the results so far and what is missing; return the measurements."""
    measured = summary(found, paid) | {"not_run": [case.name for case in asked[len(found) :]]}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, result_of(QUESTION, BAR, measured, status(measured), cases=found))
    return measured


if __name__ == "__main__":
    main()
