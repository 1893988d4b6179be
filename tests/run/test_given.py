"""What a module can be asked: told from the form of what is given."""

from __future__ import annotations

from typing import Any

import pytest

from graftwork.run.given import example_of_given, takes

ROLES = [
    ("text",),
    ("words",),
    ("text_a", "text_b"),
    ("question", "words"),
    ("text", "choices"),
    ("image",),
]
TAKEN: list[tuple[Any, set[tuple[str, ...]]]] = [
    ("a text", {("text",), ("words",)}),
    ({"text": "a text"}, {("text",), ("words",)}),
    (["two", "words"], {("words",)}),
    ({"words": ["two", "words"]}, {("words",)}),
    (("one", "other"), {("text_a", "text_b"), ("question", "words")}),
    ({"text_b": "one", "text_a": "other"}, {("text_a", "text_b")}),
    ({"question": "who?", "context": "me"}, {("question", "words")}),
    (("a text", ["a", "b"]), {("text", "choices")}),
    ({"text": "a text", "choices": ["a", "b"]}, {("text", "choices")}),
    ({"image": "a.png"}, {("image",)}),
    (("a", "b", "c"), set()),
    ((), set()),
    ({}, set()),
    ({"question": "who?", "words": ["me"]}, set()),
]


@pytest.mark.parametrize(("given", "roles"), TAKEN)
def test_who_takes_what(given: Any, roles: set[tuple[str, ...]]) -> None:
    assert {one for one in ROLES if takes(one, given)} == roles
    for one in roles - {("image",)}:
        assert set(example_of_given(one, 1, given).inputs) == set(one)
