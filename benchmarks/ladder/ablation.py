"""BERT ablation: with next-sentence prediction, without it, and left to right, at one size and budget."""

from __future__ import annotations

from functools import partial

from judged import every_pair, judged, over_tasks
from plan import Plan, network_units, pretraining, row_name, runs_of
from units import Result, Unit

TASKS = ("mrpc", "rte", "sst2", "trec6")
PAIRS, SINGLES = TASKS[:2], TASKS[2:]
NETWORKS = ("next_sentence", "masked", "causal")
METHODS = ("linear_probe", "full")


def units(plan: Plan) -> list[Unit]:
    """Return the units; two networks and their boards of single texts are those of `generations`."""
    made = [Unit(f"pretrain.{name}", partial(pretraining, plan, name)) for name in NETWORKS]
    for name in NETWORKS:
        made += network_units(plan, name, False, TASKS)
    every = tuple(unit.name for unit in made)
    return [*made, Unit("judge.ablation", partial(judge, plan), awaits=every, again=True)]


def judge(plan: Plan) -> Result:
    """Compare the networks by each method, over pairs, over single texts and over all tasks."""
    found = runs_of(plan, [(name, False) for name in NETWORKS], TASKS)
    families = {f"by {method}": every_pair([row_name(name, method) for name in NETWORKS]) for method in METHODS}
    over = {"pairs": PAIRS, "single texts": SINGLES, "all": TASKS}
    return {name: judged(over_tasks(plan.place, tasks, found), families) for name, tasks in over.items()}
