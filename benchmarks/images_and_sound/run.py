"""Compare methods on two image data sets and one of sounds and keep the boards: `python run.py --data FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from driving import begun, compared, flags

import graftwork as gw

HERE = Path(__file__).parent.absolute()
BACKBONE = "hf:fixtures/weights/mobilenet_v2_1.0_224"


@dataclass(frozen=True)
class Question:
    """A task in the working folder, and the settings of its comparison."""

    data: str
    test: str
    methods: tuple[str, ...]
    seeds: int
    settings: dict[str, Any] = field(default_factory=dict)


QUESTIONS = {
    "flowers5": Question(
        "data/flowers5/train_list.tsv",
        "data/flowers5/val_list.tsv",
        ("majority", "colour_histogram", "linear_probe", "top_layers", "top_layers:k=5"),
        1,
        {"image": "file"},
    ),
    "hymenoptera": Question(
        "data/hymenoptera/train",
        "data/hymenoptera/val",
        ("majority", "colour_histogram", "linear_probe", "top_layers"),
        3,
    ),
    "free_spoken_digits": Question(
        "data/free_spoken_digits/train_list.tsv",
        "data/free_spoken_digits/test_list.tsv",
        ("majority", "log_mel"),
        3,
        {"sound": "file"},
    ),
}


def main() -> None:
    """Compare. Finished runs are reused, so an interrupted benchmark resumes."""
    parser = flags(__doc__, QUESTIONS)
    parser.add_argument("--cache", type=Path)
    chosen = parser.parse_args()
    cache, runs = chosen.cache.absolute() if chosen.cache else None, begun(chosen)
    for name in chosen.names:
        question = QUESTIONS[name]
        board = compared(
            gw.Task.from_file(question.data, name=name, test=question.test, **question.settings),
            backbone=BACKBONE,
            methods=list(question.methods),
            seeds=question.seeds,
            jobs=1,
            out=HERE / "results" / name,
            runs=runs,
            cache=cache,
        )
        for row in board.rows:
            print(f"  {row['method']:24} {row['status']}", flush=True)


if __name__ == "__main__":
    main()
