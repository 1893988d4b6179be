"""Examples of spaCy in JSON and JSONL, and DocBins through spaCy where it is."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers import spacy_examples
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, GraftworkError

SPANS = [["Ann lost it", {"entities": [[0, 3, "PER"]]}], ["My card is lost", {"entities": []}]]
TAGS = [("B-PER", "O", "O"), ("O",) * 4]


def rows(path: Path, *columns: str, label: str) -> list[tuple[Any, ...]]:
    return [row.cells for row in open_table(path).rows(columns, label=label)]


def put(path: Path, content: Any) -> Path:
    lines = path.suffix == ".jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in content) if lines else json.dumps(content, indent=1))
    return path


def test_entities_in_their_forms(tmp_path: Path) -> None:
    objects = [{"text": text, **said, "cats": {}} for text, said in SPANS]
    parted = [[SPANS[0][0], {"entities": [{"start": 0, "end": 3, "label": "PER"}]}], SPANS[1]]
    for content, names in {
        "pairs": (SPANS, ("a.json", "a.jsonl")),
        "objects": (objects, ("b.json", "b.jsonl")),
        "parted": (parted, ("c.json",)),
        "annotator": ({"classes": ["PER"], "annotations": [*SPANS, None]}, ("d.json",)),
    }.values():
        for name in names:
            path = put(tmp_path / name, content)
            assert open_table(path).header == ("tokens", "tags")
            assert rows(path, "tags", label="tags") == [(tags,) for tags in TAGS]


def test_categories(tmp_path: Path) -> None:
    cats = [{"A": 1.0, "B": 0}, {"A": False, "B": True}, {"A": 1, "B": 1}, {"A": 0, "B": 0}]
    expected = [("A",), ("B",), ("A", "B"), ()]
    pairs = [[f"t{i}", {"cats": one}] for i, one in enumerate(cats)]
    objects = [{"text": text, **said} for text, said in pairs]
    for path in (put(tmp_path / "a.json", pairs), put(tmp_path / "b.jsonl", pairs), put(tmp_path / "c.jsonl", objects)):
        assert open_table(path).header == ("text", "label")
        assert rows(path, "text", "label", label="label") == [(f"t{i}", one) for i, one in enumerate(expected)]
    one = put(tmp_path / "d.json", [["a", {"cats": {"RUDE": 1}}], ["b", {"cats": {"RUDE": 0}}]])
    assert rows(one, "label", label="label") == [(("RUDE",),), (("not RUDE",),)]
    both = put(tmp_path / "e.json", [["Ann lost it", {"cats": {"A": 1}, "entities": [[0, 3, "PER"]]}]])
    assert open_table(both).header == ("text", "label", "tokens", "tags")


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (["a b", {"cats": {"A": 0.4}}], "the categories are not"),
        (["a b", {"entities": ["U-PER", "O"]}], "the entities are not"),
        (["a b", {"entities": [[0, 9, "X"]]}], "cannot be tagged"),
        (["a b"], "not an example"),
        ({"text": 3, "cats": {}}, "not an example"),
        (7, "not an example"),
    ],
)
def test_a_bad_example_is_told_with_its_place(tmp_path: Path, item: Any, what: str) -> None:
    for name, place in (("a.json", ": [2]"), ("a.jsonl", ":3")):
        path = put(tmp_path / name, [*SPANS, item])
        with pytest.raises(DataError, match=what) as caught:
            rows(path, "tags", label="tags")
        assert caught.value.where == f"{path}{place}"


def test_the_json_of_spacy_2_is_refused_by_name(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", [{"id": 0, "paragraphs": [{"raw": "a", "sentences": []}]}])
    with pytest.raises(DataError, match="the file is JSON of spaCy 2") as caught:
        open_table(path)
    assert "python -m spacy convert" in caught.value.do


def test_a_task_of_tags_and_its_line_in_the_report(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", [[f"Ann lost {i}", {"entities": [[0, 2, "PER"]]}] for i in range(30)])
    data = load(Task.from_file(path, kind="tagging"))
    assert data.task.labels == ("B-PER", "O") and "from a.jsonl (examples of spaCy)" in data.report["splits"]
    assert sum(data.report["mended"]["Spans whose borders cut through a word, widened to whole words"].values()) == 30


def test_a_docbin_without_spacy_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.spacy"
    path.write_bytes(zlib.compress(b"docs"))
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match=r"reading \.spacy needs spaCy") as caught:
        open_table(path)
    assert 'from_disk("train.spacy")' in caught.value.do and caught.value.do.endswith("> train.jsonl")


def test_a_docbin_through_spacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entity = SimpleNamespace(start_char=0, end_char=3, label_="PER")
    docs = [SimpleNamespace(text=text, ents=[entity] * (text[0] == "A"), cats={}) for text, _ in SPANS]

    class DocBin:
        def from_bytes(self, content: bytes) -> DocBin:
            assert zlib.decompress(content) == b"docs"
            return self

        def get_docs(self, vocab: str) -> list[Any]:
            return docs

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(blank=lambda name: SimpleNamespace(vocab=name)))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "spacy.tokens", SimpleNamespace(DocBin=DocBin))  # type: ignore[arg-type]
    path = tmp_path / "train.spacy"
    path.write_bytes(zlib.compress(b"docs"))
    assert open_table(path).header == ("tokens", "tags")
    assert rows(path, "tags", label="tags") == [(tags,) for tags in TAGS]
    path.write_bytes(b"no")
    with pytest.raises(GraftworkError, match="the DocBin is damaged or incomplete"):
        open_table(path)
    monkeypatch.setattr(spacy_examples, "MOST_UNPACKED", 100)
    path.write_bytes(zlib.compress(bytes(200)))
    with pytest.raises(GraftworkError, match="more than 100 bytes unpacked"):
        open_table(path)
