"""Learning curves of three published data sets, ten draws per size: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, flags, say

import graftwork as gw

HERE = Path(__file__).parent.absolute()
SIZES, REFERENCE_SIZES = "8/class,16/class,64/class", "10%,100%"  # reference: only methods without pretrained weights
METHODS = "majority,tfidf_svm,prototype,linear_probe,contrastive,full,random:full:decay=1"
SETS = ("trec6", "sst2", "banking77")
DRAWS = 10


def task(name: str) -> gw.Task:
    """Return the task in the working folder; a validation split that was not published is drawn by content hash."""
    files = {"validation": Path(name) / "dev.tsv", "test": Path(name) / "test.tsv"}
    given = {split: path for split, path in files.items() if path.exists()}
    return gw.Task.from_file(Path(name) / "train.tsv", name=name, **given)


def main() -> None:
    """Measure the curves. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, SETS, threads=torch.get_num_threads())
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--part", default="", help="name for sizes measured apart, which the table joins to the others")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--reference-sizes", default=REFERENCE_SIZES)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    chosen = parser.parse_args()
    results, runs = chosen.results.absolute(), begun(chosen)
    for name in chosen.names:
        found = gw.curve(
            task(name),
            sizes=chosen.sizes,
            reference_sizes=chosen.reference_sizes or None,
            methods=chosen.methods,
            draws=chosen.draws,
            out=results / name / chosen.part,
            runs=runs,
            progress=say,
        )
        print(f"{name}: {found.executed} runs executed, {found.reused} reused", flush=True)


if __name__ == "__main__":
    main()
