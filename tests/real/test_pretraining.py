"""A tiny masked and a tiny causal network on film reviews: they learn, and what came of them is a backbone."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pytest

import graftwork as gw

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 1,500 reviews without a label."""
    return tmp_path_factory.mktemp("reviews") / "reviews.txt"


@pytest.mark.parametrize(("objective", "steps", "below"), [("masked", 150, 0.75), ("causal", 200, 0.5)])
def test_perplexity_falls(
    objective: str, steps: int, below: float, shared: Path, reviews: Path, tmp_path: Path
) -> None:
    if not reviews.is_file():
        with gzip.open(shared / "data" / "lm_imdb_unsup" / "train.txt.gz", "rt", encoding="utf-8") as stream:
            reviews.write_text("".join(islice(stream, 1500)))
    done = gw.pretrain(
        reviews, objective=objective, steps=steps, vocabulary=2000, recipe={"batch": 32, "length": 64}, runs=tmp_path
    )
    before, after = (done.result.facts[when]["validation"] for when in ("before", "after"))
    assert after["perplexity"] < below * before["perplexity"]
    run = gw.train("builtin:tickets", method="linear_probe", backbone=str(done.folder), runs=tmp_path)
    assert run.result.scores["accuracy"] > 0.3  # the most frequent label: 0.17
