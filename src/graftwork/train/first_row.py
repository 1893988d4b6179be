"""What is added to the rows for "no answer": a threshold, chosen on validation after a method was fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graftwork.core.example import Example
from graftwork.core.kind import AsksPassages
from graftwork.core.method import Logits, Workbench
from graftwork.core.ragged import Ragged
from graftwork.train.flops import counted


def first_row(bench: Workbench, logits_of: Callable[[Sequence[Example]], Logits]) -> dict[str, Any]:
    """For the facts of what was fitted and answers so without a threshold; empty where every question has an answer."""
    kind, task = bench.setting.kind, bench.setting.task
    if not isinstance(kind, AsksPassages) or not task.unanswerable:
        return {}
    with bench.profile.phase("evaluate"):
        logits, flops = counted(lambda: logits_of(bench.validation.examples))
    bench.tally.add(flops)
    assert isinstance(logits, Ragged) and isinstance(bench.validation.targets, Ragged)
    chosen = kind.first_row(logits, bench.validation.targets, task)
    return {} if chosen is None else {"first_row": chosen.tolist()}
