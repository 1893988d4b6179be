"""What a module can be asked: told from the form of what is given."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from graftwork.errors import ConfigError
from graftwork.module.input_format import Form
from graftwork.module.inputs import FORMS, asking, example_of_given, takes
from graftwork.testing.tiny_media import write_image, write_sound

ROLES = [("text",), ("words",), ("text_a", "text_b"), ("question", "words"), ("text", "choices"), ("image",)]
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


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "+".join(form.roles))
def test_what_a_form_is_asked_on_a_command_line_is_of_it(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_image(tmp_path / "image.jpg", "red", 0)
    write_sound(tmp_path / "sound.wav", "low", 0)
    graft, predict, folder, *texts = shlex.split(asking(form.roles, tmp_path / "a module"))
    assert (graft, predict, folder) == ("graft", "predict", str(tmp_path / "a module"))
    [given] = form.arguments(texts)
    assert set(form.example(1, given).inputs) == set(form.roles)


@pytest.mark.parametrize("given", [None, 7, 2.5, [1, 2], (1, "a"), ("a", None), ("a", [1, "b"]), {"text": 7}, {1: "a"}])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "+".join(form.roles))
def test_what_is_no_text_is_told(form: Form, given: Any) -> None:
    by_name = [] if isinstance(given, dict) else [dict.fromkeys(form.names[0], given)]
    for one in (given, *by_name):
        with pytest.raises(ConfigError):
            example_of_given(form.roles, 1, one)


def test_the_input_that_is_no_text_is_named() -> None:
    with pytest.raises(ConfigError, match="input 3 is no text") as caught:
        example_of_given(("text",), 3, 2.5)
    assert caught.value.got == "'2.5'"
