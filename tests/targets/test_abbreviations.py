"""Definitions of abbreviations, on the cases that the paper tells of."""

from __future__ import annotations

import pytest

from graftwork.targets.abbreviations import best_long_form, definitions, is_short_form

FOUND = [
    ("It binds heat shock transcription factor (HSF) here.", "HSF", "heat shock transcription factor"),
    ("We asked the United Methodist Church (UMC).", "UMC", "United Methodist Church"),
    ("polymerase chain reaction (PCR; see Methods)", "PCR", "polymerase chain reaction"),
    ("gamma interferon (IFN-g) was given", "IFN-g", None),  # the g of interferon is missing: no long form
    ("The PCR (polymerase chain reaction) was run.", "PCR", "polymerase chain reaction"),
    ("alpha. Beta gamma delta (ABGD)", "ABGD", None),  # not across sentences
    ("Patients (n = 12) were seen.", "n = 12", None),
    ("a small study (in 2001) of it", "in 2001", None),
    ("estrogen receptors (ERs)", "ERs", "estrogen receptors"),
    ("National Institutes of Health [NIH] funds", "NIH", "National Institutes of Health"),
    ("magnetic resonance (MR) imaging", "MR", "magnetic resonance"),
    ("it (body mass index (BMI)) is", "BMI", "body mass index"),
    ("very (V) much", "V", None),  # one letter is too short
]


@pytest.mark.parametrize(("text", "short", "long"), FOUND)
def test_definitions(text: str, short: str, long: str | None) -> None:
    found = {one.short: one.long for one in definitions(text)}
    assert found.get(short) == long
    for one in definitions(text):
        assert text[one.start : one.end] == one.long


def test_the_first_letter_begins_a_word_and_the_others_need_not() -> None:
    assert best_long_form("HSF", "the heat shock transcription factor") == 4
    assert best_long_form("TTF-1", "Thyroid transcription factor 1") == 8, "the shortest: both T are in one word"
    assert best_long_form("AB", "xab") is None
    assert best_long_form("ab", "a cab") == 0


def test_long_forms_lie_within_a_few_words() -> None:
    far = "cells one two three four five six seven (CT) here"
    assert definitions(far) == [], "CT may have four words"
    assert [one.long for one in definitions("cells of one type (CT)")] == ["cells of one type"]


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("HSF", True),
        ("7TM", True),
        ("IFN gamma", True),
        ("a b c", False),
        ("12", False),
        ("(x", False),
        ("A" * 11, False),
    ],
)
def test_short_forms(text: str, yes: bool) -> None:
    assert is_short_form(text) == yes


def test_several_in_one_text() -> None:
    text = "The Lunar Module (LM) and the command module (CM).\nA service module (SM) too."
    assert [(one.short, one.long) for one in definitions(text)] == [
        ("LM", "Lunar Module"),
        ("CM", "command module"),
        ("SM", "service module"),
    ]
