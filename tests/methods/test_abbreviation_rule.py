"""The rule for abbreviations: which questions it knows, and what it answers."""

from __future__ import annotations

import pytest

from graftwork.kinds.span import Span
from graftwork.methods.abbreviation_rule import Rule, asked_for, stands_for
from graftwork.targets.ngrams import AnswerWindow
from graftwork.targets.passages import Passage, question_of
from graftwork.testing import tiny_dataset

TEXT = "The Lunar Module (LM) met the command module (CM). The rss (Really simple syndication) ran."


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("What does LM stand for?", "LM"),
        ('What does "TGIF" stand for?', "TGIF"),
        ("What does LGM stands for?", "LGM"),
        ("What does the acronym LEM stand for?", "LEM"),
        ("What did the LMP acronym stand for regarding the launch?", "LMP"),
        ("what does vBNS stand for", "vBNS"),
        ("What does PMR + Cog stand for?", "PMR + Cog"),
        ("What do the letters RSS stand for?", "RSS"),
        ("Who stands for the Romans?", None),
        ("When was it founded?", None),
    ],
)
def test_questions(question: str, short: str | None) -> None:
    assert asked_for(question) == short


def test_the_short_form_as_it_stands_before_others() -> None:
    def long(short: str, text: str = TEXT) -> str | None:
        place = stands_for(short, text)
        return text[slice(*place)] if place else None

    assert long("LM") == "Lunar Module" and long("cm") == "command module" and long("LMs") == "Lunar Module"
    assert long("RSS") == "Really simple syndication" and long("XY") is None
    both = "low mass (lm) and Lunar Module (LM)"
    assert long("LM", both) == "Lunar Module" and long("Lm", both) == "low mass"


def test_other_questions_fall_to_the_window() -> None:
    rule, passage = Rule(AnswerWindow("behind", 2), 30, {}), Passage.of(TEXT)
    asked = [question_of(q, q, passage) for q in ("What does CM stand for?", "Who met the command module?")]
    answers = Span().decode(rule.logits(asked), tiny_dataset("span").task, asked)
    assert [answer["answer"] for answer in answers] == ["command module", "CM"]
    assert answers[0]["probability"] > 0.9


def test_a_plural_has_one_s_more() -> None:
    text = "cascading style sheets (CSS)"
    assert stands_for("C", text) is None
    assert stands_for("css", text) == stands_for("CSSs", text) == (0, 22)
