"""Likelihoods and speed of `prompt` beside lm-evaluation-harness: `python beside_lm_eval.py --data sst2 --model M`.

M is the folder of a language model. Both answer the same prompts with the same weights in fp32 and one thread, in
turns: a part of the rows by one, then by the other. A finished
part is a line of the results, and is skipped. lm-eval needs an environment of its own: `pip install lm-eval`.
"""

from __future__ import annotations

import argparse
import json
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
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.run import Recipe
from graftwork.machine.environment import environment
from graftwork.run.execute import workbench
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings

HERE = Path(__file__).parent.absolute()


def harness(model: str, batch: int) -> HFLM:
    """Open the network as lm-eval does, in fp32."""
    config = AutoConfig.from_pretrained(model)
    family = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    network = family.from_pretrained(model, dtype=torch.float32)
    if network.get_output_embeddings().weight is not network.get_input_embeddings().weight:
        network.config.tie_word_embeddings = False  # lm-eval ties them, whatever is stored
    return HFLM(pretrained=network, tokenizer=AutoTokenizer.from_pretrained(model), batch_size=batch, device="cpu")


def asked(fitted: Any, examples: Sequence[Example]) -> list[Instance]:
    """Return the prompts of examples as requests of lm-eval, a request per label."""
    prompts = fitted.prompts
    pairs = [(prompts.context(one.inputs), way) for one in examples for way in prompts.answers(one.inputs)]
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
    parser.add_argument("--step", type=int, default=50, help="rows of a part, which is a line of the results")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16], help="of lm-eval; its default is 1")
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "beside_lm_eval.jsonl")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    method = parse_method(chosen.method)
    files = {split: chosen.data / f"{split}.tsv" for split in ("train", "dev", "test")}
    task = gw.Task.from_file(files["train"], validation=files["dev"], test=files["test"])
    settings = RunSettings(f"hf:{chosen.model}", runs=chosen.runs, precision="fp32")
    session = open_session(task, [method], settings)
    fitted = method.method.fit(workbench(session, method, Recipe(), 0))
    examples = session.dataset.test.examples[: chosen.rows]
    peers = {f"lm-eval, batches of {size}": harness(chosen.model, size) for size in chosen.batch}
    told = ("shots_asked", "shots_dropped", "prompt_tokens", "tokens_read_once")
    about = {"method": method.label, "data": chosen.data.name, "model": Path(chosen.model).name, "precision": "fp32"}
    lines = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.is_file() else []
    done = [line for line in lines if about.items() <= line.items() and all(name in line["seconds"] for name in peers)]
    for start in range(0, len(examples), chosen.step):
        rows = examples[start : start + chosen.step]
        if any(line["first"] == start and line["rows"] == len(rows) for line in done):
            continue
        ours, seconds = timed(partial(fitted.logits, rows))
        times, apart = {"graftwork": seconds}, {}
        for name, peer in peers.items():
            found, times[name] = timed(partial(peer.loglikelihood, asked(fitted, rows), disable_tqdm=True))
            theirs = np.array([value for value, _ in found]).reshape(ours.shape)
            apart[name] = float(np.abs(theirs - ours).max())
        line = about | {
            "first": start,
            "rows": len(rows),
            "seconds": times,
            "largest_difference": apart,
            "facts": {name: fitted.facts[name] for name in told},
            "versions": {"lm_eval": version("lm_eval")},
            "processor": environment().get("processor", ""),
        }
        with chosen.out.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        done.append(line)
    for name in peers:
        ratios = [line["seconds"][name] / line["seconds"]["graftwork"] for line in done]
        apart_most = max(line["largest_difference"][name] for line in done)
        print(
            f"{name}: {statistics.median(ratios):.1f} times as fast over {sum(line['rows'] for line in done)} rows "
            f"in {len(done)} parts; likelihoods at most {apart_most:.1e} apart"
        )


if __name__ == "__main__":
    main()
