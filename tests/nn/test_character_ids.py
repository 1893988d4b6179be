"""Words as ELMo's symbols, against AllenNLP's numbers written out."""

from __future__ import annotations

from graftwork.nn.character_ids import SYMBOLS, WORD_LENGTH, character_ids, sentence_end_ids, sentence_start_ids


def test_a_word() -> None:
    ids = character_ids("né")
    assert ids[:5] == [259, ord("n") + 1, 0xC3 + 1, 0xA9 + 1, 260]
    assert ids[5:] == [261] * 45


def test_a_long_word_is_cut_and_an_empty_one_is_marks() -> None:
    assert character_ids("x" * 80) == [259, *[ord("x") + 1] * 48, 260]
    assert character_ids("")[:3] == [259, 260, 261]


def test_the_ends_of_a_sentence() -> None:
    assert sentence_start_ids()[:4] == [259, 257, 260, 261]
    assert sentence_end_ids()[:4] == [259, 258, 260, 261]
    for ids in (sentence_start_ids(), sentence_end_ids(), character_ids("a")):
        assert len(ids) == WORD_LENGTH
        assert 0 < max(ids) < SYMBOLS
