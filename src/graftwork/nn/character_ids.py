"""ELMo's encoding of words as bytes (Peters et al. 2018): 50 symbols each, of 262, with AllenNLP's ids."""

from __future__ import annotations

WORD_LENGTH = 50  # symbols of a word, marks included; longer words are cut
SYMBOLS = 262  # 0 pads rows of words, 1 … 256 are bytes, the rest are the marks below
BYTES_FROM = 1
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, AFTER_WORD = 257, 258, 259, 260, 261


def character_ids(word: str) -> list[int]:
    """Return the 50 symbols of a word: a start mark, its UTF-8 bytes, an end mark, and filler."""
    return spelled_ids(letters_of(word))


def letters_of(word: str) -> bytes:
    """Return the UTF-8 bytes of a word, cut to the length that is encoded."""
    return word.encode("utf-8", "ignore")[: WORD_LENGTH - 2]


def spelled_ids(letters: bytes) -> list[int]:
    """Return the 50 symbols of a word with these bytes."""
    return _marked([byte + BYTES_FROM for byte in letters])


def sentence_start_ids() -> list[int]:
    """Return the 50 symbols of the sentence-start token."""
    return _marked([SENTENCE_START])


def sentence_end_ids() -> list[int]:
    """Return the 50 symbols of the sentence-end token."""
    return _marked([SENTENCE_END])


def _marked(symbols: list[int]) -> list[int]:
    marked = [WORD_START, *symbols, WORD_END]
    return marked + [AFTER_WORD] * (WORD_LENGTH - len(marked))
