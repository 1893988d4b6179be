"""A corpus: which files it is made of, and which split a document is in."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from graftwork.errors import ConfigError, DataError, StorageError, UnknownName
from graftwork.pretrain.corpus import Corpus, open_corpus


def texts(corpus: Corpus, split: str | None = None) -> list[str]:
    return [document.text for document in corpus.documents(split)]


def filled(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_is_read_by_its_text_files_in_order_and_the_others_are_listed(tmp_path: Path) -> None:
    folder = filled(
        tmp_path,
        {
            "b.txt": b"b1\nb2\n",
            "a/z.jsonl": b'{"text": "z"}\n',
            "a/wiki_00": b"w\n",
            "picture.txt": b"\x89PNG\r\n\x1a\n\0\0",
            "paper.txt": b"%PDF-1.7\nno NUL so far",
            "packed.txt": b"\x1f\x8b\x08",
            "README.md": b"about it",
            ".git/config.txt": b"hidden",
            ".hidden.txt": b"hidden",
            "empty.txt": b"",
        },
    )
    (folder / "gone.txt").symlink_to(folder / "nowhere")
    (folder / "more").symlink_to(filled(tmp_path / ".elsewhere", {"m.txt": b"m\n"}), target_is_directory=True)
    corpus = open_corpus([folder])
    assert texts(corpus) == ["w", "z", "b1", "b2"]
    why = {one.path.name: one.why for one in corpus.skipped}
    assert why == {
        "picture.txt": "binary: it holds NUL bytes",
        "paper.txt": "PDF",
        "packed.txt": "gzip without .gz in its name",
        "README.md": "called .md: name the file to have it read",
        "gone.txt": "a link to nothing",
        "more": "a link to a folder: name it to have it read",
    }
    assert corpus.listed().startswith("4 files; 6 skipped: ")
    assert texts(open_corpus([folder / "more"])) == ["m"]


def test_what_is_named_is_read_in_that_order_and_once(tmp_path: Path) -> None:
    filled(tmp_path, {"a.txt": b"a", "notes.md": b"m"})
    named = [tmp_path / "notes.md", tmp_path, tmp_path / "a.txt"]
    assert texts(open_corpus(named)) == ["m", "a"]


def test_a_named_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    filled(tmp_path, {"a.bin": b"\0\1\2"})
    with pytest.raises(DataError, match="not a text file"):
        open_corpus([tmp_path / "a.bin"])


def test_what_can_be_read_only_once_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a file"):
        open_corpus([tmp_path / "pipe"])


def test_a_file_that_is_written_to_meanwhile(tmp_path: Path) -> None:
    corpus = open_corpus([filled(tmp_path, {"a.txt": b"one\n"})])
    corpus.digest()
    corpus.require_unchanged()
    filled(tmp_path, {"a.txt": b"one\ntwo\n"})
    with pytest.raises(DataError, match="changed while it was read"):
        corpus.require_unchanged()


@pytest.mark.parametrize("files", [{}, {"a.md": b"x"}, {"a.txt": b"\0"}])
def test_a_folder_without_text_is_an_error_that_lists_what_is_there(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(DataError, match="no file of text") as caught:
        open_corpus([filled(tmp_path, files)])
    assert all(name in caught.value.got for name in files)


def test_a_corpus_of_white_space_is_an_error(tmp_path: Path) -> None:
    corpus = open_corpus([filled(tmp_path, {"a.txt": b" \n\n\t\n", "b.txt": b""})])
    with pytest.raises(DataError, match="the corpus has no text"):
        texts(corpus)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        open_corpus([tmp_path / "nowhere"])


def test_settings_that_are_none(tmp_path: Path) -> None:
    filled(tmp_path, {"a.txt": b"a"})
    with pytest.raises(ConfigError, match="not a share"):
        open_corpus([tmp_path], validation=2)
    with pytest.raises(UnknownName, match="did you mean 'paragraph'"):
        open_corpus([tmp_path], unit="paragraphs")
    with pytest.raises(ConfigError, match="unknown encoding"):
        open_corpus([tmp_path], encoding="latin-99")


def test_the_text_alone_decides_the_split(tmp_path: Path) -> None:
    lines = [f"text {number}" for number in range(3000)]
    filled(tmp_path, {"a.txt": "\n".join(lines).encode()})
    kept = set(texts(open_corpus([tmp_path / "a.txt"], validation=0.1), "validation"))
    assert 240 < len(kept) < 360
    random.Random(0).shuffle(lines)
    filled(tmp_path, {"b.txt": "\n".join(lines[:2000]).encode()})
    other = open_corpus([tmp_path / "b.txt"], validation=0.1)
    assert set(texts(other, "validation")) == kept & set(lines[:2000])
    assert set(texts(other, "train")) == set(lines[:2000]) - kept
    assert texts(open_corpus([tmp_path / "b.txt"], validation=0), "validation") == []
    assert texts(open_corpus([tmp_path / "b.txt"], validation=1), "train") == []


def test_parts_follow_the_document_they_are_of(tmp_path: Path) -> None:
    long = "\n".join(" ".join(f"w{row}{number}" for number in range(60_000)) for row in range(12))
    filled(tmp_path, {"a.txt": long.encode()})
    splits: dict[int, set[str]] = {}
    for document in open_corpus([tmp_path], validation=0.5).documents():
        splits.setdefault(document.key, set()).add(document.split)
    assert len(splits) == 12
    assert all(len(own) == 1 for own in splits.values())
    assert set.union(*splits.values()) == {"train", "validation"}


def test_the_digest_is_of_what_is_read_and_not_of_names(tmp_path: Path) -> None:
    filled(tmp_path, {"a.txt": b"a", "same.txt": b"a", "b.txt": b"b"})
    first = open_corpus([tmp_path / "a.txt"]).digest()
    assert open_corpus([tmp_path / "same.txt"]).digest() == first
    others = [
        open_corpus([tmp_path / "b.txt"]),
        open_corpus([tmp_path / "a.txt"], unit="file"),
        open_corpus([tmp_path / "a.txt"], validation=0.5),
        open_corpus([tmp_path / "a.txt", tmp_path / "b.txt"]),
    ]
    assert len({first, *(other.digest() for other in others)}) == 5


def test_the_same_bytes_as_jsonl_and_as_text_are_two_corpora(tmp_path: Path) -> None:
    line = b'{"text": "a"}\n'
    filled(tmp_path, {"c.txt": line, "c": line, "c.jsonl": line, "c.ndjson": line, "d.txt": line})
    text, objects, mixed = (
        open_corpus([tmp_path / name for name in names]) for names in (["c.txt"], ["c.jsonl"], ["c.jsonl", "d.txt"])
    )
    assert (texts(text), texts(objects)) == (['{"text": "a"}'], ["a"])
    turned = open_corpus([tmp_path / "d.txt", tmp_path / "c.jsonl"])
    assert len({one.digest() for one in (text, objects, mixed, turned)}) == 4
    assert open_corpus([tmp_path / "c.ndjson"]).digest() == objects.digest()
    assert open_corpus([tmp_path / "c"]).digest() == text.digest()


def test_what_was_learned_from_plain_text_is_still_found(tmp_path: Path) -> None:
    """Tokens, vocabularies and runs are kept under it."""
    corpus = open_corpus([filled(tmp_path, {"a.txt": b"a"}) / "a.txt"])
    assert corpus.digest() == "d853a9285136a0d2e0f67c1fe6abda53ec6021992a25d6bbde33a3e62fa1ce7d"
