"""ULMFiT's parts switched off one by one, and its middle stage left out."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

from boards import board, method_of
from judged import judged, over_tasks
from plan import Plan, backbone_of, pretraining, rates, runs_of
from units import Result, Unit

TASKS = ("trec6", "mr")
STAGED = ("mr",)  # the task whose domain the middle stage trains on
EPOCHS = 5  # more than elsewhere, so that gradual unfreezing has several stages
OFF = {
    "unfreezing": ":unfreezing=at_once",
    "rates": ":divisor=1.0",
    "schedule": ":schedule=constant",
    "all three": ":divisor=1.0:schedule=constant:unfreezing=at_once",
}
GENERAL = ("lm_wikitext2/valid.txt", "lm_wikitext2/test.txt", "lm_wikipedia_paragraphs/squad_dev.txt.gz",
           "lm_wikipedia_paragraphs/clinc_wiki_sentences.txt")  # fmt: skip


def units(plan: Plan) -> list[Unit]:
    """Return the units; they start from the rung `awd_lstm` of `generations`, the stages from encyclopedia text."""
    made = [
        Unit("pretrain.awd_lstm", partial(pretraining, plan, "awd_lstm")),
        Unit("rates.awd_lstm", partial(rates, plan, "awd_lstm", False), needs=("pretrain.awd_lstm",)),
        *(
            Unit(f"board.ulmfit.{task}", partial(parts_off, plan, task), needs=("pretrain.awd_lstm", "rates.awd_lstm"))
            for task in TASKS
        ),
        Unit("pretrain.general", partial(general, plan)),
        Unit("pretrain.target", partial(target, plan), needs=("pretrain.general",)),
    ]
    made += [
        Unit(f"board.{name}.{task}", partial(staged, plan, name, task), needs=(f"pretrain.{name}", "rates.awd_lstm"))
        for name in ("general", "target")
        for task in STAGED
    ]
    every = tuple(unit.name for unit in made)
    return [*made, Unit("judge.ulmfit", partial(judge, plan), awaits=every, again=True)]


def whole(plan: Plan) -> str:
    """Return the full method at its best rate."""
    chosen = plan.bench.result("rates.awd_lstm")["chosen"]
    return f"ulmfit:learning_rate={chosen['ulmfit']}"


def parts_off(plan: Plan, task: str) -> Result:
    """Return the board of the full method, and without one part or all; the rate stays."""
    methods = [whole(plan), *(whole(plan) + off for off in OFF.values())]
    epochs = EPOCHS if plan.place.epochs > 1 else 1
    asked = plan.place.task(task)
    return board(f"ulmfit.{task}", plan.place, asked, backbone_of(plan, "awd_lstm"), methods, epochs=epochs)


def general(plan: Plan) -> Result:
    """Pre-train the first stage."""
    corpus = plan.place.work / "corpora" / "general"
    corpus.mkdir(parents=True, exist_ok=True)
    for name in GENERAL:
        path = plan.place.data / name
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        (corpus / Path(name).name.removesuffix(".gz")).write_bytes(text[: plan.corpus_bytes])
    return pretraining(plan, "general", corpus)


def target(plan: Plan) -> Result:
    """Train the second stage, on the reviews."""
    return pretraining(plan, "target", backbone=backbone_of(plan, "general"))


def staged(plan: Plan, name: str, task: str) -> Result:
    """Train the third stage, on the first or on the second."""
    asked = plan.place.task(task)
    return board(f"{name}.{task}", plan.place, asked, backbone_of(plan, name), ["linear_probe", whole(plan)])


def judge(plan: Plan) -> Result:
    """Compare the full method with each part left out, and two stages with three."""
    found = runs_of(plan, [("ulmfit", False)], TASKS)
    pairs = [("ulmfit", method_of(f"ulmfit{off}")) for off in OFF.values()]
    boot = over_tasks(plan.place, TASKS, found)
    stages = over_tasks(plan.place, STAGED, runs_of(plan, [("general", False), ("target", False)], STAGED))
    both = [(f"target {method}", f"general {method}") for method in ("ulmfit", "linear_probe")]
    return {"parts": judged(boot, {"parts": pairs}), "stages": judged(stages, {"stages": both})}
