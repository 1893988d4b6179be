"""Words of a passage and the characters that they cover."""

from __future__ import annotations

import json
import pickle

from graftwork.targets.passages import Gold, Golds, Passage

PASSAGE = Passage.of("The U.S. won 3.5 medals (in 1970s Rome).")


def test_words_and_their_places() -> None:
    words = "The U . S . won 3.5 medals ( in 1970s Rome ) ."
    assert list(PASSAGE.words) == words.split()
    assert PASSAGE.between(1, 4) == "U.S." and PASSAGE.between(9, 11) == "in 1970s Rome"
    assert [PASSAGE.text[a:b] for a, b in zip(PASSAGE.starts, PASSAGE.ends, strict=True)] == words.split()


def test_borders_inside_a_word_go_outward() -> None:
    def covered(text: str) -> str:
        start = PASSAGE.text.index(text)
        return PASSAGE.between(*PASSAGE.words_at(start, start + len(text)))

    assert covered("U.S.") == "U.S." and covered("won 3.5") == "won 3.5"
    assert covered("1970") == "1970s" and covered("edals (in 19") == "medals (in 1970s"
    assert covered(" won ") == "won" and covered("5") == "3.5"


def test_golds_are_written_as_a_tuple_and_know_their_passage() -> None:
    golds = Golds([Gold("Rome", 34), Gold("in 1970s Rome", 25)], PASSAGE)
    assert golds.texts == ["Rome", "in 1970s Rome"] and golds.passage is PASSAGE
    assert json.loads(json.dumps(golds)) == [["Rome", 34], ["in 1970s Rome", 25]]
    assert golds == Golds(golds, Passage.of("x")) and len({golds, Golds([], PASSAGE)}) == 2


def test_an_answer_within_a_stretch_of_an_unspaced_script_is_found_alone() -> None:
    passage = Passage.of("爱因斯坦1879年生于德国乌尔姆，后来移居美国。")
    for answer in ("1879年", "德国乌尔姆", "美国"):
        start = passage.text.index(answer)
        assert passage.between(*passage.words_at(start, start + len(answer))) == answer


def test_golds_are_pickled_with_their_passage() -> None:
    golds = Golds([Gold("Rome", 34)], PASSAGE)
    again, other = pickle.loads(pickle.dumps([golds, Golds([], PASSAGE)]))
    assert again == golds and isinstance(again, Golds) and again.passage.text == PASSAGE.text
    assert again.passage is other.passage
