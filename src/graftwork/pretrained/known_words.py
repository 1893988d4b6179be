"""Known words: segmentation of a text into words of a vocabulary.

Vocabularies cut texts their own ways: one has "don't", another "do" and "n't", a third "don", "'" and "t".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graftwork.targets.words import APART, apart

Way = tuple[int, int, int, int | None]  # known characters, minus words, next piece, row or None
LONGEST = 8  # pieces of one word: "state-of-the-art" has seven
LONGEST_UNSPACED = 16  # if letters of unspaced scripts are pieces: a Thai word may have thirteen
CURLY = "\N{RIGHT SINGLE QUOTATION MARK}"
REMEMBERED = 1_000_000  # maximum cached chunks of text


@dataclass(frozen=True)
class KnownText:
    """The known words of a text, and the number of unknown pieces."""

    rows: list[int]  # of the known words, in order
    unknown: int  # unknown pieces with a letter or digit; in unspaced scripts, letters


@dataclass
class KnownWords:
    """A segmenter by vocabulary: between spaces, the fewest known words that cover the most characters."""

    vocabulary: Mapping[str, int]  # word -> row
    unspaced_apart: bool = True  # True: look for words within runs of an unspaced script (Chinese, Thai, …)
    _chunks: dict[str, KnownText] = field(default_factory=dict)  # cache of chunks, since words repeat

    def read(self, text: str) -> KnownText:
        """Segment a text into known words."""
        found = [self._chunk(chunk) for chunk in unicodedata.normalize("NFC", text).split()]
        return KnownText([row for one in found for row in one.rows], sum(one.unknown for one in found))

    def _chunk(self, chunk: str) -> KnownText:
        if chunk not in self._chunks:
            if len(self._chunks) == REMEMBERED:
                self._chunks.clear()
            whole = find(self.vocabulary, chunk)
            self._chunks[chunk] = self._within(chunk) if whole is None else KnownText([whole], 0)
        return self._chunks[chunk]

    def _within(self, chunk: str) -> KnownText:
        cut = pieces(chunk)
        if self.unspaced_apart and APART.search(chunk):
            return self._cover(apart(cut), LONGEST_UNSPACED)
        return self._cover(cut, LONGEST)

    def _cover(self, cut: Sequence[str], longest: int) -> KnownText:
        """Find the best segmentation of the pieces by dynamic programming from the last one to the first."""
        ways: list[Way] = [(0, 0, 0, None)] * (len(cut) + 1)
        for start in reversed(range(len(cut))):
            known, words, _, _ = ways[start + 1]
            best: Way = (known, words, start + 1, None)
            for end in range(start + 1, min(len(cut), start + longest) + 1):
                word = "".join(cut[start:end])
                row = find(self.vocabulary, word)
                if row is not None:
                    way = (ways[end][0] + len(word), ways[end][1] - 1, end, row)
                    best = max(best, way, key=lambda way: way[:2])
            ways[start] = best
        rows, unknown, place = [], 0, 0
        while place < len(cut):
            _, _, following, row = ways[place]
            if row is not None:
                rows.append(row)
            else:
                unknown += sum(any(map(str.isalnum, part)) for part in apart([cut[place]]))
            place = following
        return KnownText(rows, unknown)


def find(vocabulary: Mapping[str, int], word: str) -> int | None:
    """Return the row of a word as written, else in lower case, else with straight apostrophes, else None."""
    found = vocabulary.get(word)
    if found is None:
        found = vocabulary.get(word.lower())
    if found is None and CURLY in word:
        found = find(vocabulary, word.replace(CURLY, "'"))
    return found


def pieces(chunk: str) -> list[str]:
    """Cut a chunk into pieces: runs of letters and digits, single marks, and the n of "n't" by itself."""
    cut = [""]
    for char in chunk:
        if unicodedata.category(char)[0] in "PS":
            cut += [char, ""]
        else:
            cut[-1] += char
    cut = [piece for piece in cut if piece]
    parts: list[str] = []
    for place, piece in enumerate(cut):
        follow = "".join(cut[place + 1 : place + 3]).lower()
        negates = follow in ("'t", f"{CURLY}t") and len(piece) > 1 and piece[-1] in "nN"
        parts += [piece[:-1], piece[-1]] if negates else [piece]
    return parts
