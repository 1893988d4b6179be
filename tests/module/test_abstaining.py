"""Abstaining: thresholds given and chosen, what is withheld, and what is refused."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

import graftwork as gw
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import read_json, write_json
from graftwork.module.abstaining import Abstaining, Threshold, area_under_risk, lower_bound, unsure
from graftwork.module.calibration import CALIBRATION, calibration_of
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds

ROW = {"label": "a", "probabilities": {"a": 0.7, "b": 0.3}}


def described(rows: int = 400, kind: str = "classification") -> dict[str, Any]:
    """A module's description whose surer answers are more often right."""
    random = np.random.default_rng(0)
    logits = np.stack([random.gamma(2, 1.5, size=2 * rows), np.zeros(2 * rows)], axis=1)
    classes = (random.random(2 * rows) > 1 / (1 + np.exp(-logits[:, 0]))).astype(int)
    halves = {"validation": slice(0, rows), "test": slice(rows, None)}
    found = calibration_of(kinds.get(kind), {name: (logits[half], classes[half]) for name, half in halves.items()})
    return {"task": {"name": "toy", "kind": kind}, CALIBRATION: found}


def test_an_unsure_answer_is_withheld_and_its_guess_stands_beside_it() -> None:
    sure, withheld = (Threshold(least).withheld(ROW, "toy") for least in (0.7, 0.71))
    assert sure == ROW | {"best_guess": "a", "probability": 0.7} and not unsure(sure)
    assert withheld == sure | {"label": None} and unsure(withheld) and not unsure(ROW)
    none = {"spans": [], "words": ["hi"]}
    assert Threshold(0.9).withheld(none, "toy") == none | {"best_guess": [], "probability": None}
    choice = {"choice": "x", "index": 0, "probabilities": [0.6, 0.4]}
    assert Threshold(0.9).withheld(choice, "toy")["index"] is None
    with pytest.raises(ConfigError, match="'prices' have no probability"):
        Threshold(0.5).withheld({"value": 3.0}, "prices")


def test_a_chosen_threshold_is_the_lowest_whose_bound_reaches_the_precision() -> None:
    description = described()
    rows = description[CALIBRATION]["answered"]
    found = Abstaining(precision=0.9).threshold(description)
    assert found is not None and found.splits is not None
    of = {least: (right, answered) for least, answered, right, _, _ in rows}
    assert lower_bound(*of[found.least]) >= 0.9
    assert all(lower_bound(*of[least]) < 0.9 for least in of if least < found.least)
    assert found.splits["validation"][0] == 400 and found.splits["validation"][1] < 400
    answered, right = found.splits["test"][1:]
    assert right / answered > 0.85 and "on test it answered" in found.sentence()


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    bound = lower_bound(45, 50)
    assert bound == pytest.approx(float(beta.ppf(0.1, 45, 6)))
    assert float(binom.sf(44, 50, bound)) == pytest.approx(0.1)  # as many right or more, one time in ten
    assert lower_bound(0, 10) == 0 and lower_bound(22, 22) < 0.91


def test_the_curve_counts_the_rows_at_its_thresholds() -> None:
    rows = described()[CALIBRATION]["answered"]
    assert len(rows) <= 40 and rows[0][1] == 400
    assert all(one[0] < other[0] and one[1] > other[1] for one, other in itertools.pairwise(rows))
    assert all(right <= answered for _, answered, right, _, _ in rows)


def test_area_under_risk_is_the_mean_risk_over_coverages() -> None:
    confidences, right = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    assert area_under_risk(confidences, right) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert area_under_risk(np.full(4, 0.5), right) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"below": 0.5, "precision": 0.9}, "two ways"),
        ({"below": 95}, r"not a probability[\s\S]*0.95 for 95 %"),
        ({"precision": 95}, r"target precision is not a probability[\s\S]*0.95 for 95 %"),
        ({"below": -0.1}, "not a probability"),
        ({"below": float("nan")}, "not a probability"),
    ],
)
def test_what_is_no_probability_is_refused(given: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Abstaining(**given)


def test_an_unattainable_precision_names_the_highest_and_its_coverage() -> None:
    with pytest.raises(ConfigError, match=r"no threshold reaches[\s\S]*at most 0\.\d+, where") as caught:
        Abstaining(precision=0.9999).threshold(described())
    highest = float(re.search(r"at most (0\.\d+)", str(caught.value.message)).group(1))  # type: ignore[union-attr]
    assert Abstaining(precision=highest).threshold(described()) is not None


def test_a_module_without_figures_or_of_another_kind_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"no validation figures[\s\S]*it has costs"):
        Abstaining(precision=0.9).threshold({"task": {"name": "toy", "kind": "classification", "costs": {"a": {}}}})
    with pytest.raises(ConfigError, match=r"no validation figures[\s\S]*train it again"):
        Abstaining(precision=0.9).threshold({"task": {"name": "old", "kind": "classification"}})
    with pytest.raises(ConfigError, match=r"not for kind regression[\s\S]*give a threshold"):
        Abstaining(precision=0.9).threshold({"task": {"name": "x", "kind": "regression"}})


def test_a_module_and_a_bank_answer_at_the_temperature(tmp_path: Path) -> None:
    topics = ["where is my parcel", "refund the invoice", "the app has crashed"]
    rows = [f"{topics[i % 3]} {i}\t{topics[i % 3 if i % 5 else (i + 1) % 3][:5]}" for i in range(60)]
    (tmp_path / "t.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    for method in ("tfidf_svm", "lora"):
        run = gw.train(tmp_path / "t.tsv", method=method, backbone="tiny_text", epochs=1, runs=tmp_path / "runs")
        path = run.folder / "module" / "module.json"
        description = read_json(path)
        assert description[CALIBRATION]["temperature"] == 1 and "fewer than 50" in description[CALIBRATION]["why"]
        before = run.module.predict(topics)
        write_json(path, description | {CALIBRATION: description[CALIBRATION] | {"temperature": 4.0}})
        module = TaskModule.load(run.folder)
        after = module.predict(topics)
        for one, other in zip(before, after, strict=True):
            fourth = np.exp(np.log(list(one["probabilities"].values())) / 4)
            assert list(other["probabilities"].values()) == pytest.approx(fourth / fourth.sum(), rel=1e-5)
            assert one["label"] == other["label"]
        bank = gw.Bank.create(tmp_path / method)
        bank.add(run.folder, name="t")
        for one, other in zip(after, bank.predict([("t", text) for text in topics]), strict=True):
            assert other["probabilities"] == pytest.approx(one["probabilities"], rel=1e-4)
        (withheld,) = module.predict(topics[:1], abstain_below=1.0)
        assert withheld["label"] is None and withheld["best_guess"] == after[0]["label"]
        write_json(path, description | {CALIBRATION: {"temperature": 0}})
        with pytest.raises(IncompatibleModule, match="temperature"):
            TaskModule.load(run.folder)
