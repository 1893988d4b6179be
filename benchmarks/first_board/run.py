"""Compare every method on six published data sets and keep the boards: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
SEEDS = {"trec6": 5, "mrpc": 3, "stsb": 3, "sms_spam": 3, "banking77": 1, "crowdflower_primary_emotions": 3}
SETTINGS = {
    "mrpc": {"metrics": ("accuracy", "f1", "matthews"), "positive": "paraphrase"},
    "stsb": {"kind": "regression"},
    "sms_spam": {"metrics": ("f1", "accuracy", "matthews"), "positive": "spam"},
}


def task(name: str) -> gw.Task:
    """Return the task in the working folder; a split that was not published is drawn by content hash."""
    whole = Path(name) / "all.tsv"
    if whole.exists():
        return gw.Task.from_file(whole, name=name, **SETTINGS.get(name, {}))
    files = {"validation": Path(name) / "dev.tsv", "test": Path(name) / "test.tsv"}
    given = {split: path for split, path in files.items() if path.exists()}
    return gw.Task.from_file(Path(name) / "train.tsv", name=name, **given, **SETTINGS.get(name, {}))


def main() -> None:
    """Compare. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, SEEDS, threads=torch.get_num_threads())
    parser.add_argument("--methods", help="a,b,… (default: all that fit)")
    chosen = parser.parse_args()
    methods, runs = chosen.methods.split(",") if chosen.methods else None, begun(chosen)
    for name in chosen.names:
        compared(task(name), methods=methods, seeds=SEEDS[name], out=HERE / "results" / name, runs=runs)


if __name__ == "__main__":
    main()
