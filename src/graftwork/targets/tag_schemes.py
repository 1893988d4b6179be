"""Schemes of tags that mark spans, and their reading as B-TYPE, I-TYPE and O (IOB2).

A letter tells the place of a word in its span: B begins it, I or M is inside, E or L ends it, and S, U or W is all of
it. The type is after the letter, before it, or nowhere. Spans are found as by the script of the CoNLL shared tasks
(Tjong Kim Sang & Buchholz 2000, arXiv:cs/0009008) and by default in seqeval (Nakayama 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from graftwork.targets.tag_spans import BEGIN, INSIDE, OUTSIDE, marks_spans

SCHEMES: Mapping[str, str] = {  # name -> letters besides O; the first with all letters of the tags applies
    "IOB": "BI", "IOE": "IE", "BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEW": "BMEW",
}  # fmt: skip
LETTERS = frozenset(chain.from_iterable(SCHEMES.values()))
SAME: Mapping[str, str] = {"M": "I", "L": "E", "U": "S", "W": "S"}  # letter -> its equivalent in BIOES
SEPARATORS = "-_:./"
ONE_TYPE = "span"  # the type of spans whose tags name none
MOST_SHOWN = 4
Part = tuple[str, str]  # letter and type of a tag; ("O", "") outside


@dataclass(frozen=True)
class TagScheme:
    """The scheme by which the tags of a data set mark spans."""

    name: str  # a key of `SCHEMES`
    parts: Mapping[str, Part]  # tag -> letter, as in BIOES, and type
    typed: bool = True  # False: the tags name no types

    @property
    def description(self) -> str:
        """The reading of the tags, for the data report."""
        changed = [tag for tag in self.parts if self.written(tag) != tag]
        pairs = ", ".join(f"{tag!r} as {self.written(tag)!r}" for tag in changed[:MOST_SHOWN])
        types = "" if self.typed else " without types"
        return f"{self.name} tags{types}, read as spans and written with B- and I- ({pairs})"

    def written(self, tag: str) -> str:
        """Return a tag in IOB2, as its letter alone says; an unknown tag unchanged."""
        letter, kind = self.parts.get(tag, ("", ""))
        return {"": tag, "O": OUTSIDE, "B": BEGIN + kind, "S": BEGIN + kind}.get(letter, INSIDE + kind)

    def read(self, tags: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
        """Return a sentence's tags as B-TYPE, I-TYPE and O, and the indices of tags I and E that continue no span.

        In IOE any span may begin with I or E, so that none of them counts.
        """
        whole, strays = [], list[int]()
        last, before = "O", ""
        for place, tag in enumerate(tags):
            letter, kind = self.parts.get(tag, ("O", ""))
            begins = letter in "BS" or last in "OES" or kind != before
            if begins and letter in "IE" and self.name != "IOE":
                strays.append(place)
            whole.append(OUTSIDE if letter == "O" else (BEGIN if begins else INSIDE) + kind)
            last, before = letter, kind
        return tuple(whole), strays


def scheme_of(tags: Collection[str]) -> TagScheme | None:
    """Return the scheme of these tags; None where they mark no spans, or are B-TYPE, I-TYPE and O already."""
    if marks_spans(tuple(tags)):
        return None
    marking = sorted(tag for tag in tags if tag.upper() != OUTSIDE)
    for cut in _CUTS if marking else ():
        found = [(letter.upper(), kind) for letter, kind in map(cut, marking)]
        if all(letter in LETTERS for letter, _ in found) and (name := _name(found, len(marking) < len(tags))):
            typed = all(kind for _, kind in found)
            parts = {
                tag: (SAME.get(letter, letter), kind if typed else ONE_TYPE)
                for tag, (letter, kind) in zip(marking, found, strict=True)
            }
            outside = dict.fromkeys((OUTSIDE, OUTSIDE.lower()), (OUTSIDE, ""))
            return TagScheme(name, parts | {tag: part for tag, part in outside.items() if tag in tags}, typed)
    return None


def _name(parts: Collection[Part], outside: bool) -> str | None:
    """Return the scheme that has these letters; None if there is none, or if the tags may just as well be names.

    Tags with types need a B or an I among their letters, or the tag O. Single letters need B or I beside O, and without
    O both B and one of I and E. Tags of which only some have a type are of no scheme.
    """
    letters = {letter for letter, _ in parts}
    if len({bool(kind) for _, kind in parts}) > 1:
        return None
    if all(kind for _, kind in parts):
        sure = outside or bool(letters & {"B", "I"})
    else:
        sure = bool(letters & {"B", "I"}) if outside else "B" in letters and bool(letters & {"I", "E"})
    return next((name for name, own in SCHEMES.items() if letters <= set(own)), None) if sure else None


def _before(separator: str) -> Callable[[str], Part]:
    """Return the function that cuts `B-TYPE` into letter and type."""

    def cut(tag: str) -> Part:
        letter, found, kind = tag.partition(separator)
        return (letter, kind) if found else ("", "")

    return cut


def _behind(separator: str) -> Callable[[str], Part]:
    """Return the function that cuts `TYPE-B` into letter and type."""

    def cut(tag: str) -> Part:
        kind, found, letter = tag.rpartition(separator)
        return (letter, kind) if found else ("", "")

    return cut


_CUTS: tuple[Callable[[str], Part], ...] = (lambda tag: (tag, ""), *map(_before, SEPARATORS), *map(_behind, SEPARATORS))
