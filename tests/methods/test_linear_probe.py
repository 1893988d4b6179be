"""Linear probe: every block is cross-validated, the best is kept, and what is stored answers the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from graftwork.core.method import Setting
from graftwork.methods import linear_probe
from graftwork.methods.linear_probe import LinearProbe
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.cross_validation import CrossValidation
from graftwork.train.flops import count_flops
from graftwork.train.linear_fit import StandardisedFeatures, fit_linear

BACKBONE = open_backbone("tiny_text", precision="fp32")
BLOCKS = BACKBONE.card.blocks


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
def test_stored_and_restored(kind: str) -> None:
    data = tiny_dataset(kind)
    fitted = LinearProbe().fit(tiny_bench(data, BACKBONE))
    restored = LinearProbe().restore(Setting(data.task, kinds.get(kind), BACKBONE), fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))
    assert restored.trained_parameters == fitted.trained_parameters


def test_every_block_and_the_mix_compete_on_held_out_rows_of_train() -> None:
    fitted = LinearProbe().fit(tiny_bench(tiny_dataset(), BACKBONE))
    tried = fitted.facts["cross_validation"]
    assert set(tried) == {*map(str, range(BLOCKS + 1)), "mix"}
    assert tried[fitted.facts["block"]]["loss"] == min(found["loss"] for found in tried.values())
    assert fitted.facts["strength"] == tried[fitted.facts["block"]]["strength"]


def test_validation_plays_no_part() -> None:
    data = tiny_dataset()
    other = replace(data.validation, targets=1 - data.validation.targets)  # type: ignore[operator]
    turned = replace(data, splits={**data.splits, "validation": other})
    one, two = (LinearProbe().fit(tiny_bench(rows, BACKBONE)) for rows in (data, turned))
    assert one.facts == two.facts
    assert np.array_equal(one.logits(data.test.examples), two.logits(data.test.examples))


@pytest.mark.parametrize("winner", ["0", "1", "mix"])
def test_the_winner_is_what_answers(winner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses are made up, so that each wins once; on the training rows the probe is its own linear fit."""
    data, seen = tiny_dataset(), {}
    names = iter([*map(str, reversed(range(BLOCKS + 1))), "mix"])

    def rigged(bench, features, rows, tally):  # type: ignore[no-untyped-def]
        name = next(names)
        seen[name] = features()
        return CrossValidation(strength=0.3, score=0.5, loss=float(name != winner))

    monkeypatch.setattr(linear_probe, "cross_validate", rigged)
    fitted = LinearProbe().fit(tiny_bench(data, BACKBONE))
    assert fitted.facts["block"] == winner
    targets = torch.from_numpy(data.train.targets)
    expected = fit_linear(StandardisedFeatures.of(seen[winner].clone()), targets, kinds.get(data.task.kind), 2, 0.3)
    np.testing.assert_allclose(fitted.logits(data.train.examples), expected.logits(seen[winner]).numpy(), atol=1e-4)
    shares = fitted.delta()["shares"]
    assert (shares > 0).all() if winner == "mix" else shares.tolist() == [float(winner == str(b)) for b in range(3)]
    layer = BACKBONE.card.width * 2 + 2
    assert fitted.trained_parameters == layer + (BLOCKS + 1 if winner == "mix" else 0)


def test_the_last_block_wins_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_probe, "cross_validate", lambda *_: CrossValidation(strength=0.3, score=0.5, loss=1.0))
    assert LinearProbe().fit(tiny_bench(tiny_dataset(), BACKBONE)).facts["block"] == str(BLOCKS)


def test_answers_do_not_depend_on_the_batch() -> None:
    data = tiny_dataset()
    fitted = LinearProbe().fit(tiny_bench(data, BACKBONE))
    together = fitted.logits(data.test.examples)
    for row, example in enumerate(data.test.examples):
        np.testing.assert_allclose(fitted.logits([example])[0], together[row], atol=1e-4)


def test_a_pair_in_two_towers() -> None:
    assert isinstance(BACKBONE, TransformerBackbone)
    towers = replace(BACKBONE, card=replace(BACKBONE.card, towers=2, revision="two towers"))
    data = tiny_dataset(pair=True)
    fitted = LinearProbe().fit(tiny_bench(data, towers))
    assert fitted.delta()["weight"].shape == (2, 2 * BACKBONE.card.width)
    restored = LinearProbe().restore(
        Setting(data.task, kinds.get("classification"), towers), fitted.delta(), fitted.facts
    )
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))


def test_cost_is_what_runs() -> None:
    data = tiny_dataset()
    fitted = LinearProbe().fit(tiny_bench(data, BACKBONE))
    one = data.test.examples[:1]
    found = []
    for block in range(3):
        fitted.shares = torch.eye(3)[block]
        _, expected = count_flops(lambda: fitted.logits(one))
        assert fitted.flops(one) == (expected, "counter")
        found.append(expected)
    head, first, second = found[0], found[1] - found[0], found[2] - found[1]
    assert head < 1000 < 50_000 < first == second  # blocks above the one that is read do not run
