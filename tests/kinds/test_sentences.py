"""What a person reads of an answer, by its kind."""

from __future__ import annotations

from typing import Any

import pytest

from graftwork.registry import kinds

CHANCES = {"refund": 0.05, "order": 0.91, "other": 0.03, "spam": 0.01}
SPAN = {"label": "Disease", "text": "muscular dystrophy", "start": 12, "end": 30, "probability": 0.981}
FOUND = {"answer": "in October 1973", "start": 29, "end": 44, "probability": 0.874}
NONE = {"answer": "", "start": None, "end": None, "probability": 0.1}


@pytest.mark.parametrize(
    ("kind", "answer", "sentence"),
    [
        ("classification", {"label": "order", "probabilities": CHANCES},
         "order   (order 0.910, refund 0.050, other 0.030)"),
        ("multilabel", {"label": ["a", "b"], "probabilities": {"a": 0.9, "b": 0.6}}, "a | b   (a 0.900, b 0.600)"),
        ("multilabel", {"label": [], "probabilities": {"a": 0.4, "b": 0.3}}, "(none)   (a 0.400, b 0.300)"),
        ("regression", {"value": 2.0 / 3}, "0.6667"),
        ("choice", {"choice": "it broke", "index": 1, "probabilities": [0.25, 0.75]}, "it broke   (2 of 2, 0.750)"),
        ("ranking", {"ranking": [{"choice": "b", "index": 1, "score": 2.5}, {"choice": "a", "index": 0, "score": -1}]},
         "  2.5000  b\n -1.0000  a"),
        ("tagging", {"spans": [SPAN, SPAN]}, "   ".join(["Disease: muscular dystrophy (12-30, 0.981)"] * 2)),
        ("tagging", {"spans": []}, "(none)"),
        ("tagging", {"tags": ["DET", "NOUN"], "words": ["the", "card"], "probabilities": [1, 1]}, "the/DET card/NOUN"),
        ("span", {**FOUND, "n_best": [FOUND, NONE]}, "in October 1973 (29-44, 0.874)   (no answer) (0.100)"),
    ],
)  # fmt: skip
def test_an_answer_in_words(kind: str, answer: dict[str, Any], sentence: str) -> None:
    assert kinds.get(kind).sentence(answer) == sentence
