"""Scores on the dev rows of GLUE tasks with complete files, beside published ones: `python run.py --data FOLDER`."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import flags, say

import graftwork as gw

HERE = Path(__file__).parent.absolute()
METHODS = ["tfidf_svm", "linear_probe", "top_layers", "adapter", "full"]  # the majority class is always added
TASKS: Mapping[str, tuple[str, Mapping[str, str]]] = {  # GLUE's name -> folder of the collection, column -> GLUE's
    "CoLA": ("cola", {}),
    "SST-2": ("sst2_glue", {"text": "sentence", "label": "label"}),
    "MRPC": ("mrpc", {"text_a": "#1 String", "text_b": "#2 String", "label": "Quality"}),
    "STS-B": ("stsb", {"text_a": "sentence1", "text_b": "sentence2", "label": "score"}),
    "RTE": ("rte", {"text_a": "sentence1", "text_b": "sentence2", "label": "label"}),
    "WNLI": ("wnli", {"text_a": "sentence1", "text_b": "sentence2", "label": "label"}),
}
LABELS = {
    "acceptable": "1", "positive": "1", "paraphrase": "1",
    "unacceptable": "0", "negative": "0", "not_paraphrase": "0",
}  # fmt: skip


def lines_of(path: Path) -> list[list[str]]:
    """Return the cells of `path` or `path`.gz, header first."""
    raw = path.read_bytes() if path.is_file() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())
    return [line.split("\t") for line in raw.decode("utf-8").rstrip("\n").split("\n")]


def official(task: str, lines: list[list[str]]) -> Iterable[list[str]]:
    """Return the rows with GLUE's columns and labels; for CoLA without a header: source, label, mark, sentence."""
    header, *rows = lines
    rows = [[LABELS.get(cell, cell) if column == "label" else cell for column, cell in zip(header, row, strict=True)]
            for row in rows]  # fmt: skip
    if task == "CoLA":
        return [["", row[header.index("label")], "", row[header.index("text")]] for row in rows]
    return [[TASKS[task][1][column] for column in header], *rows]


def lay_out(data: Path, folder: Path, task: str) -> None:
    """Write train.tsv and dev.tsv of a task as in GLUE's download."""
    for split in ("train", "dev"):
        rows = official(task, lines_of(data / TASKS[task][0] / f"{split}.tsv"))
        path = folder / task / f"{split}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    """Run the benchmark. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, TASKS)
    parser.add_argument("--work", type=Path, default=Path("boards/glue"), help="where the rows and boards are written")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where what is kept of them is copied to")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, help="rows of each file: to try it; needs --out")
    chosen = parser.parse_args()
    if chosen.limit is not None and chosen.out == HERE / "results":
        parser.error("--limit is for trying: give --out another folder")
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.names:
            lay_out(chosen.data, Path(folder), name)
        found = gw.benchmark(
            "glue", folder, tasks=chosen.names, methods=chosen.methods, seeds=chosen.seeds, limit=chosen.limit,
            exhaustive=True, jobs=1, out=chosen.work, runs=chosen.runs, progress=say,
        )  # fmt: skip
    for kept in ("benchmark.json", *(f"{name}/leaderboard.json" for name in found.content["tasks"])):
        (chosen.out / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(chosen.work / kept, chosen.out / kept)


if __name__ == "__main__":
    main()
