"""The settings of single kinds: made from what is given, told, recorded and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.kind_settings import kind_settings, parse_kind_settings, settings_of
from graftwork.core.task import OF_FORMAT_1, Task
from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import kinds

COSTS = {"x": {"x": 0.0, "y": 1.5}, "y": {"x": 1.0, "y": 0.0}}
GIVEN: dict[str, dict[str, Any]] = {  # values of all settings, none of them the default
    "choice": {"choices": ("a", "b"), "count_from": "1"},
    "classification": {"positive": "x", "class_weights": {"x": 2.0, "y": 1.0}, "costs": COSTS},
    "multilabel": {"thresholds": "half", "class_weights": "balanced"},
    "ranking": {"choices": ("a",), "count_from": "0"},
    "regression": {"scale": (3.0, 2.0)}, "span": {"realign": True, "unanswerable": True},
    "tagging": {"stray_tags": "refuse", "class_weights": "balanced"},
    "generation": {
        "beams": 4, "length_penalty": 0.5, "no_repeat": 3, "longest": 20, "source_language": "en_XX",
        "target_language": "de_DE", "source_prefix": "translate: ",
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", kinds.names())
def test_a_task_is_read_from_what_it_told(kind: str) -> None:
    task = Task("t", Path("t.csv"), kind=kind, settings=GIVEN[kind])
    line = json.dumps(task.as_dict() | {"data": "t.csv"})
    assert Task.from_json(json.loads(line)) == task == Task.from_settings(task.as_dict())
    later = json.loads(line) | {"a_setting_of_a_later_version": 1}
    assert Task.from_json(later) == task
    asked = Task.from_question("t", json.loads(json.dumps(task.question())))
    assert asked.question() == task.question() and asked.data == Path()


@pytest.mark.parametrize("kind", kinds.names())
def test_records_of_every_kind_hold_the_same_names_in_one_order(kind: str) -> None:
    task = Task("t", Path("t.csv"), kind=kind, settings=GIVEN[kind])
    assert list(task.as_record()) == [
        "name", "data", "validation", "test", "kind", "text", "text_a", "text_b", "image", "sound", "choices",
        "count_from", "label", "labels", "metrics", "stray_tags", "realign", "drop_leaks", "rejects", "thresholds",
        "positive", "scale", "unanswerable", "split_seed", *(name for name in GIVEN[kind] if name not in OF_FORMAT_1),
    ]  # fmt: skip
    assert {**OF_FORMAT_1, **task.as_dict()} == task.as_record()
    plain = Task("t", Path("t.csv"), kind=kind).as_record()
    assert not {"class_weights", "costs"} & plain.keys(), "records of tasks without them are as they were"
    assert list(task.question())[:5] == ["kind", "labels", "metrics", "positive", "scale"]
    assert set(Task("t", Path(), kind=kind).question()) == {"kind", "labels", "metrics", "positive", "scale"}


def test_only_what_decides_results_is_asked() -> None:
    asked = {kind: Task("t", Path(), kind=kind, settings=given).question() for kind, given in GIVEN.items()}
    assert asked["multilabel"]["thresholds"] == "half" and asked["span"]["unanswerable"] is True
    assert asked["classification"]["positive"] == "x" and asked["regression"]["scale"] == (3.0, 2.0)
    assert asked["tagging"] == Task("t", Path(), kind="tagging").question() | {"class_weights": "balanced"}
    assert "realign" not in asked["span"] and "choices" not in asked["choice"]


def test_what_is_derived_can_not_be_given(tmp_path: Path) -> None:
    assert not {"scale", "unanswerable"} & kind_settings().keys() and settings_of("regression") == {}
    for flags in ({"kind": "regression", "scale": (1.0, 2.0)}, {"kind": "span", "unanswerable": True}):
        with pytest.raises(UnknownName, match="unknown task setting"):
            Task.from_file("builtin:tickets", **flags)
    (tmp_path / "t.toml").write_text('data = "t.csv"\nkind = "regression"\nscale = ["1"]\n')
    with pytest.raises(UnknownName, match="unknown setting 'scale'"):
        Task.from_file(tmp_path / "t.toml")


def test_settings_are_made_and_refused() -> None:
    assert parse_kind_settings("choice", {"choices": "a, b"}).choices == ("a", "b")
    assert parse_kind_settings("regression", {"stray_tags": "repair", "choices": ()}) == parse_kind_settings(
        "regression", {}
    ), "their defaults"
    with pytest.raises(ConfigError, match="a task of kind regression has no use for stray_tags"):
        parse_kind_settings("regression", {"stray_tags": "refuse"})
    with pytest.raises(UnknownName, match="did you mean 'refuse'"):
        parse_kind_settings("regression", {"stray_tags": "refused"})
    with pytest.raises(UnknownName, match="did you mean 'count_from'"):
        parse_kind_settings("choice", {"count_form": "1"})


def test_a_setting_is_described() -> None:
    found = kind_settings()
    assert found["choices"].users == ("choice", "ranking") and found["choices"].type is list
    assert (found["count_from"].choices, found["count_from"].unset) == (("0", "1"), "0, unless it could be 1")
    assert (found["positive"].meaning, found["positive"].unset) == ("the class that f1 is of", "the rarer one of two")
    assert (found["stray_tags"].unset, found["realign"].type) == ("repair", bool)
    assert [name for name, one in found.items() if one.in_question] == [
        "positive", "class_weights", "costs", *GIVEN["generation"], "thresholds",
    ]  # fmt: skip


def test_a_setting_of_another_kind_is_placed_in_its_task_file(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text('data = "t.csv"\nkind = "span"\nstray_tags = "refuse"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="has no use for stray_tags") as caught:
        Task.from_file(path)
    assert caught.value.where == str(path)
