"""Likelihoods and speed of `prompt` beside lm-evaluation-harness: `python beside_lm_eval.py --data sst2 --model M`.

M is the folder of a language model. Both answer the same prompts with the same weights in fp32 and one thread, in
turns: a part of the rows by one, then by the other. lm-eval needs an environment of its own: `pip install lm-eval`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import AutoModelForCausalLM, AutoTokenizer

import graftwork as gw
from graftwork.core.example import Example
from graftwork.core.named_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.run.execute import workbench
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings

HERE = Path(__file__).parent.absolute()


def harness(model: str, batch: int) -> HFLM:
    """Open the network as lm-eval does, in fp32."""
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    return HFLM(pretrained=network, tokenizer=AutoTokenizer.from_pretrained(model), batch_size=batch, device="cpu")


def asked(fitted: Any, examples: Sequence[Example]) -> list[Instance]:
    """Return the prompts of examples as requests of lm-eval, a request per label."""
    prompts = fitted.prompts
    pairs = [(prompts.context(one.inputs), way) for one in examples for way in prompts.answers(one)]
    return [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of `work` and the seconds that it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def main() -> None:
    """Compare the likelihoods of every row, and the times of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.tsv, dev.tsv and test.tsv")
    parser.add_argument("--model", required=True, help="folder of a language model")
    parser.add_argument("--method", default="prompt:shots=16:template=sentiment")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16], help="of lm-eval; its default is 1")
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "beside_lm_eval.json")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    method = parse_method(chosen.method)
    files = {split: chosen.data / f"{split}.tsv" for split in ("train", "dev", "test")}
    task = gw.Task.from_file(files["train"], validation=files["dev"], test=files["test"])
    settings = RunSettings(f"hf:{chosen.model}", runs=chosen.runs, precision="fp32")
    session = open_session(task, [method], settings)
    fitted, fit_seconds = timed(partial(method.method.fit, workbench(session, method, Recipe(), 0)))
    examples = session.dataset.test.examples[: chosen.rows]
    peers = {f"lm-eval, batches of {size}": harness(chosen.model, size) for size in chosen.batch}
    times: dict[str, list[float]] = {name: [] for name in ("graftwork", *peers)}
    apart: dict[str, float] = dict.fromkeys(peers, 0.0)
    for part in np.array_split(np.arange(len(examples)), chosen.parts):
        rows = [examples[i] for i in part]
        ours, seconds = timed(partial(fitted.logits, rows))
        times["graftwork"].append(seconds)
        for name, peer in peers.items():
            found, seconds = timed(partial(peer.loglikelihood, asked(fitted, rows), disable_tqdm=True))
            times[name].append(seconds)
            theirs = np.array([value for value, _ in found]).reshape(ours.shape)
            apart[name] = max(apart[name], float(np.abs(theirs - ours).max()))
    ratios = {name: [a / b for a, b in zip(times[name], times["graftwork"], strict=True)] for name in peers}
    told = ("shots_asked", "shots_dropped", "prompt_tokens", "tokens_read_once")
    content = {
        "method": method.label,
        "data": chosen.data.name,
        "rows": len(examples),
        "facts": {name: fitted.facts[name] for name in told},
        "largest_difference": apart,
        "fit_seconds": fit_seconds,
        "seconds_of_parts": times,
        "times_as_fast": {name: statistics.median(listed) for name, listed in ratios.items()},
        "versions": {"lm_eval": version("lm_eval")},
        "precision": "fp32",
        "environment": environment(),
    }
    write_json(chosen.out, content)
    print(f"largest difference {apart}; times as fast {content['times_as_fast']}")


if __name__ == "__main__":
    main()
