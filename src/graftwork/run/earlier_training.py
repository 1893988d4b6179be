"""Reuse of the training of a stored run by a method that combines trainings of another method."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from graftwork.core.configured_methods import parse_method
from graftwork.core.kind import WritesTexts
from graftwork.core.meter import Phase
from graftwork.core.method import THRESHOLDS_FACT, Method, Training
from graftwork.core.run import RunResult, RunSpec
from graftwork.core.tally import Tally
from graftwork.module.module_files import DESCRIPTION, read_delta, read_description
from graftwork.registry import kinds
from graftwork.run.session import Session
from graftwork.train.wrapper_method import starts_alike


def earlier_training(session: Session, spec: RunSpec, words: str, number: int) -> Training | None:
    """Return the training of the stored run like `spec`, but with the method `words` and a seed higher by `number`.

    None if the session's store has no such run with its module and its log, or if its initial weights depend on the
    seed. Time of work that it shared with other runs is counted for number 0 only.
    """
    method = parse_method(words)
    if spec.held:
        return None
    wanted = replace(spec, method=method.identity, seed=spec.seed + number)
    found = session.store.find(wanted.id)
    folder, log = session.store.root / wanted.id / "module", session.store.root / wanted.id / "log.jsonl"
    if found is None or not began_alike(session, method.method, found):
        return None
    if not ((folder / DESCRIPTION).is_file() and log.is_file()):
        return None
    description = read_description(folder)
    facts = {name: fact for name, fact in description["facts"].items() if name != THRESHOLDS_FACT}
    delta, lines = read_delta(folder, description["delta_sha256"]), log.read_text(encoding="utf-8").splitlines()
    return Training(delta, facts, _time(found, number), _tally(found), [json.loads(line) for line in lines])


def began_alike(session: Session, method: Method, run: RunResult | None) -> bool:
    """Return whether all runs of a method start from the same weights; if `run` is given, whether it did so too.

    A head that was fitted first is part of these weights; a network that writes texts has no head.
    """
    card = session.backbone.card if session.backbone else None
    if run is None or isinstance(kinds.get(session.dataset.task.kind), WritesTexts):
        return starts_alike(method, card)
    return starts_alike(method, card) and bool(run.facts.get("head_start", {}).get("used", False))


def are_successive(seeds: Sequence[int]) -> bool:
    """Return whether these are the seeds of an average: two or more, each higher by 1 than the one before."""
    return len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))


def _time(found: RunResult, number: int) -> Phase:
    costs, shared = found.costs, found.shared if number else Phase()
    whole = Phase(costs["train_seconds"].value or 0.0, costs["train_cpu_seconds"].value or 0.0)
    return whole - shared


def _tally(found: RunResult) -> Tally:
    flops, padding = found.costs["train_flops"], found.costs["padding_flops"]
    return Tally(flops.value or 0.0, padding.value or 0.0, flops.grade)
