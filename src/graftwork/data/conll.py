"""Sentences in columns, as in the CoNLL shared tasks: a word a line, a blank line after each sentence; also as `.gz`.

Columns are separated by tabs where the first word's line has one, by spaces otherwise. In a `.conllu` file they are
the ten of Universal Dependencies (Nivre et al. 2020, arXiv:2004.10643), and the lines of multi-word tokens and of empty
nodes are left out, as they are no words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from graftwork.data.lines import read_lines
from graftwork.errors import DataError, clip

SUFFIXES = (".conll", ".conllu", ".bio", ".iob")
WORDS, TAGS = "tokens", "tags"  # what the first and the last column are called; those between are 2, 3, …
UNIVERSAL = ("id", WORDS, "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT = "-DOCSTART-"
_SPACES = " \t\r\n"
_NO_WORD = re.compile(r"\d+[-.]\d+")  # an id such as 3-4 or 8.1
_COMMENT = re.compile(r"#\s*(\S+\s*=|newdoc\b|newpar\b)")  # as in # text = …; a lone # is a word

Sentence = tuple[int, list[tuple[str, ...]]]  # number of the first line, the fields of each word


def header_of(path: Path) -> tuple[str, ...] | None:
    """The names of the columns: `tokens`, 2, 3, …, `tags`; None for a file without words."""
    if _universal(path):
        return UNIVERSAL
    first = next(_fields(path), None)
    if first is None:
        return None
    count = len(first[1])
    return (WORDS, *(str(column) for column in range(2, count)), TAGS)[: max(1, count)]


def columns_of(
    path: Path, header: Sequence[str], wanted: Sequence[str]
) -> Iterator[tuple[int, tuple[tuple[str, ...], ...]]]:
    """Of every sentence the number of its first line, and of each `wanted` column its fields.

    Raises `DataError` with file:line where a line has more or fewer fields than the file's first.
    """
    chosen = [header.index(name) for name in wanted]
    for line, words in sentences(path, len(header)):
        yield line, tuple(tuple(fields[column] for fields in words) for column in chosen)


def sentences(path: Path, width: int) -> Iterator[Sentence]:
    """The sentences, each word's `width` fields; those of documents' first lines and without words are left out."""
    begun = 0
    words: list[tuple[str, ...]] = []
    for number, fields in _fields(path, blanks=True):
        if not fields:
            if words:
                yield begun, words
            words = []
            continue
        if len(fields) != width or not all(fields):
            _refuse(path, number, fields, width)
        begun = begun if words else number
        words.append(tuple(fields))
    if words:
        yield begun, words


def _fields(path: Path, blanks: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of every line that holds a word; with `blanks` no fields where a sentence ends."""
    tabs: bool | None = None
    universal, at_start = _universal(path), True
    for number, line in read_lines(path):
        content = line.strip(_SPACES)
        if not content:
            at_start = True
            if blanks:
                yield number, []
            continue
        if content.startswith("#") and _is_comment(content, universal, tabs, at_start):
            continue
        tabs = "\t" in line.strip("\r\n ") if tabs is None else tabs
        fields = [field.strip(" ") for field in line.strip("\r\n").split("\t")] if tabs else re.split("[ \t]+", content)
        if fields[0] == DOCUMENT or (universal and _NO_WORD.fullmatch(fields[0])):
            continue
        at_start = False
        yield number, fields


def _is_comment(content: str, universal: bool, tabs: bool | None, at_start: bool) -> bool:
    """`#` may be a word: a line that begins with it is a comment only where it can be no word's."""
    if universal:
        return True
    if tabs:
        return "\t" not in content
    return at_start and bool(_COMMENT.match(content)) and "\t" not in content


def _refuse(path: Path, number: int, fields: Sequence[str], width: int) -> None:
    empty = len(fields) == width
    raise DataError(
        "a field is empty" if empty else f"the line has too {'many' if len(fields) > width else 'few'} fields",
        where=f"{path}:{number}",
        got=f"{len(fields)} field{'' if len(fields) == 1 else 's'}, {clip(' | '.join(fields))}",
        expected=f"{width} fields, as in the first line with a word",
        do="fill it in" if empty else "mend the line; columns are separated by tabs if the first line's are",
    )


def _universal(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".conllu")
