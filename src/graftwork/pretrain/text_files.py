"""Reading of one corpus file as text pieces that are never longer than `LONGEST`."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graftwork.data.readers.json_text import json_object, json_text
from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import FORMATS, open_unpacked

LONGEST = 1 << 18  # most characters of a document held at once
LONGEST_OBJECT = 1 << 26  # most characters of a line of JSONL, which can only be parsed whole
BLOCK = 1 << 18  # bytes read at once
PAIR = "pair"  # the unit of parallel text: two documents, a source and its target
UNITS = ("line", "paragraph", "file", PAIR)  # document units of a text file
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class TextLine(NamedTuple):
    """A line, or a part of a line that is too long."""

    number: int  # line number in the file, from 1
    text: str
    begins: bool  # False if it continues the previous part
    ends: bool  # False if the next part continues it


class DocumentPart(NamedTuple):
    """A document, or a part of a document that is too long."""

    text: str
    continues: bool  # True if it continues the previous part


def format_suffix(path: Path) -> str:
    """Return the suffix in lower case, without that of a compression: `.jsonl` for `a.JSONL.gz`."""
    inner = path.with_suffix("") if path.suffix.lower() in FORMATS else path
    return inner.suffix.lower()


def parts(path: Path, unit: str, field: str, encoding: str) -> Iterator[DocumentPart]:
    """Return the documents of a file, in order: the texts in `field` for JSONL, the `unit`s of any other file.

    Raises `DataError` with the line for bad text, bad JSON or a missing field, `StorageError` for a file that can't
    be read.
    """
    if format_suffix(path) in JSON_SUFFIXES:
        return _of_objects(path, field, encoding)
    return _of_lines(lines(path, encoding, LONGEST), unit)


def _of_lines(found: Iterable[TextLine], unit: str) -> Iterator[DocumentPart]:
    held: list[str] = []
    size, continues = 0, False
    for line in found:
        text = line.text.rstrip()
        ends = line.begins and (unit == "line" or (unit == "paragraph" and not text))
        if held and (ends or not line.begins or size + len(text) > LONGEST):
            yield DocumentPart("\n".join(held).strip(), continues)
            held, size, continues = [], 0, not ends
        elif ends:
            continues = False
        if text or (held and unit == "file"):
            held.append(text)
            size += len(text) + 1
    if held:
        yield DocumentPart("\n".join(held).strip(), continues)


def _of_objects(path: Path, field: str, encoding: str) -> Iterator[DocumentPart]:
    for line in lines(path, encoding, LONGEST_OBJECT):
        where = f"{path}:{line.number}"
        if not line.ends:
            raise DataError(
                "a line of JSON is too long",
                where=where,
                expected=f"up to {LONGEST_OBJECT:,} characters",
                do="cut the text into several lines",
            )
        if line.text.strip():
            text, begins = _text_of(line.text, field, where), True
            while text:
                cut = _cut(text, LONGEST)
                if text[:cut].strip():
                    yield DocumentPart(text[:cut].strip(), not begins)
                    begins = False
                text = text[cut:]


def _text_of(line: str, field: str, where: str) -> str:
    row = json_object(line.strip(), where)
    if field not in row:
        keys = ", ".join(row) or "none"
        raise DataError(f"no field {field!r}", where=where, got=f"the fields {keys}", do="name it with --field")
    return text_in(row, field, where)


def text_in(row: Mapping[str, Any], field: str, where: str) -> str:
    """Return the text in a field of a JSON object that has it. Raises `DataError` for another type."""
    if not isinstance(row[field], str):
        raise DataError(
            f"the field {field!r} is no text",
            where=where,
            got=json_text(row[field]),
            expected="a text",
            do="mend the line or remove it, or name another with --field",
        )
    return str(row[field])


def lines(path: Path, encoding: str, longest: int) -> Iterator[TextLine]:
    """Yield the lines of a file without LF; lines longer than `longest` characters come in parts, cut at spaces.

    A UTF-8 byte-order mark is dropped. Raises `DataError` and `StorageError`.
    """
    number, begins, rest = 1, True, ""
    for text in _decoded(path, encoding):
        zero = text.find("\0")
        if zero >= 0:
            raise DataError(
                "a NUL character",
                where=f"{path}:{number + text.count(chr(10), 0, zero)}",
                expected="text",
                do="leave the file out; or, if it is in UTF-16, give --encoding utf-16",
            )
        whole = (rest + text).split("\n")
        for line in whole[:-1]:
            yield from _whole(number, line, begins, longest)
            number, begins = number + 1, True
        rest = whole[-1]
        while len(rest) > longest:
            cut = _cut(rest, longest)
            yield TextLine(number, rest[:cut], begins, ends=False)
            rest, begins = rest[cut:], False
    if rest:
        yield TextLine(number, rest, begins, ends=True)


def _whole(number: int, text: str, begins: bool, longest: int) -> Iterator[TextLine]:
    """Yield a complete line, in parts if it is too long."""
    while len(text) > longest:
        cut = _cut(text, longest)
        yield TextLine(number, text[:cut], begins, ends=False)
        text, begins = text[cut:], False
    yield TextLine(number, text, begins, ends=True)


def _cut(text: str, longest: int) -> int:
    """Return where to cut: after the last space in the second half of `longest` characters, else at `longest`."""
    if len(text) <= longest:
        return len(text)
    space = text.rfind(" ", longest // 2, longest)
    return space + 1 if space >= 0 else longest


def _decoded(path: Path, encoding: str) -> Iterator[str]:
    """Yield the decoded text of a file, block by block."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)("strict")
    read, number = 0, 1  # bytes before this block, and the line number at its beginning
    with open_unpacked(path) as stream:
        while True:
            block, state = stream.read(BLOCK), decoder.getstate()
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                place = len(block) - len(error.object) + error.start  # below 0 if it began in an earlier block
                decoder.setstate(state)
                line = number + decoder.decode(block[: max(0, place)]).count("\n")
                raise _not_text(path, line, read + place, error, encoding) from None
            yield text
            if not block:
                return
            read, number = read + len(block), number + text.count("\n")


def _not_text(path: Path, line: int, place: int, error: UnicodeDecodeError, encoding: str) -> DataError:
    around = bytes(error.object[max(0, error.start - 20) : error.start + 20]).decode("latin-1")
    if place == 0 and error.object.startswith(_UTF16_BOMS):
        do = "the file is in UTF-16: give --encoding utf-16"
    elif encoding == "utf-8":
        do = "if it is Windows text, give --encoding windows-1252; if it is no text, leave the file out"
    else:
        do = "give the encoding that the file has with --encoding"
    return DataError(
        f"not {encoding.upper()} (byte {place:,} of the text)",
        where=f"{path}:{line}",
        got=f"byte 0x{error.object[error.start]:02x} in {clip(around)}",
        expected=f"text in {encoding.upper()}",
        do=do,
    )
