"""Reader of spaCy's training data: `[text, {"entities": …, "cats": …}]` in JSON or JSONL, `.spacy` through spaCy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers import annotated_texts
from graftwork.data.readers.annotated_texts import Annotated
from graftwork.data.readers.character_offsets import Mark
from graftwork.data.readers.json_text import json_value, shown, whole_json
from graftwork.data.readers.lines import each_line
from graftwork.data.readers.rejects import Bad, Named
from graftwork.errors import ConfigError, DataError, clip
from graftwork.io.gzip_files import plain_name, unpacked

FORM = '["…", {"entities": [[0, 5, "TYPE"]], "cats": {"A": 1, "B": 0}}]'
BINARY = ".spacy"
MOST_UNPACKED = 1 << 29  # bytes of a DocBin
TO_JSONL = (
    "python -c 'import json, spacy; from spacy.tokens import DocBin; "
    '[print(json.dumps({"text": d.text, "entities": [[e.start_char, e.end_char, e.label_] for e in d.ents], '
    '"cats": d.cats})) for d in DocBin().from_disk("%s").get_docs(spacy.blank("xx").vocab)]\' > %s.jsonl'
)


def is_spacy(item: Any) -> bool:
    """Return whether an item of JSON or JSONL is an example of spaCy's; an object with entities alone is doccano's."""
    if isinstance(item, list):
        return len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], dict)
    return isinstance(item, dict) and (
        "paragraphs" in item or (isinstance(item.get("text"), str) and isinstance(item.get("cats"), dict))
    )


def header_of(path: Path) -> tuple[str, ...] | None:
    """Return the columns, as `annotated_texts.header_of`. Raises `ConfigError` for `.spacy` where spaCy is missing."""
    return annotated_texts.header_of(path, list(_read(path)))


def rows(path: Path) -> Iterator[Named | Bad]:
    """Yield every text, numbered by its line, or its place in the file."""
    return annotated_texts.rows_of(path, list(_read(path)))


def told(path: Path) -> str:
    """Describe what was read."""
    return "examples of spaCy"


def _read(path: Path) -> Iterator[Annotated | Bad]:
    suffix = Path(plain_name(path)).suffix
    for number, last, where, item in _of_lines(path) if suffix == ".jsonl" else _of_file(path, suffix):
        try:
            if isinstance(item, DataError):
                raise item
            yield _example(item, number, last, where)
        except DataError as error:
            yield Bad(path, number, error, last)


def _of_lines(path: Path) -> Iterator[tuple[int, int, str, Any]]:
    """Yield first and last line, location, and the item or its error."""
    for number, line in each_line(path):
        if isinstance(line, str) and not line.strip():
            continue
        where = f"{path}:{number}"
        yield number, number, where, json_value(line, where) if isinstance(line, str) else line


def _of_file(path: Path, suffix: str) -> Iterator[tuple[int, int, str, Any]]:
    """Yield the place of every item from 1, no last line, its location, and the item."""
    if suffix == BINARY:
        items: Any = _of_binary(path)
    else:
        content = whole_json(path, "write it again: json.dump(TRAIN_DATA, file)")
        items = content.get("annotations") if isinstance(content, dict) else content
        if not isinstance(items, list):
            _refuse("not a list of examples", str(path), shown(content), f"[{FORM}, …]")
    for number, item in enumerate(items, 1):
        if item is not None:  # annotators write null for a text that was skipped
            yield number, 0, f"{path}: [{number - 1}]", item


def _of_binary(path: Path) -> list[Any]:
    """Return the examples of a DocBin."""
    name = plain_name(path)
    try:
        from spacy import blank  # type: ignore[import-not-found, unused-ignore]
        from spacy.tokens import DocBin  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigError(
            "reading .spacy needs spaCy",
            where=str(path),
            got=str(error),
            do=f"where spaCy is, write JSONL: {TO_JSONL % (name, Path(name).stem)}",
        ) from None
    try:
        with unpacked(path) as stream:
            content = stream.read(MOST_UNPACKED)
        if len(zlib.decompressobj().decompress(content, MOST_UNPACKED)) == MOST_UNPACKED:
            raise ValueError(f"more than {MOST_UNPACKED:,} bytes unpacked")
        docs = list(DocBin().from_bytes(content).get_docs(blank("xx").vocab))
    except (zlib.error, ValueError, KeyError, TypeError, LookupError) as error:
        got = clip(str(error), 200)
        _refuse("not a whole DocBin", str(path), got, "a file that DocBin.to_disk wrote", "write it again")
    entities = [[[one.start_char, one.end_char, one.label_] for one in doc.ents] for doc in docs]
    return [{"text": doc.text, "entities": ents, "cats": doc.cats} for doc, ents in zip(docs, entities, strict=True)]


def _example(item: Any, number: int, last: int, where: str) -> Annotated:
    if isinstance(item, dict) and "paragraphs" in item:
        _refuse(
            "the JSON of spaCy 2",
            where,
            shown(item),
            f"examples such as {FORM}, or a .spacy file",
            "convert it, and name the .spacy file that comes of it: python -m spacy convert FILE.json .",
        )
    text, said = item if isinstance(item, list) and len(item) == 2 else (None, item)
    if isinstance(said, dict) and text is None:
        text = said.get("text")
    if not (isinstance(text, str) and isinstance(said, dict)):
        _refuse("not an example of spaCy's", where, shown(item), FORM)
    entities, cats = said.get("entities"), said.get("cats")
    marks = None if entities is None else _marks(entities, where)
    return Annotated(number, text, _labels(cats, where) if cats is not None else None, marks, last)


def _marks(entities: Any, where: str) -> tuple[Mark, ...]:
    def parts(one: Any) -> Any:
        return [one.get(key) for key in ("start", "end", "label")] if isinstance(one, dict) else one

    listed: list[Any] = [parts(one) for one in entities] if isinstance(entities, list) else [None]
    if not all(isinstance(one, list) and [type(part) for part in one[:3]] == [int, int, str] for one in listed):
        _refuse("not the entities of spaCy", where, shown(entities), '[[0, 5, "TYPE"]], in characters')
    return tuple(Mark(start, end, kind, where) for start, end, kind, *_ in listed)


def _labels(cats: Any, where: str) -> dict[str, bool]:
    if not isinstance(cats, dict) or not all(value in (0, 1) for value in cats.values()):
        remedy = "write 1 for what applies and 0 for the rest"
        _refuse("not the categories of spaCy", where, shown(cats), '{"A": 1, "B": 0}', remedy)
    return {str(name): bool(value) for name, value in cats.items()}


def _refuse(what: str, where: str, got: str, expected: str, do: str = "mend it or remove it") -> NoReturn:
    """Raise `DataError`; `got` is already shortened for a message."""
    raise DataError(what, where=where, got=got, expected=expected, do=do)
