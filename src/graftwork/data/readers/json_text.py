"""Strict JSON: no duplicate key, NaN, lone surrogate or excessive nesting; and files with one object per line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.lines import LONGEST_DOCUMENT, TextLines, read_lines, without_eol
from graftwork.data.readers.rejects import Bad
from graftwork.errors import DataError, clip

_LONE_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)

Object = dict[str, Any]


class Literal(str):
    """A JSON number, as its text in the file."""

    __slots__ = ()


class NamedList(tuple[str, ...]):
    """A list of texts with a name each, such as the choices A, B, … of a question."""

    names: tuple[str, ...] = ()


def named_list(value: Any) -> NamedList | None:
    """Parse a named list: `{"text": […], "label": […]}`, a list of such objects, or `{"A": "…"}`; None for others."""
    names: list[Any] = []
    texts: list[Any] = []
    if isinstance(value, dict):
        given = {name: text for name, text in value.items() if text is not None}  # null in a table: no such choice
        names, texts = list(given), list(given.values())
        if all(isinstance(column, list) for column in (value.get("label"), value.get("text"))):
            names, texts = value["label"], value["text"]
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        names, texts = [item.get("label") for item in value], [item.get("text") for item in value]
    if len(names) != len(texts) or not all(type(text) is str for text in texts) or not texts:
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    found = NamedList(texts)
    found.names = tuple(map(str, names))
    return found


def _refuse_nan(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> Object:
    item = dict(pairs)
    if len(item) != len(pairs):
        raise ValueError(f"the key {Counter(key for key, _ in pairs).most_common(1)[0][0]!r} occurs twice in it")
    return item


DECODER = json.JSONDecoder(parse_constant=_refuse_nan, object_pairs_hook=_unique)
LITERAL_DECODER = json.JSONDecoder(
    parse_int=Literal, parse_float=Literal, parse_constant=_refuse_nan, object_pairs_hook=_unique
)


def json_objects(lines: TextLines) -> Iterator[tuple[int, Object] | Bad]:
    """Yield the number and object of every line of a JSONL file, with JSON numbers as `Literal`, or the bad line.

    Blank lines are allowed only at the end of the file.
    """
    path, blank = lines.path, 0
    for number, line in lines:
        if isinstance(line, str) and not line.strip():
            blank = blank or number
            continue
        if blank:
            yield Bad(path, blank, empty_line(path, blank), blank)
            blank = 0
        try:
            if isinstance(line, DataError):
                raise line
            item = json_object(line, f"{path}:{number}", LITERAL_DECODER)
        except DataError as error:
            yield Bad(path, number, error, number)
        else:
            yield number, item


def json_object(line: str, where: str, decoder: json.JSONDecoder = DECODER) -> Object:
    """Return the object on a line. Raises `DataError`."""
    item = json_value(line, where, decoder)
    if isinstance(item, dict):
        return item
    raise DataError(
        "the line is not a JSON object",
        where=where,
        got=clip(without_eol(line)),
        expected='an object such as {"text": "…", "label": "…"}',
        do="write each row as an object of its own, or name the file by the format that it has",
    )


def json_value(line: str, where: str, decoder: json.JSONDecoder = DECODER) -> Any:
    """Return the value on a line. Raises `DataError`."""
    content = without_eol(line)
    try:
        item = decoder.decode(content)
        if not isinstance(item, str):  # a line that is a text is refused anyway
            _require_characters(item, content)
    except (ValueError, RecursionError) as error:
        place = f":{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(
            f"the line is not valid JSON: {_reason(error)}",
            where=f"{where}{place}",
            got=clip(content),
            expected="one JSON object per line",
            do="write a backslash twice, as in a path of Windows, or as a slash"
            if isinstance(error, json.JSONDecodeError) and "escape" in error.msg
            else "mend the line or remove it",
        ) from None
    return item


def whole_json(path: Path, do: str, decoder: json.JSONDecoder = DECODER) -> Any:
    """Return the value of a file that is one JSON document. Raises `DataError` with the location and the remedy."""
    text = "".join(line for _, line in read_lines(path, LONGEST_DOCUMENT))
    try:
        found = decoder.decode(text)
        _require_characters(found, text)
    except (ValueError, RecursionError) as error:
        place = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(
            f"the file is not valid JSON: {_reason(error)}",
            where=f"{path}{place}",
            got=clip(text[error.pos : error.pos + 80] if isinstance(error, json.JSONDecodeError) else text[:80]),
            expected="a file of JSON that is whole",
            do=do,
        ) from None
    return found


def _reason(error: ValueError | RecursionError) -> str:
    """Describe why a text could not be decoded."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "lists or objects too deep within one another" if isinstance(error, RecursionError) else str(error)


def _require_characters(item: Any, text: str) -> None:
    """Raise `ValueError` if `item`, which was decoded from `text`, has half of a surrogate pair."""
    if not _LONE_SURROGATE.search(text):
        return
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = clip(str(error.object)[error.start : error.end])
        raise ValueError(
            f"half of a character: the escape {half} without its other half; write the character itself in UTF-8"
        ) from None


def cell_of(value: Any, column: str, where: str, *, is_label: bool, is_words: bool) -> str | tuple[str, ...]:
    """Convert a JSON value with numbers as `Literal` to a cell: a text, a label of any type, or a list of words.

    Raises `DataError`.
    """
    if is_words:
        if isinstance(value, list) and all(type(item) is str for item in value):  # no Literal, which is a str too
            return tuple(value)
        if (named := named_list(value)) is not None:
            return named
        raise DataError(
            f"the value of {column!r} is not a list of strings",
            where=where,
            got=json_text(value),
            expected='a list of strings such as ["My", "card", "is", "lost"]',
            do="write each of them as a string of its own",
        )
    if type(value) is str:
        return value
    if is_label and isinstance(value, Literal):
        return str(value)
    if is_label and isinstance(value, bool):
        return "true" if value else "false"
    if is_label and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(map(str, value))
    raise DataError(
        f"the value of {column!r} is {'null' if value is None else 'not a text'}",
        where=where,
        got=json_text(value),
        expected="a string, a number, a boolean or a list of strings or numbers" if is_label else "a string",
        do="remove the row or fill the value in" if value is None else "write it as a string",
    )


def json_text(value: Any) -> str:
    """Return a JSON value as text for a message."""
    try:
        return clip(value if isinstance(value, Literal) else json.dumps(value, ensure_ascii=False, default=repr))
    except (RecursionError, ValueError, TypeError):
        return clip(type(value).__name__)


def empty_line(path: Path, line: int) -> DataError:
    """Return the error for an empty line between rows."""
    return DataError("the line is empty", where=f"{path}:{line}", expected="a row on every line", do="remove the line")
