"""Real rows in GLUE's layout, the real backbone: every task has a score, and linear probes are better than nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.benchmark.run_suite import benchmark

pytestmark = pytest.mark.real

NAMES = {"cola": "CoLA", "sst2_glue": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "qnli": "QNLI", "rte": "RTE",
         "wnli": "WNLI", "mnli_sample": "MNLI"}  # fmt: skip
ONES = {"acceptable", "positive", "paraphrase"}  # what GLUE calls 1; WNLI's labels are numbers too
ZEROS = {"unacceptable", "negative", "not_paraphrase"}


def rows(path: Path, name: str) -> list[dict[str, str]]:
    """A table of the shared folder with the labels that GLUE writes."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    header, *lines = (line.split("\t") for line in text.rstrip("\n").split("\n"))
    found = [dict(zip(header, line, strict=True)) for line in lines]
    numbers = {"entailment": "1", "not_entailment": "0"} if name == "WNLI" else {}
    numbers |= dict.fromkeys(ONES, "1") | dict.fromkeys(ZEROS, "0")
    return [row | {"label": numbers.get(row["label"], row["label"])} for row in found]


def test_glue_from_real_rows(shared: Path, official: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path
    for ours, name in NAMES.items():
        files = {path.name.split(".")[0]: path for path in (shared / "data" / ours).iterdir() if ".tsv" in path.name}
        if name == "MNLI":
            whole, other = rows(files["dev_matched"], name), rows(files["dev_mismatched"], name)
            parts = {"train": whole[:800], "dev_matched": whole[800:], "dev_mismatched": other, "test_matched": other}
        else:
            whole = rows(files.get("train", files["dev"]), name)
            dev = rows(files["dev"], name) if "train" in files else whole[2000:]
            parts = {"train": whole if "train" in files else whole[:2000], "dev": dev[:400], "test": dev[:50]}
        folder = official(name, **parts)
    done = benchmark("glue", folder, methods=["linear_probe"], seeds=1, limit=200, backbone="minilm",
                     out=tmp_path / "out", runs=tmp_path / "runs")  # fmt: skip
    content = done.content
    assert list(content["tasks"]) == ["CoLA", "SST-2", "MRPC", "STS-B", "MNLI", "QNLI", "RTE", "WNLI"]
    assert list(content["left_out"]) == ["QQP"]
    rows_of = {row["method"]: row for row in content["rows"]}
    probe, majority = rows_of["linear_probe"]["scores"], rows_of["majority"]["scores"]
    for column in ("SST-2 accuracy", "STS-B pearson", "MNLI-m accuracy", "MNLI-mm accuracy"):
        assert probe[column]["mean"] > majority[column]["mean"] + 0.03, column
    assert probe["STS-B pearson"]["mean"] > 0.6
    assert rows_of["linear_probe"]["mean"]["mean"] > rows_of["majority"]["mean"]["mean"]


def test_a_submission_from_real_rows(shared: Path, official: Callable[..., Path], tmp_path: Path) -> None:
    rte = {split: rows(shared / "data" / "rte" / f"{split}.tsv", "RTE") for split in ("train", "dev")}
    folder = official("RTE", train=rte["train"][:200], dev=rte["dev"], test=rte["dev"])
    done = benchmark("glue", folder, methods=["linear_probe"], seeds=1, out=tmp_path / "out", runs=tmp_path / "runs")
    lines = (tmp_path / "out" / "submission" / "RTE.tsv").read_text().splitlines()
    assert len(lines) == 278
    right = sum(line.split("\t")[1] == row["label"] for line, row in zip(lines[1:], rte["dev"], strict=True))
    best = done.content["rows"][0]["scores"]["RTE accuracy"]["mean"]
    assert right / 277 == pytest.approx(best, abs=0.01), "the rows handed in are those it was scored on"
