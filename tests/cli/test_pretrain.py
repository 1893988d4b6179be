"""`graft pretrain`, and what `graft show` and `graft ls` say of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftwork.cli.main import main


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus" / "texts.txt"
    path.parent.mkdir()
    path.write_text("\n".join(f"the cat of number {n} sleeps in the garden every evening" for n in range(300)))
    (path.parent / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    return path.parent


def test_pretrain_show_ls(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "size.toml").write_text("hidden_size = 16\nnum_hidden_layers = 1\nnum_attention_heads = 2\n")
    runs = str(tmp_path / "runs")
    words = ["pretrain", str(corpus), "--size", str(tmp_path / "size.toml"), "--steps", "3", "--batch", "4"]
    words += ["--length", "16", "--validation", "0.2", "--runs", runs, "--objective", "masked:unit=words"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    for said in ("unit words", "3 steps", "perplexity", "bits per byte", "picture.png", "for each of 100 tasks"):
        assert said in printed
    folder = next((tmp_path / "runs").iterdir())
    assert f"--backbone {folder}" in printed
    assert main(words) == 0
    assert "existed already" in capsys.readouterr().out
    assert main(["show", str(folder), "--profile"]) == 0
    shown = capsys.readouterr().out
    assert "train_flops" in shown and shown.endswith("not recorded: this is a pre-training\n")
    for command in ("receipt", "verify"):
        assert main([command, str(folder)]) == 2
        said = capsys.readouterr().err
        assert "only runs on a task have receipts" in said and f"graft show {folder}" in said
    assert main(["ls", "--runs", runs]) == 0
    assert "pre-training" in capsys.readouterr().out
    assert main(["ls", "objectives"]) == 0
    assert {"causal", "masked"} <= set(capsys.readouterr().out.split())


def test_mistakes_are_told(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--steps", "3", "--budget", "1min"], "exclude each other"),
        (["--budget", "5"], "amount"),
        (["--schedule", "square"], "schedule"),
        (["--objective", "masked:unit=letters"], "unit of masking"),
    ):
        assert main(["pretrain", str(corpus), "--runs", str(tmp_path / "runs"), *words]) == 2
        assert said in capsys.readouterr().err
