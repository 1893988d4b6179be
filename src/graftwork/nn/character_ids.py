"""Words as bytes, as ELMo reads them (Peters et al. 2018): 50 symbols each, of 262. The numbers are AllenNLP's."""

from __future__ import annotations

WORD_LENGTH = 50  # symbols of a word, marks included; what is longer is cut
SYMBOLS = 262  # 0 pads rows of words; 1 … 256 are bytes, and the rest the marks below
BYTES_FROM = 1
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, AFTER_WORD = 257, 258, 259, 260, 261


def character_ids(word: str) -> list[int]:
    """The 50 symbols of a word: a mark, its bytes in UTF-8, a mark, and what fills up."""
    return spelled_ids(letters_of(word))


def letters_of(word: str) -> bytes:
    """All of a word that is read."""
    return word.encode("utf-8", "ignore")[: WORD_LENGTH - 2]


def spelled_ids(letters: bytes) -> list[int]:
    """The 50 symbols of a word of these letters."""
    return _marked([byte + BYTES_FROM for byte in letters])


def sentence_start_ids() -> list[int]:
    """The 50 symbols of what stands before the first word."""
    return _marked([SENTENCE_START])


def sentence_end_ids() -> list[int]:
    """The 50 symbols of what stands after the last word."""
    return _marked([SENTENCE_END])


def _marked(symbols: list[int]) -> list[int]:
    marked = [WORD_START, *symbols, WORD_END]
    return marked + [AFTER_WORD] * (WORD_LENGTH - len(marked))
