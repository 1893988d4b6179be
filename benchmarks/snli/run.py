"""Scores on hypotheses without their premises: `python run.py --data FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
ONE_SIDE = [
    f"partial_input:side={side}:by={by}" for by in ("tfidf_svm", "linear_probe") for side in ("first", "second")
]
METHODS = ["majority", "tfidf_svm", "linear_probe", *ONE_SIDE, "adapter", "full"]


def task() -> gw.Task:
    """Return SNLI in the working folder, trained on its dev part and tested on its test part."""
    return gw.Task.from_file(Path("snli") / "dev.tsv", name="snli", test=Path("snli") / "test.tsv")


def main() -> None:
    """Compare. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    runs = begun(chosen)
    compared(task(), methods=chosen.methods, seeds=chosen.seeds, jobs=1, out=HERE / "results" / "snli", runs=runs)


if __name__ == "__main__":
    main()
