"""Forecast of the rungs' durations: a few steps of each at full size."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from plan import Plan
from rungs import HERE, RUNGS
from units import cpu

import graftwork as gw

STEPS = 20


def estimate(plan: Plan) -> None:
    """Print a line per rung: CPU seconds of a step (without the first three), FLOP per second, minutes of the budget.

    The corpus is cut to two million bytes, so passes and vocabularies differ from the real ones, but speed does not.
    """
    small = replace(plan, corpus_bytes=2_000_000, place=replace(plan.place, work=plan.place.work / "estimate"))
    (small.place.work / "runs").mkdir(parents=True, exist_ok=True)
    for name, rung in RUNGS.items():
        seen: list[tuple[str, float]] = []

        def note(done: float, text: str, seen: list[tuple[str, float]] = seen) -> None:
            seen.append((text, cpu()))

        began = time.perf_counter()
        extent = {"tokens": 800_000} if name == "word_vectors" else {"steps": STEPS, "validate_every": 10**6}
        made = gw.pretrain(
            small.reviews, objective=rung.objective, size=str(HERE / "sizes" / f"{rung.name}.toml"), lowercase=True,
            vocabulary=None if name == "word_vectors" else min(rung.vocabulary, 8_000),
            recipe=dict(rung.recipe) or None,
            runs=small.place.work / "runs", cache=small.place.work / "cache", device="cpu",
            progress=note, **extent,
        )  # fmt: skip
        flops = made.result.costs["train_flops"].value or 0.0
        marks = [at for text, at in seen if text.startswith("step ") or " tokens · " in text]
        if made.reused or len(marks) < 2:
            print(f"{name}: nothing to go by", flush=True)
            continue
        first = 3 if name != "word_vectors" else 0
        steps = len(marks) - 1 - first
        share = steps / (STEPS if name != "word_vectors" else len(marks))
        took = marks[-1] - marks[first]
        speed = flops * share / took
        print(json.dumps({
            "rung": name, "cpu_seconds_a_step": round(took / steps, 4), "gflop_per_cpu_second": round(speed / 1e9, 2),
            "minutes_of_the_budget": round(plan.budget * rung.share / speed / 60, 2),
            "tokens_of_the_budget": plan.budget * rung.share / flops * made.result.facts["tokens_seen"],
            "wall_seconds": round(time.perf_counter() - began, 1),
        }), flush=True)  # fmt: skip
