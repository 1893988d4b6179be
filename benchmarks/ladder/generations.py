"""Five generations of pre-training at one compute budget, and their scores on five tasks."""

from __future__ import annotations

from functools import partial

from boards import board
from judged import every_pair, judged, over_tasks
from plan import Plan, network_units, pretraining, row_name, runs_of
from rungs import RUNGS
from units import Result, Unit

TASKS = ("mr", "cr", "sst2", "trec6", "imdb")
BASELINES = ("majority", "tfidf_svm")
NETWORKS = [(name, fresh) for name in RUNGS for fresh in (False, True)]  # every rung, with and without its pre-training


def baselines(plan: Plan, task: str) -> Result:
    """Return the board of the methods without a network."""
    return board(f"baselines.{task}", plan.place, plan.place.task(task), "minilm", BASELINES)


def units(plan: Plan) -> list[Unit]:
    """Return the units, pre-training first, so that two processes have enough to do."""
    made = [Unit(f"pretrain.{name}", partial(pretraining, plan, name)) for name in RUNGS]
    made += [Unit(f"board.baselines.{task}", partial(baselines, plan, task)) for task in TASKS]
    for name, fresh in NETWORKS:
        made += network_units(plan, name, fresh, TASKS)
    every = tuple(unit.name for unit in made)
    return [*made, Unit("judge.generations", partial(judge, plan), awaits=every, again=True)]


def judge(plan: Plan) -> Result:
    """Compare over all tasks: each pair of rungs by the same method, and each rung with and without pre-training."""
    boot = over_tasks(plan.place, TASKS, runs_of(plan, [("baselines", False), *NETWORKS], TASKS))
    families = {
        f"rungs by {method}": every_pair([*(row_name(name, method) for name in reversed(RUNGS)), "tfidf_svm"])
        for method in ("linear_probe", "full")
    }
    families["pre-trained and fresh"] = [
        (row_name(name, method), row_name(name, method, fresh=True))
        for name in RUNGS
        for method in ("linear_probe", "full")
    ]
    families["a rung's own method"] = [
        ("awd_lstm ulmfit", "awd_lstm full"),
        ("bidirectional scalar_mix", "bidirectional linear_probe"),
    ]
    return {"tasks": list(TASKS)} | judged(boot, families)
