"""Where written answers stand in a passage, the parts of a long one, and the logits of written answers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.registry import kinds
from graftwork.targets.answer_scores import words_f1
from graftwork.targets.passages import Passage, question_of
from graftwork.targets.written_spans import ALIKE, FEWEST, likely_spans, most_alike, occurrences, parts_of, span_of

TEXT = "In Zürich the Łódź–Åbo line (an “old” one) met U.S. crews; in Œuvry THE LINE ended, 1,000 km off."
PASSAGE = Passage.of(TEXT)


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("Zürich", ["Zürich"]),
        ("Łódź–Åbo line", ["Łódź–Åbo line"]),
        ("  Œuvry ", ["Œuvry"]),
        ("œuvry", ["Œuvry"]),
        ("line", ["line"]),  # as it stands, before LINE
        ("Line", ["line", "LINE"]),
        ("the us crews", ["U.S. crews"]),
        ("1000 KM", ["1,000 km"]),
        ("met the U.S.", ["met U.S"]),
        ("line an “old” one", ["line (an “old” one"]),  # an article between is left out, on both sides
        ("OLD", ["old"]),  # the quotation marks are part of the normalised word
        ("rew", ["rew"]),  # inside a word, where nothing else is
        ("the", ["the"]),
        ("Geneva", []),
        ("", []),
        (" ?! ", []),
    ],
)
def test_a_text_is_found_where_it_stands(written: str, stands: list[str]) -> None:
    assert [TEXT[start:end] for start, end in occurrences(written, PASSAGE)] == stands


def test_letters_that_become_two_in_lower_case_do_not_move_what_follows() -> None:
    passage = Passage.of("İstanbul İzmir: ROME won.")
    assert [passage.text[start:end] for start, end in occurrences("rome", passage)] == ["ROME"]


def test_whole_words_go_before_a_part_of_one_and_words_of_unspaced_scripts_are_letters() -> None:
    passage = Passage.of("Japan is an island")
    assert occurrences("an", passage) == [(9, 11)]
    passage = Passage.of("東京は日本の首都")
    assert span_of("日本", passage, "") == ((3, 4), 1.0)


def test_of_several_places_the_one_nearest_to_the_words_of_the_question_is_taken() -> None:
    passage = Passage.of("Rome fell in 410 and long after that Paris, a city of the north, in 410 or so.")
    first, second = (passage.words.index("410"), len(passage.words) - 4)
    assert passage.words[second] == "410"
    assert span_of("410", passage, "When did Paris fall, the city of the north?") == ((second, second), 1.0)
    assert span_of("410", passage, "When did Rome fall?") == ((first, first), 1.0)
    assert span_of("410", passage, "Quando?") == ((first, first), 1.0), "of equals the first"


def test_what_is_most_alike_has_the_highest_f1_of_all_stretches() -> None:
    random = np.random.default_rng(0)
    for size in (1, 2, 3, 4, 5, 6) * 20:
        words = random.choice(list("abcdefgh"), 20).tolist()
        passage, text = Passage.of(" ".join(words)), " ".join(random.choice(list("bcdefghxyz"), size).tolist())
        tried = (" ".join(words[first:end]) for first in range(20) for end in range(first + 1, 21))
        best = max(words_f1([text], one, False) for one in tried)
        places, likeness = most_alike(text, passage)
        assert likeness == pytest.approx(best if best >= ALIKE else 0.0) and bool(places) == (best >= ALIKE)
        assert all(words_f1([text], passage.text[start:end], False) == likeness for start, end in places)


def test_a_text_that_stands_nowhere_is_taken_for_what_is_most_alike() -> None:
    passage = Passage.of("It was (in 1970s Zürich) the 43-yard field goal.")
    found = span_of("a 44-yard field goal!", passage, "what?")
    assert found is not None and passage.between(*found[0]) == "field goal" and found[1] == pytest.approx(0.8)
    assert span_of("violet", passage, "what?") is None and span_of("the", Passage.of("It was."), "what?") is None


@pytest.mark.parametrize("room", [16, 30, 99])
def test_parts_cover_a_passage_overlap_and_fit(room: int) -> None:
    example = question_of("q", "which?", Passage.of(" ".join(f"w{number}" for number in range(100))))
    parts = parts_of(example, lambda part: len(part.inputs["words"]) <= room)
    firsts = [first for first, _ in parts]
    ends = [first + len(part.inputs["words"]) for first, part in parts]
    assert firsts[0] == 0 and ends[-1] == 100 and ends[:-1] == [first + room for first in firsts[:-1]]
    assert firsts[1:] == [end - room // 4 for end in ends[:-1]]
    for first, part in parts:
        assert part.source == " ".join(part.inputs["words"]) and part.inputs["words"][0] == f"w{first}"
        assert part.inputs["question"] == "which?" and part.id == "q"


def test_where_a_question_leaves_room_for_next_to_nothing_the_passage_is_whole() -> None:
    example = question_of("q", "which?", Passage.of(" ".join(f"w{number}" for number in range(100))))
    assert parts_of(example, lambda part: len(part.inputs["words"]) < FEWEST) == [(0, example)]


def answers_of(
    spans: list[tuple[int, int] | None], chances: list[float], silent: list[float] | None = None
) -> list[dict[str, Any]]:
    kind, task = kinds.get("span"), Task("t", Path(), kind="span").resolved(unanswerable=silent is not None)
    examples = [question_of("q", "where?", PASSAGE)] * len(spans)
    logits = likely_spans(spans, chances, silent, [len(PASSAGE.words)] * len(spans), kind.longest)
    return kind.decode(logits, task, examples)


def test_the_probability_of_an_answer_is_that_of_its_text() -> None:
    (sure, unsure) = answers_of([(1, 1), (3, 5)], [math.log(0.9), math.log(0.2)])
    assert (sure["answer"], sure["start"], sure["end"]) == ("Zürich", 3, 9)
    assert sure["probability"] == pytest.approx(0.9) and unsure["probability"] == pytest.approx(0.2)
    (least,) = answers_of([(3, 5)], [-80.0])
    assert least["answer"] == unsure["answer"] == "Łódź–Åbo" and 0 < least["probability"] < 0.02


def test_the_likelier_of_an_answer_and_none_is_given() -> None:
    told = answers_of([(1, 1), (1, 1), None, (1, 1)], [-0.1, -2.0, -0.1, -0.1], [-9.0, -0.3, math.log(0.6), -0.2])
    assert [one["answer"] for one in told] == ["Zürich", "", "", "Zürich"]
    assert told[0]["probability"] == pytest.approx(math.exp(-0.1), abs=0.03)
    assert told[2]["probability"] == pytest.approx(0.6)


@pytest.mark.parametrize("none", [-0.01, -3.0, -60.0])
def test_where_a_text_stands_nowhere_no_word_is_likely_whatever_the_threshold(none: float) -> None:
    (told,) = answers_of([None], [-0.1], [none])
    assert told["answer"] == "" and told["probability"] == pytest.approx(math.exp(none))
    logits = likely_spans([None], [-0.1], [none], [5], 30)
    logits.flat[0] -= 4.0  # a threshold that prefers answers
    kind, task = kinds.get("span"), Task("t", Path(), kind="span").resolved(unanswerable=True)
    assert kind.predictions(logits, task).flat[0].tolist() == [1, 1, 0]
    (forced,) = answers_of([None], [-0.1])
    assert forced["answer"] and forced["probability"] < 1e-3


def test_answers_are_cut_to_the_longest_and_none_are_asked_of_no_examples() -> None:
    logits = likely_spans([(2, 40), (0, 0)], [-0.5, -0.5], None, [50, 1], 30)
    found = kinds.get("span").predictions(logits, Task("t", Path(), kind="span"))
    assert np.flatnonzero(found.flat[:51, 0]).tolist() == [3] and np.flatnonzero(found.flat[:51, 1]).tolist() == [32]
    assert np.isfinite(logits.flat).all() and logits.counts.tolist() == [51, 2]
    assert len(likely_spans([], [], None, [], 30)) == 0


def test_words_without_their_text_have_blanks_between() -> None:
    example = Example("q", {"question": "which?", "words": ("U", ".", "S", ".")})
    assert kinds.get("span").found(["U ."], [example]) == [((0, 1), 1.0)]
