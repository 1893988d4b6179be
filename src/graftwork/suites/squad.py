"""SQuAD 1.1 and 2.0, answers as spans of a passage (Rajpurkar et al. 2016, arXiv:1606.05250; 2018,
arXiv:1806.03822), from the JSON files of its site."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.data.readers.rejects import none_bad
from graftwork.data.readers.squad import questions
from graftwork.registry import suites

TITLE = "SQuAD (Rajpurkar et al. 2016, 2018)"
VERSIONS = ("1.1", "2.0")
METRICS = ("span_f1", "exact_match")


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
    for asked in none_bad(questions(path)):
        texts, starts = zip(*asked.answers, strict=True) if asked.answers else ((), ())
        yield {
            "id": asked.id,
            "title": asked.title,
            "context": asked.context,
            "question": asked.question,
            "answers": {"text": list(texts), "answer_start": list(starts)},
        }


suites.register("squad")(Suite(TITLE, tasks))
