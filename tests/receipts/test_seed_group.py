"""The runs of one row: all seeds of the same run, also where a source of variation is held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graftwork.core.run import RunResult, RunSpec
from graftwork.receipts.seed_group import TOLERANCE, band_of, plausible_repeat, row_of
from graftwork.run.store import write_run

SPEC = RunSpec({"kind": "classification"}, "data", None, {"name": "lora"}, {"epochs": 1}, 0, {"threads": 1})
HELD = ("init", "augmentation")


def test_a_row_is_of_all_seeds_and_of_nothing_else(tmp_path: Path) -> None:
    whole, order = [SPEC, *(replace(SPEC, seed=seed) for seed in (1, 2))], replace(SPEC, seed=1, held=HELD)
    others = [replace(SPEC, data="other"), replace(SPEC, recipe={"epochs": 2})]
    for spec in (*whole, order, replace(order, seed=3), *others):
        (tmp_path / spec.id).mkdir()
        write_run(tmp_path / spec.id, spec, RunResult(spec.id, spec.seed, "ok"))
    for spec in whole:
        assert [folder.name for folder, _ in row_of(tmp_path, spec)] == [one.id for one in whole]
    varied = [SPEC.id, order.id, replace(order, seed=3).id]  # seed 0 is the same run either way
    assert [folder.name for folder, _ in row_of(tmp_path, order)] == varied
    assert row_of(tmp_path / "none", SPEC) == []


def test_runs_that_are_all_alike_have_no_band_but_a_tolerance() -> None:
    alike, few = band_of([0.8] * 5, 0.8), band_of([0.8] * 3, 0.8)
    assert alike == few and alike.runs == 0
    assert alike.holds(0.8 + 0.9 * TOLERANCE) and not alike.holds(0.8 + 1.1 * TOLERANCE)
    spread = band_of([0.8, 0.81, 0.79, 0.8, 0.8], 0.8)
    assert spread.runs == 5 and not spread.holds(0.85)


def test_a_false_score_does_not_widen_the_band_that_it_is_held_against() -> None:
    others = [0.800, 0.802, 0.799, 0.801]
    band, alike = plausible_repeat(others, 0.801, 0.800)
    assert alike and band == band_of([*others, 0.801], 0.801)
    assert band_of([*others, 0.9], 0.9).holds(0.801), "it is one of these five"
    band, alike = plausible_repeat(others, 0.9, 0.801)
    assert not alike and band == band_of([*others, 0.801], 0.801) and not band.holds(0.9)
    band, alike = plausible_repeat(others, 0.801, 0.9)
    assert not alike and band.high < 0.9
