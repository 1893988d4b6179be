"""Reader of spaCy's training data: `[text, {"entities": …, "cats": …}]` in JSON or JSONL, `.spacy` through spaCy."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.annotated_texts import Annotated, annotated, items_of, source_of
from graftwork.data.readers.character_offsets import Mark
from graftwork.data.readers.json_text import json_text, json_value
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import RowSource
from graftwork.errors import ConfigError, DataError, clip
from graftwork.io.gzip_files import open_unpacked, plain_name

FORM = '["…", {"entities": [[0, 5, "TYPE"]], "cats": {"A": 1, "B": 0}}]'
BINARY = ".spacy"
TOLD = "examples of spaCy"
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


def of_lines(lines: TextLines) -> RowSource:
    """Return the texts of a JSONL file."""
    kept = ((number, line) for number, line in lines if isinstance(line, DataError) or line.strip())
    items = ((number, number, f"{lines.path}:{number}", line) for number, line in kept)
    found = annotated(lines.path, items, lambda line, where: _example(json_value(line, where), where))
    return source_of(lines.path, found, TOLD)


def of_json(path: Path, content: Any) -> RowSource:
    """Return the texts of a JSON file with this content."""
    listed = content.get("annotations") if isinstance(content, dict) else content
    if not isinstance(listed, list):
        _refuse("the file is not a list of examples", str(path), json_text(content), f"[{FORM}, …]")
    items = (item for item in items_of(path, listed) if item[3] is not None)  # null: the annotator skipped the text
    return source_of(path, annotated(path, items, _example), TOLD)


def of_binary(path: Path) -> RowSource:
    """Return the texts of a `.spacy` file. Raises `ConfigError` where spaCy is missing."""
    return of_json(path, _examples_in(path))


def _examples_in(path: Path) -> list[Any]:
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
        with open_unpacked(path) as stream:
            content = stream.read(MOST_UNPACKED)
        if len(zlib.decompressobj().decompress(content, MOST_UNPACKED)) == MOST_UNPACKED:
            raise ValueError(f"more than {MOST_UNPACKED:,} bytes unpacked")
        docs = list(DocBin().from_bytes(content).get_docs(blank("xx").vocab))
    except (zlib.error, ValueError, KeyError, TypeError, LookupError) as error:
        got = clip(str(error), 200)
        _refuse(
            "the DocBin is damaged or incomplete", str(path), got, "a file that DocBin.to_disk wrote", "write it again"
        )
    entities = [[[one.start_char, one.end_char, one.label_] for one in doc.ents] for doc in docs]
    return [{"text": doc.text, "entities": ents, "cats": doc.cats} for doc, ents in zip(docs, entities, strict=True)]


def _example(item: Any, where: str) -> Annotated:
    if isinstance(item, dict) and "paragraphs" in item:
        _refuse(
            "the file is JSON of spaCy 2",
            where,
            json_text(item),
            f"examples such as {FORM}, or a .spacy file",
            "convert it, and name the .spacy file that comes of it: python -m spacy convert FILE.json .",
        )
    text, said = item if isinstance(item, list) and len(item) == 2 else (None, item)
    if isinstance(said, dict) and text is None:
        text = said.get("text")
    if not (isinstance(text, str) and isinstance(said, dict)):
        _refuse("the item is not an example of spaCy", where, json_text(item), FORM)
    entities, cats = said.get("entities"), said.get("cats")
    marks = None if entities is None else _marks(entities, where)
    return Annotated(text, _labels(cats, where) if cats is not None else None, marks)


def _marks(entities: Any, where: str) -> tuple[Mark, ...]:
    def parts(one: Any) -> Any:
        return [one.get(key) for key in ("start", "end", "label")] if isinstance(one, dict) else one

    listed: list[Any] = [parts(one) for one in entities] if isinstance(entities, list) else [None]
    if not all(isinstance(one, list) and [type(part) for part in one[:3]] == [int, int, str] for one in listed):
        _refuse("the entities are not in spaCy's form", where, json_text(entities), '[[0, 5, "TYPE"]], in characters')
    return tuple(Mark(start, end, kind, where) for start, end, kind, *_ in listed)


def _labels(cats: Any, where: str) -> dict[str, bool]:
    if not isinstance(cats, dict) or not all(value in (0, 1) for value in cats.values()):
        remedy = "write 1 for what applies and 0 for the rest"
        _refuse("the categories are not in spaCy's form", where, json_text(cats), '{"A": 1, "B": 0}', remedy)
    return {str(name): bool(value) for name, value in cats.items()}


def _refuse(what: str, where: str, got: str, expected: str, do: str = "mend it or remove it") -> NoReturn:
    """Raise `DataError`; `got` is already shortened for a message."""
    raise DataError(what, where=where, got=got, expected=expected, do=do)
