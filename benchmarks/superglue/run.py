"""Compare methods on SuperGLUE's tasks of pairs and of choices: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
METHODS = ["majority", "tfidf_svm", "linear_probe", "adapter", "full"]
SEEDS = {"copa": 5, "wic": 5, "boolq": 3}


def task(name: str) -> gw.Task:
    """Return the task. SuperGLUE's own test labels are hidden: its validation split is the test here."""
    folder = Path(name)
    if name == "copa":
        train, test = folder / "train_choices.jsonl", folder / "dev_choices.jsonl"
        return gw.Task.from_file(train, name=name, kind="choice", test=test)
    if name == "wic":
        return gw.Task.from_file(folder / "train.tsv", name=name, test=folder / "dev.tsv")
    return gw.Task.from_file(folder / "dev.tsv.gz", name=name)  # train and test are drawn from it


def main() -> None:
    """Compare. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, SEEDS)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--seeds", type=int, help="default: 5, of boolq 3")
    chosen = parser.parse_args()
    out, runs = chosen.out.absolute(), begun(chosen)
    for name in chosen.names:
        methods = [*METHODS, "bm25"] if name == "copa" else METHODS
        compared(task(name), methods=methods, seeds=chosen.seeds or SEEDS[name], jobs=1, out=out / name, runs=runs)


if __name__ == "__main__":
    main()
