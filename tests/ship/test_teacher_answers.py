"""What a student learns from: the teacher's logits, and the input of its head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graftwork.core.ragged import flat
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import CompressionData
from graftwork.ship.teacher_answers import answers_of, features_of, has_features

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.mark.parametrize("method", ["full", "lora", "adapter"])
def test_the_head_makes_the_logits_of_the_features(method: str, teacher: Teacher) -> None:
    module, data = teacher(method=method)
    fitted: Any = module.fitted
    weight, bias = (one.detach().float().numpy() for one in (fitted.head.out.weight, fitted.head.out.bias))
    assert has_features(module)
    found = flat(features_of(module, data.validation.examples)) @ weight.T + bias
    assert np.allclose(found, flat(answers_of(module, data.validation.examples)), atol=1e-4)


def test_counted_words_have_no_features(teacher: Teacher) -> None:
    assert not has_features(teacher(method="majority")[0])
