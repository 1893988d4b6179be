"""Reader of records: quoted as in CSV (RFC 4180), or never quoted as in TSV, where a cell is the file's text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from graftwork.data.readers.json_text import empty_line
from graftwork.data.readers.lines import LONGEST_LINE, TextLines, without_eol
from graftwork.data.readers.rejects import Bad
from graftwork.errors import DataError, clip

Record = tuple[int, list[str], int]  # first line, fields, last line

NAMES: Mapping[str, str] = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_CLOSING_QUOTE = re.compile(r'([^"]*+(?:""[^"]*+)*+)"')
_EOL = ("", "\n", "\r\n", "\r")  # the last where a file is truncated between CR and LF


def records(lines: TextLines, separator: str, quoted: bool) -> Iterator[Record | Bad]:
    """Yield every record of a file, the header first. If `quoted`, cells may be in quotes, as in CSV.

    Blank lines are allowed only at the end. A bad record with an unclosed quote includes all lines up to the point
    where the error is detected.
    """
    path, blank = lines.path, 0
    for found in _csv(lines, separator) if quoted else _tsv(lines, separator):
        if not isinstance(found, Bad) and not found[1]:
            blank = blank or found[0]
            continue
        if blank:
            yield Bad(path, blank, empty_line(path, blank), blank)
            blank = 0
        yield found


def _tsv(lines: TextLines, separator: str) -> Iterator[Record | Bad]:
    for number, line in lines:
        if isinstance(line, DataError):
            yield Bad(lines.path, number, line, number)
        else:
            yield number, _fields(without_eol(line), separator), number


def _csv(lines: TextLines, separator: str) -> Iterator[Record | Bad]:
    path, rest = lines.path, iter(lines)
    for number, line in rest:
        if isinstance(line, DataError):
            yield Bad(path, number, line, number)
            continue
        content = without_eol(line)
        if '"' not in content and "\r" not in content:
            yield number, _fields(content, separator), number
            continue
        found, last = _quoted(path, rest, number, line, separator)
        yield Bad(path, number, found, last) if isinstance(found, DataError) else (number, found, last)


def _fields(content: str, separator: str) -> list[str]:
    """Return the fields of a line without quotes; an empty list for a blank line."""
    return content.split(separator) if content else []


def _quoted(
    path: Path, rest: Iterator[tuple[int, str | DataError]], number: int, line: str, separator: str
) -> tuple[list[str] | DataError, int]:
    """Return the fields of a record with quotes, or its error, and its last line. `rest` yields the next lines."""
    fields, at = [], 0
    while True:
        if line.startswith('"', at):
            opened = f"{path}:{number}:{at + 1}"
            pieces, at, held = [], at + 1, 0
            while not (closing := _CLOSING_QUOTE.match(line, at)):
                pieces.append(line[at:])
                held += len(pieces[-1])
                before, (number, following) = number, next(rest, (0, ""))
                if isinstance(following, DataError):
                    return following, number
                line, at = following, 0
                if not number or held > LONGEST_LINE:
                    wrong = DataError(
                        "the quote is never closed",
                        where=opened,
                        got=clip("".join(pieces)),
                        expected='a quote at the end of the field: "…"',
                        do='close it, or double a quote that belongs to the text: ""',
                    )
                    return wrong, number or before
            fields.append("".join([*pieces, closing[1]]).replace('""', '"'))
            at = closing.end()
            if line[at:] not in _EOL and line[at] != separator:
                wrong = DataError(
                    "text follows a closing quote",
                    where=f"{path}:{number}:{at + 1}",
                    got=f"{clip(without_eol(line[at:]))}; the quote opened at {opened}",
                    expected=f"a {NAMES.get(separator, 'separator')} or the end of the line",
                    do='double a quote that belongs to the text: ""',
                )
                return wrong, number
        else:
            border = line.find(separator, at)
            end = border if border >= 0 else len(without_eol(line))
            if (found := _in_bare(path, number, at, line[at:end])) is not None:
                return found, number
            fields.append(line[at:end])
            at = end
        if line[at:] in _EOL:
            return fields, number
        at += 1


def _in_bare(path: Path, number: int, at: int, field: str) -> DataError | None:
    """Return the error of a quote or carriage return in an unquoted field, which begins at `at` in its line, if any."""
    refused = (('"', "a quote", "quote the field"), ("\r", "a carriage return", "save the file with LF line ends"))
    for character, name, remedy in refused:
        place = field.find(character)
        if place >= 0:
            return DataError(
                f"{name} inside an unquoted field",
                where=f"{path}:{number}:{at + place + 1}",
                got=clip(field),
                expected='a field that holds one is in quotes, its own quotes doubled: "say ""hi"""',
                do=f"{remedy}, or name the file .tsv if its columns are separated by tabs",
            )
    return None
