"""Compare word-tagging methods on three published corpora: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
CORPORA = ("ncbi_disease", "conll2000", "ud_ewt")
METHODS = ("majority", "most_frequent_tag", "perceptron_tagger", "linear_probe", "adapter", "full")


def task(name: str) -> gw.Task:
    """Return the task; conll2000 has no validation file, so a tenth of its train is drawn."""
    train = next(Path(name).glob("train.conll*"))
    dev = Path(name) / "dev.conll"
    given = {"validation": dev} if dev.exists() else {}
    return gw.Task.from_file(train, name=name, kind="tagging", test=Path(name) / "test.conll", **given)


def main() -> None:
    """Compare. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, CORPORA, threads=torch.get_num_threads())
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    runs = begun(chosen)
    for name in chosen.names:
        out = HERE / "results" / name
        compared(task(name), methods=METHODS, seeds=chosen.seeds, jobs=1, out=out, runs=runs)


if __name__ == "__main__":
    main()
