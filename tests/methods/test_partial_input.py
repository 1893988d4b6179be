"""Partial input: the hidden text changes nothing, the one that is seen is read as a task of one text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.configured_methods import method_from_config, of_a, parse_method
from graftwork.core.task import Dataset
from graftwork.errors import UnknownName
from graftwork.methods.partial_input import PartialInput
from graftwork.methods.tfidf_svm import TfidfSvm
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.memo import MemoEntry

PAIRS = tiny_dataset(pair=True, rows=24)


def one_text(data: Dataset, role: str) -> Dataset:
    """The same task over one of its texts."""
    splits = {
        name: replace(split, examples=tuple(replace(e, inputs={"text": e.inputs[role]}) for e in split.examples))
        for name, split in data.splits.items()
    }
    return replace(data, splits=splits)


@pytest.mark.parametrize(("side", "role", "hidden"), [("first", "text_a", "text_b"), ("second", "text_b", "text_a")])
def test_it_is_the_method_over_one_text(side: str, role: str, hidden: str) -> None:
    fitted = PartialInput(side=side).fit(tiny_bench(PAIRS, None))
    alone = one_text(PAIRS, role)
    expected = TfidfSvm().fit(tiny_bench(alone, None)).logits(alone.test.examples)
    assert np.array_equal(fitted.logits(PAIRS.test.examples), expected)
    changed = [replace(e, inputs={**e.inputs, hidden: "something else"}) for e in PAIRS.test.examples]
    assert np.array_equal(fitted.logits(changed), expected)
    assert fitted.facts["sees"] == role


def test_a_probe_sees_one_text_in_one_pass_for_all_seeds() -> None:
    backbone, done = open_backbone("tiny_text", precision="fp32"), MemoEntry()
    fitted = []
    for seed in (0, 1):
        bench = tiny_bench(PAIRS, backbone, seed=seed)
        bench.shared = done
        fitted.append((PartialInput(by="linear_probe").fit(bench), bench))
    (first, spent), (second, charged) = fitted
    answers = first.logits(PAIRS.test.examples)
    assert np.array_equal(second.logits(PAIRS.test.examples), answers)
    assert charged.tally.padding_flops == spent.tally.padding_flops > 0, (
        "the second is charged for what the first computed"
    )
    assert charged.charged.wall_seconds > 0
    swapped = [replace(e, inputs={**e.inputs, "text_b": "cold"}) for e in PAIRS.test.examples]
    assert np.array_equal(first.logits(swapped), answers)


def test_its_name_tells_side_and_method() -> None:
    assert parse_method("partial_input").label == "partial_input:side=first:by=tfidf_svm"
    made = parse_method("partial_input:side=second:by=adapter:size=8:placement=pfeiffer")
    assert made.label == "partial_input:side=second:by=adapter:size=8:placement=pfeiffer"
    assert made.method.uses_backbone
    assert not parse_method("partial_input").method.uses_backbone
    assert [item.label for item in of_a("BOARD") if item.config["name"] == "partial_input"] == [
        "partial_input:side=first:by=tfidf_svm",
        "partial_input:side=second:by=tfidf_svm",
    ]


def test_the_method_below_decides_the_run_with_all_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parse_method("partial_input:by=adapter:size=8")
    identity = made.identity
    assert identity["by"].startswith("adapter:size=8:placement=houlsby:learning_rate=")
    assert method_from_config(identity).identity()["by"] == identity["by"]
    vectors = tmp_path / "v.txt"
    vectors.write_text("a 1 2\n")
    assert "vectors=sha256-" in parse_method(f"partial_input:by=dan:vectors={vectors}").identity["by"]
    monkeypatch.setattr(TfidfSvm, "VERSION", TfidfSvm.VERSION + 1)
    assert parse_method("partial_input").config["version"] == 1000 + TfidfSvm.VERSION


def test_what_it_does_not_fit() -> None:
    assert "no pairs of texts" in PartialInput().unfit(tiny_dataset().task, None)
    assert "first or second" in PartialInput(side="both").unfit(PAIRS.task, None)
    assert "over another method" in PartialInput(by="no_transfer").unfit(PAIRS.task, None)
    assert "no tags" in PartialInput(by="perceptron_tagger").unfit(PAIRS.task, None)
    with pytest.raises(UnknownName, match="did you mean 'lora'"):
        PartialInput(by="lorra").unfit(PAIRS.task, None)
