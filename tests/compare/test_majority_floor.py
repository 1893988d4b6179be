"""The floor is what the method `majority` scores."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.compare.majority_floor import floor_of
from graftwork.core.metric import score
from graftwork.methods.majority import Majority
from graftwork.registry import metrics
from graftwork.testing.tiny_data import tiny_bench, tiny_dataset


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression", "tagging", "span", "choice"])
def test_it_is_the_method_majority(kind: str) -> None:
    data = tiny_dataset(kind)
    bench, floor = tiny_bench(data, None), floor_of(data)
    fitted, task = Majority().fit(bench), data.task
    for name in task.metrics:
        assert floor.test[name].shape[0] == len(data.test.examples)
        if kind != "multilabel":  # whose thresholds come after the fit
            found = bench.setting.kind.predictions(fitted.logits(data.test.examples), task)
            expected = metrics.get(name).statistics(data.test.targets, found, task)
            assert np.array_equal(floor.test[name], expected)
            held = bench.setting.kind.predictions(fitted.logits(data.validation.examples), task)
            assert floor.validation[name] == score(metrics.get(name), data.validation.targets, held, task)
