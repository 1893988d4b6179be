"""What methods ask of a kind is what it is like, never what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.task import Task
from graftwork.data.splits.draws import OF_CLASSES, parse_sizes
from graftwork.kinds.classification import Classification
from graftwork.registry import kinds


@pytest.mark.parametrize(
    "method", ["prototype", "contrastive", "peft_lora:maps=attention.query", "adapterhub:parts=mlp"]
)
def test_a_kind_of_another_name_with_one_class_of_each_example(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds._parts, "of_another_package", Classification())
    task = Task("tiny", Path(), kind="of_another_package")
    assert parse_method(method).method.unfit(task, None) == ""
    assert [size.word for size in parse_sizes(None, task)] == list(OF_CLASSES)


@pytest.mark.parametrize("kind", ["multilabel", "regression", "tagging", "span", "choice", "ranking"])
def test_other_kinds_have_no_one_class(kind: str) -> None:
    task = Task("tiny", Path(), kind=kind)
    for method in ("prototype", "contrastive"):
        assert kind in parse_method(method).method.unfit(task, None)
