"""The rungs: how each is pre-trained, and the result."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from units import Result, Teller

import graftwork as gw
from graftwork.io.files import write_text
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import tokenise
from graftwork.pretrain.objective import AtOnce
from graftwork.pretrain.start_point import parse_objective
from graftwork.pretrain.validation_loss import HeldOut, validate
from graftwork.pretrained.open_backbone import open_backbone

HERE = Path(__file__).parent
COSTS = ("train_flops", "train_cpu_seconds", "train_seconds", "energy_joules", "trained_parameters", "stored_bytes")
FACTS = (
    "steps", "tokens_seen", "passes", "parameters", "vocabulary", "text", "before", "after", "attempts", "added",
    "known", "notes", "stopped", "weights_sha256", "backbone", "unknown",
)  # fmt: skip


@dataclass(frozen=True)
class Rung:
    """A network and its pre-training."""

    name: str  # of the registered objective, and of its size file
    options: str = ""  # after the objective's name
    vocabulary: int = 8_000
    recipe: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("full",)  # trained by gradient; their rates are chosen
    probes: tuple[str, ...] = ("linear_probe",)
    share: float = 1.0  # of the budget

    @property
    def objective(self) -> str:
        """Return the objective as a user types it."""
        return self.name + self.options


ROWS = {"batch": 16, "length": 128}
STREAMS = {"batch": 32, "length": 64}
RUNGS = {  # oldest first
    "word_vectors": Rung("word_vectors", vocabulary=20_000, share=0.1),
    "bidirectional": Rung(
        "bidirectional", ":predicted=8000:samples=1024", vocabulary=20_000, recipe=STREAMS,
        probes=("linear_probe", "scalar_mix"),
    ),
    "awd_lstm": Rung("awd_lstm", ":dropout=0.3", recipe=STREAMS, methods=("full", "ulmfit")),
    "causal": Rung("causal", recipe=ROWS),
    "masked": Rung("masked", recipe=ROWS),
}  # fmt: skip
NETWORKS = RUNGS | {
    "next_sentence": Rung("masked", ":second=next_sentence", recipe=ROWS),
    "general": replace(RUNGS["awd_lstm"], share=0.25, methods=("ulmfit",)),
    "target": replace(RUNGS["awd_lstm"], share=0.25, methods=("ulmfit",)),
}


def pretrained(
    name: str,
    rung: Rung,
    corpus: Path,
    work: Path,
    *,
    budget: float,
    vocabulary: int | None = None,
    size: Path | None = None,
    recipe: Mapping[str, Any] | None = None,
    backbone: str | None = None,
    **more: Any,
) -> Result:
    """Pre-train, or reuse a finished pre-training. `budget` is in FLOP."""
    settings = rung.recipe if recipe is None else recipe
    fresh: dict[str, Any] = {"size": str(size or HERE / "sizes" / f"{rung.name}.toml"), "lowercase": True}
    fresh["vocabulary"] = vocabulary or rung.vocabulary
    done = gw.pretrain(
        corpus,
        objective=rung.objective,
        budget=f"{budget:.3e}".replace("e+", "e") + "FLOP",
        recipe=dict(settings) if rung.name != "word_vectors" else None,
        runs=work / "runs",
        cache=work / "cache",
        device="cpu",
        backbone=backbone,
        progress=Teller(name),
        **(fresh if backbone is None else {}),
        **more,
    )
    facts = done.result.facts
    card = open_backbone(f"runs/{done.folder.name}", precision="fp32")
    table = sum(tensor.numel() for part in card.sites("embedding").values() for tensor in part.parameters())
    return {
        "run": done.folder.name,
        "objective": rung.objective,
        "family": card.card.family,
        "parameters": card.card.parameters,
        "parameters_outside_embeddings": card.card.parameters - table,
        "scores": dict(done.result.scores),
        "facts": {key: facts[key] for key in FACTS if key in facts},
        "costs": {key: vars(done.result.costs[key]) for key in COSTS if key in done.result.costs},
    }


@torch.no_grad()
def scored(run: str, rung: Rung, length: int, texts: Path, work: Path) -> Result:
    """Return perplexity and bits per byte of a finished run on other texts, in rows of `length` tokens.

    Empty if the objective does not predict text.
    """
    objective = parse_objective(rung.objective).objective
    if isinstance(objective, AtOnce):
        return {}
    opened = objective.opened(work / "runs" / run / "backbone", 0)
    tokens = tokenise(open_corpus([texts], validation=1.0), opened.vocabulary, work / "cache" / "tokens").validation
    rows = objective.packed(tokens, length, opened.vocabulary)
    held = HeldOut(rows, tokens, min(32, len(rows)), length)
    return dict(validate(objective, opened.network, opened.vocabulary, held, "cpu").as_json(tokens))


def write_corpus(source: Path, target: Path, size: int, without: frozenset[str] = frozenset()) -> None:
    """Write whole lines of a text up to `size` bytes, except those in `without`."""
    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    taken, written = [], 0
    opener = gzip.open if source.suffix == ".gz" else open
    with opener(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and line.strip() not in without:
                taken.append(line)
                written += len(line.encode())
            if written >= size:
                break
    write_text(target, "".join(taken))
