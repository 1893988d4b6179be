"""SQuAD 1.1 and 2.0, answers as spans of a passage (Rajpurkar et al. 2016, arXiv:1606.05250; 2018,
arXiv:1806.03822), from the JSON files of its site."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.data.readers.json_text import whole_json
from graftwork.errors import DataError
from graftwork.registry import suites

TITLE = "SQuAD (Rajpurkar et al. 2016, 2018)"
VERSIONS = ("1.1", "2.0")
METRICS = ("span_f1", "exact_match")
REMEDY = "take it from the site of SQuAD as it is"


def tasks(folder: Path) -> list[OfficialTask]:
    """Return both versions, each with `train-vX.json` and `dev-vX.json`."""
    return [_task(folder, version) for version in VERSIONS]


def _task(folder: Path, version: str) -> OfficialTask:
    train, dev = (
        Source(path, partial(_rows, path))
        for path in (folder / f"train-v{version}.json", folder / f"dev-v{version}.json")
    )
    return OfficialTask(f"SQuAD{version}", "span", METRICS, train, {f"SQuAD{version}": dev})


def _rows(path: Path) -> Iterator[Row]:
    """Yield a row per question. Raises `DataError` for a file that is not in SQuAD's format."""
    content = whole_json(path, REMEDY)
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list):
        _refuse(path, "no list of articles called data")
    for at, article in enumerate(articles, 1):
        try:
            for paragraph in article["paragraphs"]:
                yield from (_row(asked, paragraph["context"], article["title"]) for asked in paragraph["qas"])
        except (KeyError, TypeError, AttributeError) as error:
            _refuse(path, f"article {at}: {error} is missing or of another type")


def _row(asked: dict[str, Any], context: str, title: str) -> Row:
    """Convert a question to a row; if it is marked as impossible, its answers are ignored."""
    answers = [] if asked.get("is_impossible") else asked["answers"]
    return {
        "id": asked["id"],
        "title": title,
        "context": context,
        "question": asked["question"],
        "answers": {
            "text": [answer["text"] for answer in answers],
            "answer_start": [answer["answer_start"] for answer in answers],
        },
    }


def _refuse(path: Path, what: str) -> NoReturn:
    raise DataError(
        f"not a file of SQuAD: {what}",
        where=str(path),
        expected='{"data": [{"title": "…", "paragraphs": [{"context": "…", "qas": […]}]}]}',
        do=REMEDY,
    )


suites.register("squad")(Suite(TITLE, tasks))
