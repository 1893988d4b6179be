"""`graft cache`, and the flags of `compare` and `train` that say where passes are kept and how many."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.data.readers.embedded_media import cached_file
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.pretrain.corpus_cache import corpora_folder
from graftwork.train import frozen_pass

Graft = Callable[..., Any]

RUN = ("--backbone", "tiny_text", "--epochs", "1", "--method", "top_layers:k=1")


@pytest.fixture
def trained(graft: Graft, tickets: Path) -> Callable[..., dict[str, Any]]:
    """`trained("--runs", "a")` trains `top_layers` and returns the result."""

    def train(*flags: str) -> dict[str, Any]:
        done = graft("train", tickets, *RUN, *flags, "--json")
        assert done.code == 0, done.err
        result: dict[str, Any] = json.loads(done.out)
        return result

    return train


def decided(result: dict[str, Any]) -> tuple[Any, ...]:
    """What may not depend on the cache."""
    predictions = (Path(result["module"]).parent / "predictions.jsonl").read_bytes()
    delta = (Path(result["module"]) / "delta.safetensors").read_bytes()
    flops = [result["costs"][name]["value"] for name in ("train_flops", "padding_flops")]
    return result["id"], result["scores"], result["validation"], result["facts"], predictions, delta, flops


def test_a_run_is_the_same_with_no_cache_a_cold_and_a_warm_one(
    trained: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    off = trained("--runs", "off", "--cache-size", "0")
    assert not cache_folder().exists()
    cold = trained("--runs", "cold")
    assert len(CacheFolder(cache_folder()).entries()) == 2  # train and validation, never test

    def computed(*rest: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(frozen_pass, "fill", computed)
    warm = trained("--runs", "warm")
    assert decided(off) == decided(cold) == decided(warm)


def test_what_is_kept_is_listed_and_cleared(graft: Graft, trained: Callable[..., dict[str, Any]]) -> None:
    assert graft("cache").out.startswith("0 B in 0 passes under ")
    trained()
    done = graft("cache", "ls")
    *lines, total = done.out.splitlines()
    assert len(lines) == 2 and all("tiny_text" in line and "states entering block 1" in line for line in lines)
    assert all("sequences" in line and "kB  used " in line and line.endswith(" ago") for line in lines)
    assert "in 2 passes" in total and "10 GB" in total and str(cache_folder()) in total
    size = sum(entry.bytes for entry in CacheFolder(cache_folder()).entries())
    assert graft("cache", "clear").out.startswith("removed 2 passes under ")
    assert size > 0 and CacheFolder(cache_folder()).entries() == []
    assert graft("cache", "clear").out.endswith("freed 0 B\n")


def test_files_out_of_tables_are_listed_and_cleared_too(graft: Graft) -> None:
    path = cached_file(b"content", "a.png")
    assert "7 B in 1 file out of tables" in graft("cache").out
    assert json.loads(graft("cache", "ls", "--json").out)["media"]["files"] == 1
    assert "removed 1 file out of tables" in graft("cache", "clear").out and not path.exists()


def test_only_what_was_not_used_for_long_is_cleared(graft: Graft, trained: Callable[..., dict[str, Any]]) -> None:
    trained()
    old, new = CacheFolder(cache_folder()).entries()
    os.utime(old.path, (time.time() - 8 * 86400,) * 2)
    assert "removed 1 pass under" in graft("cache", "clear", "--older-than", "7d").out
    assert [entry.path for entry in CacheFolder(cache_folder()).entries()] == [new.path]


def test_the_flags_say_where_and_how_much(graft: Graft, trained: Callable[..., dict[str, Any]], tickets: Path) -> None:
    trained("--cache", "here")
    assert len(list(Path("here").rglob("*.safetensors"))) == 2 and not cache_folder().exists()
    assert "in 2 passes" in graft("cache", "ls", "--cache", "here").out
    command = ("compare", tickets, "--backbone", "tiny_text", "--methods", "linear_probe", "--seeds", "1")
    assert graft(*command, "--cache", "there", "--cache-size", "1MB").code == 0
    assert len(list(Path("there").rglob("*.safetensors"))) == 1


def test_a_task_file_says_it_in_the_same_words(graft: Graft, tickets: Path) -> None:
    words = f'data = "{tickets.name}"\nbackbone = "tiny_text"\ncache = "here"\ncache_size = "0"\n'
    Path("t.toml").write_text(words, encoding="utf-8")
    command = ("train", "t.toml", "--method", "linear_probe")
    assert graft(*command).code == 0 and not Path("here").exists()
    assert graft(*command, "--cache-size", "1MB", "--runs", "again").code == 0
    assert len(list(Path("here").rglob("*.safetensors"))) == 1


def test_a_file_in_the_way_is_said_once_and_does_not_stop_the_run(
    graft: Graft, tickets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Path("here").write_text("a file")
    assert graft("train", tickets, *RUN, "--cache", "here").code == 0
    assert caplog.text.count("nothing can be kept in the cache here/prefix") == 1
    assert Path("here").read_text() == "a file"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cache", "clean"), "did you mean 'clear'?"),
        (("cache", "ls", "--older-than", "7d"), "--older-than"),
        (("cache", "clear", "--older-than", "a week"), "1h, 7d, 2w"),
        (("cache", "clear", "--older-than", "3Wh"), "like 7d or 12h"),
        (("train", "builtin:tickets", "--method", "majority", "--cache-size", "much"), "like 10GB"),
    ],
)
def test_mistakes_are_said(graft: Graft, words: tuple[str, ...], message: str) -> None:
    done = graft(*words)
    assert done.code == 2 and message in done.err


def test_tokenised_corpora_are_listed_and_cleared(graft: Graft) -> None:
    entry = corpora_folder() / "tokens" / ("a" * 64)
    entry.mkdir(parents=True)
    (entry / "train.ids").write_bytes(b"12345678")
    assert "\n8 B in 1 tokenised corpus or vocabulary under " in graft("cache").out
    assert "\nremoved 1 tokenised corpus or vocabulary under " in graft("cache", "clear").out
    assert not entry.exists()
