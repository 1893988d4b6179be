"""Text out of files: documents by line, paragraph and file, JSONL, packed files, huge lines, and what is no text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import tracemalloc
from pathlib import Path

import pytest

from graftwork.errors import DataError, StorageError
from graftwork.pretrain import text_files
from graftwork.pretrain.text_files import DocumentPart, lines, parts

TEXT = "one\n  two  \r\n\nthree\n\n\nfour"


def read(path: Path, unit: str = "line", field: str = "text", encoding: str = "utf-8") -> list[DocumentPart]:
    return list(parts(path, unit, field, encoding))


def texts(path: Path, unit: str = "line", field: str = "text", encoding: str = "utf-8") -> list[str]:
    return [part.text for part in read(path, unit, field, encoding)]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("line", ["one", "two", "three", "four"]),
        ("paragraph", ["one\n  two", "three", "four"]),
        ("file", ["one\n  two\n\nthree\n\n\nfour"]),
    ],
)
def test_units(tmp_path: Path, unit: str, expected: list[str]) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    assert texts(tmp_path / "a.txt", unit) == expected
    assert not any(part.continues for part in read(tmp_path / "a.txt", unit))


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_files(tmp_path: Path, suffix: str, packed: object) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(packed(TEXT.encode()))  # type: ignore[operator]
    assert texts(path) == ["one", "two", "three", "four"]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match="not a whole"):
        texts(path)
    path.write_bytes(b"never packed, and long enough for a header of any kind")
    with pytest.raises(DataError, match=f"remove {suffix} from its name"):
        texts(path)


def test_jsonl(tmp_path: Path) -> None:
    rows = [{"text": "one\ntwo", "body": "b1"}, {"text": " ", "body": "b2"}, {"body": "b3", "text": "été"}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    assert texts(tmp_path / "a.jsonl") == ["one\ntwo", "été"]
    assert texts(tmp_path / "a.jsonl", field="body") == ["b1", "b2", "b3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "the line is not valid JSON"),
        ("[" * 100_000, "the line is not valid JSON"),
        ('["a"]', "not a JSON object"),
        ('{"body": "a"}', "got:      the fields body\n  do:       name it with --field"),
        ('{"text": 3}', "the field 'text' is no text"),
        ('{"text": "\\ud83d"}', "half of a character"),
    ],
)
def test_what_is_wrong_in_jsonl_is_told_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(DataError, match=message) as caught:
        texts(tmp_path / "a.jsonl")
    assert "a.jsonl:2" in caught.value.where


def test_a_line_of_json_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONGEST_OBJECT", 1000)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a b " * 300}))
    with pytest.raises(DataError, match="a line of JSON is too long"):
        texts(tmp_path / "a.jsonl")


@pytest.mark.parametrize("unit", ["line", "paragraph", "file"])
@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
def test_a_huge_line_comes_in_parts(tmp_path: Path, unit: str, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONGEST", 100)
    monkeypatch.setattr(text_files, "BLOCK", 64)
    words = [f"word{number}" for number in range(200)]
    whole = [" ".join(words), "next"]
    own = [json.dumps({"text": text}) for text in whole] if suffix == "jsonl" else whole
    (tmp_path / f"a.{suffix}").write_text("\n\n".join(own))
    found = read(tmp_path / f"a.{suffix}", unit)
    assert all(len(part.text) <= 100 for part in found)
    assert [word for part in found for word in part.text.split()] == [*words, "next"]  # no word is cut
    documents = [part.text for part in found if not part.continues]
    assert len(documents) == (1 if unit == "file" and suffix == "txt" else 2)
    assert not found[0].continues
    assert found[1].continues


def test_a_huge_line_without_spaces_is_cut_where_it_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONGEST", 100)
    (tmp_path / "a.txt").write_text("é" * 1234)
    found = read(tmp_path / "a.txt")
    assert "".join(part.text for part in found) == "é" * 1234
    assert max(len(part.text) for part in found) == 100


def test_memory_does_not_grow_with_the_line(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("w") as stream:
        for _ in range(24):
            stream.write("ab " * (1 << 18))  # 18 MB without an end
    tracemalloc.start()
    total = sum(len(part.text) for part in parts(tmp_path / "a.txt", "line", "text", "utf-8"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 18e6
    assert peak < 5e6


def test_blocks_do_not_cut_characters_nor_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 3)
    for encoding in ("utf-8", "utf-16", "utf-8-sig"):
        (tmp_path / "a.txt").write_bytes("añ漢字\n🙂🙂\n\nz".encode(encoding))
        own = "utf-16" if encoding == "utf-16" else "utf-8"
        assert texts(tmp_path / "a.txt", encoding=own) == ["añ漢字", "🙂🙂", "z"]
        assert [line.number for line in lines(tmp_path / "a.txt", own, 100)] == [1, 2, 3, 4]


def test_another_encoding_is_told_with_its_place_and_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 300_000 + b"\ncaf\xe9\n")
    with pytest.raises(DataError) as caught:
        texts(path)
    assert caught.value.where == f"{path}:2"
    assert "byte 300,004" in caught.value.what
    assert "--encoding windows-1252" in caught.value.do
    assert texts(path, encoding="windows-1252")[-1] == "café"
    path.write_bytes("été".encode("utf-16"))
    with pytest.raises(DataError, match="in UTF-16: give --encoding utf-16"):
        texts(path)
    path.write_bytes(b"caf\xc3")  # ends inside a character
    with pytest.raises(DataError, match="byte 3 of the text"):
        texts(path)


@pytest.mark.parametrize(("encoding", "bom"), [("utf-16", 2), ("utf-16-le", 0), ("utf-8", 3)])
def test_the_line_of_what_is_wrong_is_counted_in_characters(
    tmp_path: Path, encoding: str, bom: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 8)
    path, good = tmp_path / "a.txt", "Ċone\n\u0a0atwo\n".encode(encoding)
    wrong = b"\xff" if encoding == "utf-8" else "\udc00".encode("utf-16-le", "surrogatepass")
    path.write_bytes((codecs.BOM_UTF8 if encoding == "utf-8" else b"") + good + wrong + b"x\0")
    with pytest.raises(DataError) as caught:
        texts(path, encoding=encoding)
    assert caught.value.where == f"{path}:3"
    assert f"byte {len(good) + (bom if encoding == 'utf-8' else 0)} of" in caught.value.what


def test_a_nul_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nth\0ree\n")
    with pytest.raises(DataError, match="a NUL character") as caught:
        texts(tmp_path / "a.txt")
    assert caught.value.where.endswith(":3")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        texts(tmp_path / "a.txt")
