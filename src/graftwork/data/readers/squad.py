"""Reader of questions about passages: SQuAD 1.1 and 2.0 JSON, a JSON list of them, or JSONL with one per line.

Rajpurkar et al. 2016, arXiv:1606.05250, and 2018, arXiv:1806.03822. One of a list or line is `{"context", "question",
"answers"}`, with optional `id` and `title`; `answers` is `{"text": […], "answer_start": […]}` or a list of
`{"text", "answer_start"}`, empty for a question without an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.json_text import Literal, json_objects, json_text, whole_json
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import Bad
from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import plain_name

SUFFIXES = (".json", ".jsonl")
LONGEST_PLACE = 18  # most digits of an answer's position
STARTS = ("answer_start", "start")  # keys of an answer's position


@dataclass(frozen=True, slots=True)
class Question:
    """A question as read from the file."""

    line: int  # line of JSONL; else the question's number in the file, from 1
    last: int  # last line, as in `Bad`
    where: str  # file and location in it, with the question's id
    id: str | None
    title: str | None  # title of the passage's article
    context: str
    question: str
    answers: tuple[tuple[str, int | None], ...]  # text and start character, None where the file gives none


def questions(path: Path, labelled: bool = True) -> Iterator[Question | Bad]:
    """Yield the questions and bad rows of a file, in order; if `labelled`, every question must give its answers.

    Raises `DataError` for a file that is not in either format.
    """
    suffix = Path(plain_name(path)).suffix
    if suffix not in SUFFIXES:
        raise DataError(
            f"unknown suffix {suffix!r}" if suffix else "the file's name has no suffix",
            where=str(path),
            expected=".json (the form of SQuAD), .jsonl (a question per line), each also with .gz after it",
            do="questions about passages are in one of these",
        )
    return _of_lines(path, labelled) if suffix == ".jsonl" else _of_document(path, labelled)


def _of_lines(path: Path, labelled: bool) -> Iterator[Question | Bad]:
    for found in json_objects(TextLines(path)):
        if isinstance(found, Bad):
            yield found
        else:
            line, item = found
            yield _read(path, line, line, f"{path}:{line}", item, item, item.get("title"), labelled)


def _of_document(path: Path, labelled: bool) -> Iterator[Question | Bad]:
    content = whole_json(path, "check that it was written whole; a file with a JSON object per line is called .jsonl")
    if isinstance(content, list) and content:  # a question each
        for number, item in enumerate(content, 1):
            about = item if isinstance(item, dict) else {}
            yield _read(path, number, 0, f"{path}: [{number - 1}]", item, about, about.get("title"), labelled)
        return
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        _refuse(
            str(path), "the file has no list of articles", content, '{"data": [{"title": …, "paragraphs": […]}, …]}'
        )
    count = 0
    for number, article in enumerate(content["data"]):
        place = f"{path}: data[{number}]"
        for n, paragraph in enumerate(_listed(article, "paragraphs", place)):
            at = f"{place}.paragraphs[{n}]"
            for m, question in enumerate(_listed(paragraph, "qas", at)):
                count += 1
                where = f"{at}.qas[{m}]"
                yield _read(path, count, 0, where, question, paragraph, article.get("title"), labelled)


def _read(path: Path, line: int, last: int, where: str, *given: Any) -> Question | Bad:
    try:
        return _question(line, last, where, *given)
    except DataError as error:
        return Bad(path, line, error, last)


def _listed(item: Any, key: str, where: str) -> list[Any]:
    found = item.get(key) if isinstance(item, dict) else None
    if not isinstance(found, list):
        _refuse(where, f"the list {key!r} is missing", item, f'{{"{key}": […], …}}')
    return found


def _question(
    line: int, last: int, where: str, item: Any, around: Mapping[str, Any], title: Any, labelled: bool
) -> Question:
    """Parse the question `item` about the passage of `around`."""
    if not isinstance(item, dict):
        _refuse(where, "the item is not a question", item, '{"id": …, "question": …, "answers": […]}')
    name = item.get("id")
    if name is not None and not isinstance(name, str | int):
        _refuse(where, "the id is neither a text nor a number", name, '"id": "…"')
    where = where if name is None else f"{where} (id {clip(str(name))})"
    context, question = _text(around, "context", where), _text(item, "question", where)
    impossible = item.get("is_impossible")
    if not isinstance(impossible, bool | None):
        _refuse(where, "is_impossible is neither true nor false", impossible, "is_impossible: true or false")
    if labelled and "answers" not in item and not impossible:
        _refuse(where, "the key 'answers' is missing", item, '"answers": […]', do="write [] where there is no answer")
    answers = tuple(_answers(item.get("answers", []), where))
    if impossible is not None and "answers" in item and impossible == bool(answers):
        what = "it has answers and is said to have none" if answers else "it is said to have an answer and has none"
        _refuse(where, what, {"is_impossible": impossible}, "is_impossible: true where answers is empty")
    title = title if type(title) is str else None
    return Question(line, last, where, None if name is None else str(name), title, context, question, answers)


def _text(item: Mapping[str, Any], key: str, where: str) -> str:
    found = item.get(key)
    if key not in item:
        _refuse(where, f"the key {key!r} is missing", [*item], f'"{key}": "…"', do="name the text so, or add it")
    if type(found) is not str or not found.strip():
        what = f"the {key} is empty" if type(found) is str else f"the text {key!r} is missing"
        _refuse(where, what, found, "a text", do="fill it in or remove the question")
    return found


def _answers(given: Any, where: str) -> Iterator[tuple[str, int | None]]:
    if isinstance(given, dict):
        texts, starts = given.get("text"), next((given[key] for key in STARTS if key in given), None)
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            _refuse(where, "the answers and their positions do not match", given, '{"text": […], "answer_start": […]}')
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    if not isinstance(given, list):
        _refuse(where, "the answers are not a list", given, '[{"text": …, "answer_start": …}, …]')
    for answer in given:
        text = answer.get("text") if isinstance(answer, dict) else None
        if type(text) is not str or not text.strip():
            _refuse(where, "an answer is empty", answer, '{"text": …, "answer_start": …}; [] where there is none')
        yield text, _start(next((answer[key] for key in STARTS if key in answer), None), where)


def _start(given: Any, where: str) -> int | None:
    """Parse an answer's position, an integer, which in JSONL is a `Literal`."""
    if given is None:
        return None
    whole = isinstance(given, int | Literal) and not isinstance(given, bool) and str(given).isdecimal()
    if not whole or len(str(given)) > LONGEST_PLACE:
        _refuse(
            where, "the position of an answer is not a whole number", given, "its first character; 0 is the passage's"
        )
    return int(given)


def _refuse(where: str, what: str, got: Any, expected: str, do: str = "mend it or remove it") -> NoReturn:
    raise DataError(what, where=where, got=json_text(got) if got is not None else "", expected=expected, do=do)
