"""Reader of CoNLL files: one word per line in columns, a blank line after each sentence; also as `.gz`.

Columns are separated by tabs if the first word's line has one, else by spaces. A `.conllu` file has the ten columns of
Universal Dependencies (Nivre et al. 2020, arXiv:2004.10643); its lines of multi-word tokens and of empty nodes are
skipped, as they are no words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from graftwork.data.readers.lines import TextLines, without_eol
from graftwork.data.readers.rejects import Bad, NumberedRow, RowSource
from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import plain_name
from graftwork.units import several

SUFFIXES = (".conll", ".conllu", ".bio", ".iob")
WORDS, TAGS = "tokens", "tags"  # names of the first and the last column; those between are 2, 3, …
UNIVERSAL = ("id", WORDS, "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT = "-DOCSTART-"
_SPACES = " \t\r\n"
_BLANKS = re.compile("[ \t]+")
_NO_WORD = re.compile(r"\d+[-.]\d+")  # an id such as 3-4 or 8.1
_COMMENT = re.compile(r"#\s*([^\s=]+\s*=|newdoc\b|newpar\b|(begin|end) document\b|id\s+\S{8})")  # a lone # is a word
_NO_TAG = re.compile(r"\s|://")  # in the last field, if the line is a comment and not a word


def opened(lines: TextLines) -> RowSource:
    """Return a row per sentence: the columns `tokens`, 2, 3, …, `tags` each hold that field of all words.

    Document markers are skipped. A sentence is bad where one of its lines has more or fewer fields than the file's
    first.
    """
    header: tuple[str, ...] | None = UNIVERSAL
    if not _universal(lines.path):
        first = next((fields for _, fields in _fields(lines) if fields), None)
        if isinstance(first, DataError):
            raise first
        header = None if first is None else (WORDS, *map(str, range(2, len(first))), TAGS)[: len(first)]
    return RowSource.named(header, lambda: _rows(lines, header or ()))


def _rows(lines: TextLines, header: Sequence[str]) -> Iterator[NumberedRow | Bad]:
    path, begun, last = lines.path, 0, 0
    words: list[list[str]] = []
    wrong: DataError | None = None
    for number, fields in chain(_fields(lines), [(0, [])]):
        if not fields:
            if wrong is not None:
                yield Bad(path, begun, wrong, last)
            elif words:
                yield begun, dict(zip(header, zip(*words, strict=True), strict=True)), 0, last
            words, begun, wrong = [], 0, None
            continue
        begun, last = begun or number, number
        if isinstance(fields, DataError):
            wrong = wrong or fields
        elif len(fields) != len(header) or not all(fields):
            wrong = wrong or _wrong_width(path, number, fields, len(header))
        else:
            words.append(fields)


def _fields(lines: TextLines) -> Iterator[tuple[int, list[str] | DataError]]:
    """Yield the number and fields, or error, of every line with a word; and no fields where a sentence ends."""
    universal, at_start = _universal(lines.path), True
    tabs, width = _shape(lines)
    for number, line in lines:
        if isinstance(line, DataError) or "\r" in without_eol(line):
            yield number, line if isinstance(line, DataError) else _old_line_ends(lines.path, number, line)
            continue
        content = line.strip(_SPACES)
        if not content:
            at_start = True
            yield number, []
            continue
        if content.startswith("#") and (universal or _is_comment(content, tabs, width, at_start)):
            continue
        fields = _split(line, content, tabs)
        if fields[0] == DOCUMENT:
            at_start = True
            yield number, []
            continue
        if universal and _NO_WORD.fullmatch(fields[0]):
            continue
        at_start = False
        yield number, fields


def _split(line: str, content: str, tabs: bool) -> list[str]:
    return [field.strip(" ") for field in line.strip("\r\n").split("\t")] if tabs else _BLANKS.split(content)


def _shape(lines: TextLines) -> tuple[bool, int]:
    """Return whether tabs separate the columns, and the number of columns, from the first line that surely has a word.

    A line that begins with `#` may be a comment, and is used only if there is no other line.
    """
    first: str | None = None
    for _, line in lines:
        content = line.strip(_SPACES) if isinstance(line, str) else ""
        if not isinstance(line, str) or not content or content.split()[0] == DOCUMENT:
            continue
        first = first or line
        if not content.startswith("#"):
            first = line
            break
    tabs = first is not None and "\t" in first.strip("\r\n ")
    return tabs, 0 if first is None else len(_split(first, first.strip(_SPACES), tabs))


def _is_comment(content: str, tabs: bool, width: int, at_start: bool) -> bool:
    """Return whether a line that begins with `#` is a comment: only if it can't be a word's, as `#` may be a word."""
    if tabs and "\t" not in content:
        return True
    if not at_start:
        return False
    fields = _split(content, content, tabs)
    if len(fields) > 1 and not fields[0].strip("#") and (len(fields) != width or _NO_TAG.search(fields[-1])):
        return True
    return bool(_COMMENT.match(content)) and (not tabs or len(fields) != width)


def _old_line_ends(path: Path, number: int, line: str) -> DataError:
    return DataError(
        "the line has a carriage return in it",
        where=f"{path}:{number}",
        got=clip(without_eol(line)),
        expected="lines that end in LF or CRLF",
        do="the file has line ends of the old Mac kind: save it again with LF",
    )


def _wrong_width(path: Path, number: int, fields: Sequence[str], width: int) -> DataError:
    empty = len(fields) == width
    return DataError(
        "a field is empty" if empty else f"the line has too {'many' if len(fields) > width else 'few'} fields",
        where=f"{path}:{number}",
        got=f"{several(len(fields), 'field')}, {clip(' | '.join(fields))}",
        expected=f"{width} fields, as in the first line with a word",
        do="fill it in" if empty else "mend the line; columns are separated by tabs if the first line's are",
    )


def _universal(path: Path) -> bool:
    return plain_name(path).endswith(".conllu")
