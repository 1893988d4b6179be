"""Columns inside a column: translations by language, and the turns of a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import DataError

ASKED, ANSWERED = "What is row {}?", "row {}"


def turns(*speakers: str, who: str = "role", says: str = "content") -> Any:
    """Return a maker of a row's turns; the last answers, the one before asks."""
    said = {speakers[-1]: ANSWERED, speakers[-2]: ASKED}
    return lambda row: [{who: name, says: said.get(name, "Be short.").format(row)} for name in speakers]


CHATS = {
    "messages": lambda row: {"id": row, "messages": turns("user", "assistant")(row)},
    "conversations": lambda row: {"conversations": turns("human", "gpt", who="from", says="value")(row)},
    "prompt": lambda row: {
        "prompt": [{"role": "user", "content": ASKED.format(row)}],
        "completion": [{"role": "assistant", "content": ANSWERED.format(row)}],
    },
}


def written(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"t.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        path.write_text(json.dumps(rows))
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    return path


def read(path: Path, **flags: Any) -> Dataset:
    return load(Task.from_file(path, kind="generation", **flags))


def pairs(data: Dataset) -> set[tuple[Any, ...]]:
    return {(*row.inputs.values(), *row.target) for split in data.splits.values() for row in split.examples}


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("column", list(CHATS))
def test_a_question_and_its_answer_are_read_from_a_conversation(tmp_path: Path, form: str, column: str) -> None:
    data = read(written(tmp_path, form, [CHATS[column](row) for row in range(20)]))
    assert pairs(data) == {(ASKED.format(row), ANSWERED.format(row)) for row in range(20)}


def test_what_the_system_says_is_read_too(tmp_path: Path) -> None:
    rows = [{"messages": turns("system", "user", "assistant")(row)} for row in range(20)]
    data = read(written(tmp_path, "jsonl", rows))
    assert pairs(data) == {("Be short.", ASKED.format(row), ANSWERED.format(row)) for row in range(20)}


def test_a_conversation_of_several_turns_is_a_bad_row(tmp_path: Path) -> None:
    rows = [CHATS["messages"](row) for row in range(20)]
    rows[2]["messages"] *= 2
    path = written(tmp_path, "jsonl", rows)
    with pytest.raises(DataError, match=r"t.jsonl:3: the conversation in 'messages' has more than one turn") as caught:
        read(path)
    assert caught.value.got == "'user, assistant, user, assistant'"
    assert len(pairs(read(path, rejects=str(tmp_path / "bad.jsonl")))) == 19
    rows[0]["messages"] *= 2
    with pytest.raises(DataError, match=r"t.jsonl:1: the conversation"):
        read(written(tmp_path, "jsonl", rows))


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_a_translation_needs_a_direction(tmp_path: Path, form: str) -> None:
    rows = [{"translation": {"de": f"Zeile {row}", "en": ANSWERED.format(row)}} for row in range(20)]
    path = written(tmp_path, form, rows)
    with pytest.raises(DataError, match="nothing says which is to be written") as caught:
        read(path)
    assert "--text translation.en --label translation.de" in caught.value.do
    data = read(path, text="translation.de", label="translation.en")
    assert pairs(data) == {(f"Zeile {row}", ANSWERED.format(row)) for row in range(20)}


def test_a_set_that_was_saved_to_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [CHATS["messages"](row) for row in range(20)]
    datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / "chats"))
    assert len(pairs(read(tmp_path / "chats"))) == 20
    sides = datasets.Dataset.from_list(
        [{"translation": {"de": f"Zeile {row}", "en": f"row {row}"}} for row in range(20)]
    )
    sides = sides.cast_column("translation", datasets.Translation(["de", "en"]))
    sides.save_to_disk(str(tmp_path / "sides"))
    data = read(tmp_path / "sides", text="translation.en", label="translation.de")
    assert pairs(data) == {(f"row {row}", f"Zeile {row}") for row in range(20)}
