"""JSON and TOML within limits: every rule, just kept and just broken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from graftwork.io.json_limits import DATA, MOST_TOML, SMALL, BeyondLimits, JsonLimits, parse_json, parse_toml

TINY = JsonLimits(bytes=200, lists=4, values=10, depth=3, text=8)


@pytest.mark.parametrize(
    "value", [{}, [], None, 1, "text", {"a": [1, 2.5, "ü"], "b": None}, [[[]]], "12345678", {"12345678": 1}, [1] * 8]
)
def test_what_is_within_is_the_value(value: Any) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=False).encode(), TINY) == value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (" " * 201, "201 bytes of JSON, where at most 200"),
        ("[[],[],[],[]]", "5 lists and"),
        (json.dumps([1] * 12), "12 values"),
        ("[[[[1]]]]", "more than 3 deep"),
        ('{"a": {"b": {"c": [1]}}}', "more than 3 deep"),
        ('"123456789"', "a text of 9 characters"),
        ('{"123456789": 1}', "a key of more than 8"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('[{"b": {"a": 1, "a": 1}}]', "the key 'a' occurs twice"),
        ("[NaN]", "NaN, which is not a JSON number"),
        ("[-Infinity]", "-Infinity, which is not a JSON number"),
    ],
)
def test_what_is_beyond_names_its_rule(text: str, rule: str) -> None:
    with pytest.raises(BeyondLimits, match=rule):
        parse_json(text.encode(), TINY)


@pytest.mark.parametrize("limits", [DATA, SMALL])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_the_deepest_of_texts_is_refused_and_does_no_harm(text: str, limits: JsonLimits) -> None:
    with pytest.raises(BeyondLimits, match="deep"):
        parse_json(text.encode(), replace(limits, lists=10**6))


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a': 1}", "1 2", "[" + "1" * 5000 + "]"])
def test_what_is_no_json_is_an_error_of_another_kind(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_json(text.encode(), SMALL)
    assert not isinstance(raised.value, BeyondLimits)


def test_toml_within_limits_is_a_table() -> None:
    text = '\ufeff# ....................................... \na.b.c = "[[[[[[[[[[[[[[[[[[[[["\n[d]\ne = [[1], [2]]\n'
    assert parse_toml(text.encode()) == {"a": {"b": {"c": "[" * 21}}, "d": {"e": [[1], [2]]}}
    texts = 'labels = ["a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t", \'[[[[[[[[[[[[[[[[[[[[[\', """{{{{{{{{{{{{{{{{{{"""]'
    assert len(parse_toml(texts.encode())["labels"]) == 3


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 17 + "]" * 17,
        "a = " + "[" * 50_000 + "]" * 50_000,
        "a = " + "{b = " * 17 + "1" + "}" * 17,
        ".".join("a" * 18) + " = 1",
        "[" + " . ".join("a" * 10_000) + "]",
        "a = {" + ".".join("b" * 5_000) + " = 1}",
    ],
)
def test_deep_toml_is_refused(text: str) -> None:
    with pytest.raises(BeyondLimits, match="more than 16 deep"):
        parse_toml(text.encode())


def test_long_toml_is_refused() -> None:
    with pytest.raises(BeyondLimits, match="bytes of TOML"):
        parse_toml(b"#" * (MOST_TOML + 1))


@pytest.mark.parametrize("text", [b"a = ", b"a = 1\na = 2", b"\xff"])
def test_what_is_no_toml_is_an_error_of_another_kind(text: bytes) -> None:
    with pytest.raises(ValueError) as raised:
        parse_toml(text)
    assert not isinstance(raised.value, BeyondLimits)
