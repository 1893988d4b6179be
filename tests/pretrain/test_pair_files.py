"""Parallel text: tables and files line for line, both texts of a pair in one split."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftwork.errors import ConfigError, DataError
from graftwork.pretrain.corpus import open_corpus

PAIRS = [("a cat", "eine Katze"), ('two "dogs"', "zwei Hunde")]


def read(*paths: Path, field: str = "text", validation: float = 0.0) -> list[tuple[str, str]]:
    found = list(open_corpus(paths, unit="pair", field=field, validation=validation).documents())
    assert all(one.split == two.split for one, two in zip(found[::2], found[1::2], strict=True))
    return [(one.text, two.text) for one, two in zip(found[::2], found[1::2], strict=True)]


def test_tables_and_two_files(tmp_path: Path) -> None:
    texts = {
        "one.tsv": 'id\tsource\ttarget\n1\ta cat \teine Katze\n2\t\tleer\n3\ttwo "dogs"\tzwei Hunde\n',
        "one.csv": 'target,source\neine Katze,a cat\nzwei Hunde,"two ""dogs"""\n',
        "one.jsonl": '{"source": "a cat", "target": "eine Katze"}\n'
        '{"source": "two \\"dogs\\"", "target": "zwei Hunde", "x": 1}\n',
        "some.en": 'a cat\n\ntwo "dogs"\n',
        "some.de": "eine Katze\nleer\nzwei Hunde\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for names in (["one.tsv"], ["one.csv"], ["one.jsonl"], ["some.en", "some.de"]):
        assert read(*(tmp_path / name for name in names)) == PAIRS, names
    assert read(tmp_path / "one.tsv", field="target, source") == [(two, one) for one, two in PAIRS]
    assert len(read(*(tmp_path / name for name in texts))) == 8


def test_the_split_is_that_of_the_source(tmp_path: Path) -> None:
    lines = [f"source {number // 2}\ttarget {number}" for number in range(400)]
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "\n".join(lines))
    corpus = open_corpus([tmp_path / "a.tsv"], unit="pair", validation=0.25)
    read(tmp_path / "a.tsv", validation=0.25)
    held_out = [one.text for one in corpus.documents("validation")][::2]
    assert 30 <= len(set(held_out)) <= 70
    assert len(held_out) == 2 * len(set(held_out)), "two targets of one source are in the same split"
    assert len({one.key for one in corpus.documents()}) == 800
    other = open_corpus([tmp_path / "a.tsv"], unit="pair", field="target,source", validation=0.25)
    assert corpus.digest() != other.digest()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.tsv": "en\tde\nx\ty\n"}, r"a\.tsv: no column 'source'[\s\S]*en, de[\s\S]*--field ONE,OTHER"),
        ({"a.tsv": "source\ttarget\nx\ty\tz\n"}, r"a\.tsv:2: the row has too many fields[\s\S]*3 fields"),
        ({"a.csv": 'source,target\n"x,y\n'}, r"a\.csv:2:1: the quote is never closed"),
        ({"a.jsonl": '{"source": "x"}\n'}, r"a\.jsonl: no column 'target'"),
        ({"a.jsonl": '{"source": "x", "target": 3}\n'}, r"a\.jsonl:1: the value of 'target'"),
        ({"a.en": "x\ny\n", "b.de": "x\n"}, r"a\.en:2: a line without a partner[\s\S]*b\.de ends before it"),
        ({"a.en": "x\n", "b.de": "x\ny\n"}, r"b\.de:2: a line without a partner[\s\S]*a\.en ends before it"),
        ({"a.en": "x\n"}, r"a\.en: a file of texts without the file of their partners"),
    ],
)
def test_what_is_no_pair(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read(*(tmp_path / name for name in files))


@pytest.mark.parametrize("field", ["en", "en,", "en,en", "a,b,c"])
def test_two_columns(field: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\n")
    with pytest.raises(ConfigError, match=r"--field"):
        read(tmp_path / "a.tsv", field=field)
