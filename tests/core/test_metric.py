"""What a metric is refused with: the advice must lead to one that is taken."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.core.metric import require_scorable
from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds, metrics
from graftwork.testing.metric_contract import sampled

SAMPLED = [(task, targets) for task, targets in sampled()]


@pytest.mark.parametrize("name", metrics.names())
@pytest.mark.parametrize(("task", "targets"), SAMPLED, ids=[f"{task.kind}-{len(task.labels)}" for task, _ in SAMPLED])
def test_the_metrics_that_are_advised_score_the_task(name: str, task: Task, targets: Numbers) -> None:
    try:
        require_scorable(targets, task.resolved(metrics=(name,)))
    except ConfigError as refused:
        advised = refused.expected.split(", ")
        assert set(task.metrics) <= set(advised), "the kind's own are missing"
    else:
        advised = [name]
    for other in advised:
        assert np.isfinite(metrics.get(other).statistics(targets, targets, task)).all()


def test_every_kind_is_sampled() -> None:
    assert {task.kind for task, _ in SAMPLED} == set(kinds.names())


def test_no_metric_of_words_or_classes_is_advised_for_answers_in_a_passage() -> None:
    task, targets = next(pair for pair in SAMPLED if pair[0].kind == "span")
    for name in ("accuracy", "macro_f1", "entity_f1"):
        with pytest.raises(ConfigError) as refused:
            require_scorable(targets, task.resolved(metrics=(name,)))
        assert refused.value.expected == "exact_match, span_f1"
        assert "candidates" not in refused.value.what
