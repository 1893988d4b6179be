"""Schemes of tags: which tags are read as spans, in whatever spelling, and the spans that seqeval finds in them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, IOE2, Entities

from graftwork.targets.tag_schemes import SAME, SCHEMES, TagScheme, scheme_of
from graftwork.targets.tag_spans import mend_tags

Found = list[tuple[str, int, int]]


def spans(tags: Sequence[str]) -> Found:
    """Spans of sound B-TYPE, I-TYPE and O: type, first word, word behind."""
    assert list(mend_tags(tags)) == list(tags)
    starts = [place for place, tag in enumerate(tags) if tag.startswith("B-")]
    ends = [next((at for at in range(start + 1, len(tags)) if tags[at][0] != "I"), len(tags)) for start in starts]
    return [(tags[start][2:], start, end) for start, end in zip(starts, ends, strict=True)]


def written(scheme: str, drawn: Found, words: int) -> list[str]:
    """Tags of these spans, as the scheme writes them."""
    tags = ["O"] * words
    for at, (kind, start, end) in enumerate(drawn):
        inner = {"BMES": "M", "BMEW": "M"}.get(scheme, "I")
        letters = [inner] * (end - start)
        before = at > 0 and drawn[at - 1][0] == kind and drawn[at - 1][2] == start
        after = at + 1 < len(drawn) and drawn[at + 1][0] == kind and drawn[at + 1][1] == end
        if scheme not in ("IOB1", "IOE1", "IOE2") or (scheme == "IOB1" and before):
            letters[0] = "B"
        if scheme in ("IOE2", "BIOES", "BMES", "BMEW", "BILOU") or (scheme == "IOE1" and after):
            letters[-1] = "L" if scheme == "BILOU" else "E"
        if end - start == 1 and scheme in ("BIOES", "BMES", "BMEW", "BILOU"):
            letters = ["U" if scheme == "BILOU" else "W" if scheme == "BMEW" else "S"]
        tags[start:end] = [f"{letter}-{kind}" for letter in letters]
    return tags


def draw(random: np.random.Generator, words: int = 40) -> Found:
    drawn, at = [], 0
    while at < words - 4:
        at += int(random.integers(0, 3))
        size = int(random.integers(1, 4))
        drawn.append((str(random.choice(["X", "Y-Z"])), at, at + size))
        at += size
    return drawn


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "BIOES", "BILOU", "BMES", "BMEW"])
@pytest.mark.parametrize("spelling", ["{0}-{1}", "{0}_{1}", "{1}-{0}", "{1}_{0}"])
def test_sound_tags_of_every_scheme(scheme: str, spelling: str) -> None:
    random = np.random.default_rng(3)
    drawn = [draw(random) for _ in range(20)]
    sentences = [written(scheme, spans, 40) for spans in drawn]
    own = {"IOB1": IOB1, "IOB2": IOB2, "IOE2": IOE2, "BIOES": IOBES, "BILOU": BILOU}
    if scheme in own:
        found = Entities(sentences, own[scheme]).entities
        assert [[(one.tag, one.start, one.end) for one in sentence] for sentence in found] == drawn
    if scheme == "IOE1":  # seqeval's own class of it passes over a span of one word before another
        assert [[(kind, start, end + 1) for kind, start, end in get_entities(tags)] for tags in sentences] == drawn
    spelt = [["O" if t == "O" else spelling.format(*t.split("-", 1)) for t in tags] for tags in sentences]
    read = scheme_of({tag for tags in spelt for tag in tags})
    if read is None:
        assert scheme in ("IOB1", "IOB2") and spelling == "{0}-{1}"
        assert [spans(mend_tags(tags)) for tags in spelt] == drawn
        return
    assert read.name == {"IOB1": "IOB", "IOB2": "IOB", "IOE1": "IOE", "IOE2": "IOE"}.get(scheme, scheme)
    for tags, expected in zip(spelt, drawn, strict=True):
        whole, strays = read.read(tags)
        assert spans(whole) == expected
        assert bool(strays) == (scheme == "IOB1")


def test_unsound_tags_are_read_as_by_default_in_seqeval() -> None:
    random = np.random.default_rng(5)
    names = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "XY")]
    scheme = scheme_of(names)
    assert scheme is not None and scheme.name == "BIOES"
    strays = 0
    for _ in range(200):
        tags = random.choice(names, 12).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [(kind, start, end + 1) for kind, start, end in get_entities(tags)]
        whole, odd = scheme.read(tags)
        assert spans(whole) == expected
        assert all(tags[place][0] in "IE" and whole[place][0] == "B" for place in odd)
        strays += len(odd)
    assert strays > 100


def test_tags_without_types_are_spans_of_one_type() -> None:
    scheme = scheme_of(["B", "I", "O"])
    assert scheme is not None
    assert scheme.read(["B", "I", "O", "I", "B"]) == (("B-span", "I-span", "O", "B-span", "B-span"), [3])
    assert get_entities(["B", "I", "O", "I", "B"]) == [("_", 0, 1), ("_", 3, 3), ("_", 4, 4)]
    assert scheme.description == (
        "IOB tags without types, read as spans and written with B- and I- ('B' as 'B-span', 'I' as 'I-span')"
    )


@pytest.mark.parametrize(
    ("tags", "name", "pairs"),
    [
        ("B I O", "IOB", "B=B-span I=I-span O=O"),
        ("B O", "IOB", "B=B-span"),
        ("I O", "IOB", "I=I-span"),
        ("b i o", "IOB", "b=B-span i=I-span o=O"),
        ("B I", "IOB", "B=B-span"),
        ("B I O E S", "BIOES", "E=I-span S=B-span"),
        ("B I L U O", "BILOU", "L=I-span U=B-span"),
        ("B M E S", "BMES", "M=I-span E=I-span S=B-span"),
        ("B- I- O E- S-", "BIOES", "S-=B-span"),
        ("PER-B PER-I O", "IOB", "PER-B=B-PER PER-I=I-PER"),
        ("LOC-PER-B O", "IOB", "LOC-PER-B=B-LOC-PER"),
        ("B_date_time I_date_time O", "IOB", "I_date_time=I-date_time"),
        ("B:PER I:PER O", "IOB", "B:PER=B-PER"),
        ("b-per i-per o", "IOB", "b-per=B-per i-per=I-per o=O"),
        ("b-PER e-PER o", "BIOES", "e-PER=I-PER"),
        ("b-per I-per O o", "IOB", "b-per=B-per I-per=I-per O=O o=O"),
        ("B-PER I-PER o", "IOB", "B-PER=B-PER o=O"),
        ("S-PER O", "BIOES", "S-PER=B-PER"),
        ("I-PER E-PER O", "IOE", "E-PER=I-PER"),
        ("I-PER B-PER E-PER S-PER O", "BIOES", "B-PER=B-PER"),
    ],
)
def test_spellings(tags: str, name: str, pairs: str) -> None:
    scheme = scheme_of(tags.split())
    assert isinstance(scheme, TagScheme) and scheme.name == name
    for pair in pairs.split():
        tag, _, expected = pair.partition("=")
        assert scheme.written(tag) == expected


@pytest.mark.parametrize(
    "tags",
    [
        "B-PER I-PER O",  # nothing to convert
        "NOUN VERB O",
        "PER LOC O",
        "B I O X",
        "S O",  # two names as likely as spans
        "E S",
        "E-PER S-PER",
        "B-PER I-PER O E-PER L-PER",  # of two schemes
        "B_PER I_PER O MISC",
        "B-PER I O",
        "",
    ],
)
def test_what_is_left_as_it_is(tags: str) -> None:
    assert scheme_of(tags.split()) is None


def test_letters_that_say_the_same() -> None:
    assert {SAME.get(letter, letter) for own in SCHEMES.values() for letter in own} == set("BIES")
