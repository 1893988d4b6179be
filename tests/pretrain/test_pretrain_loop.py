"""Steps: parts that add up, a state that is restored exactly, a loss that is no number."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.pretrain import pretrain_loop
from graftwork.pretrain.corpus_tokens import TokenisedCorpus
from graftwork.pretrain.objective import Batch, ByGradient
from graftwork.pretrain.objectives.causal import Causal
from graftwork.pretrain.objectives.masked import Masked
from graftwork.pretrain.objectives.replaced_token import ReplacedToken
from graftwork.pretrain.pretrain_folder import PretrainProgress
from graftwork.pretrain.pretrain_loop import LoopHooks, PretrainPlan, PretrainState, go_on
from graftwork.pretrain.validation_loss import HeldOut
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.train.checkpoint_files import Checkpoints
from graftwork.train.loop import Diverged

STEPS = 6


def training(
    tokens: TokenisedCorpus, vocabulary: Vocabulary, objective: ByGradient, size: dict[str, Any], **changes: Any
) -> PretrainState:
    recipe = replace(objective.recipe, batch=8, length=24, **changes)
    rows = objective.packed(tokens.train, 24, vocabulary)
    held = HeldOut(objective.packed(tokens.validation, 24, vocabulary), tokens.validation, 8, 24)
    plan = PretrainPlan(objective, vocabulary, recipe, 0, {24: rows}, {"validation": held})
    return PretrainState(plan, objective.network(objective.sizes["tiny"] | size, vocabulary, 24, 0))


def weights(training: PretrainState) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in training.network.named_parameters()}


DROPPING: list[tuple[ByGradient, dict[str, Any]]] = [
    (Masked(), {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}),
    (ReplacedToken(), {"hidden_dropout_prob": 0.1}),
    (Causal(), {"resid_pdrop": 0.1, "attn_pdrop": 0.1, "embd_pdrop": 0.1}),
]


@pytest.mark.parametrize(("objective", "size"), DROPPING, ids=["masked", "replaced_token", "causal"])
def test_a_restored_training_goes_on_exactly(
    objective: ByGradient, size: dict[str, Any], tokens: TokenisedCorpus, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    whole = training(tokens, vocabulary, objective, size)
    lines = [whole.step(step, STEPS) for step in range(STEPS)]
    first = training(tokens, vocabulary, objective, size)
    for step in range(3):
        assert first.step(step, STEPS) == lines[step]
    checkpoints = Checkpoints(tmp_path, "run", dict)
    checkpoints.write(PretrainProgress(3, STEPS).checkpoint(first.tensors()))
    first.step(3, STEPS)  # what comes after the checkpoint is lost
    torch.manual_seed(99)
    found = checkpoints.read()
    assert found is not None
    second = training(tokens, vocabulary, objective, size)
    second.restore(found.tensors)
    assert [second.step(step, STEPS) for step in range(PretrainProgress.of(found).step, STEPS)] == lines[3:]
    expected = weights(whole)
    for name, weight in weights(second).items():
        assert torch.equal(weight, expected[name]), name


def test_passes_add_up_to_the_batch(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    one = training(tokens, vocabulary, Masked(), {})
    many = training(tokens, vocabulary, Masked(), {}, rows_at_once=3)
    for step in range(3):
        whole, parts = one.step(step, STEPS), many.step(step, STEPS)
        assert parts["loss"] == pytest.approx(whole["loss"], rel=1e-6)
        assert parts["norm"] == pytest.approx(whole["norm"], rel=1e-5)


def test_nats_are_told_apart_from_other_losses(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    line = training(tokens, vocabulary, ReplacedToken(weight=7.0), {}, rows_at_once=3).step(0, STEPS)
    assert line["nats"] == pytest.approx(line["loss"] - 7 * line["replaced"], rel=1e-6)
    line = training(tokens, vocabulary, Causal(), {}).step(0, STEPS)
    assert line["nats"] == pytest.approx(line["loss"], rel=1e-6)


def test_what_a_step_sees_is_a_pure_function_of_seed_and_step(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    made = training(tokens, vocabulary, Masked(), {})
    fifth = made.batch(5, STEPS).tensors
    made.batch(1, STEPS)
    again, other = made.batch(5, STEPS).tensors, made.batch(4, STEPS).tensors
    assert all(torch.equal(fifth[name], again[name]) for name in fifth)
    assert not torch.equal(fifth["ids"], other["ids"])


def test_it_learns_and_counts(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    made = training(tokens, vocabulary, Causal(), {}, learning_rate=3e-3)
    flops, seconds = made.count(0, STEPS)
    assert flops > 6 * 8 * 23 * vocabulary.size * 128  # the output map alone
    assert seconds > 0
    logged: list[dict[str, Any]] = []
    progress = PretrainProgress(steps=STEPS)
    nothing = LoopHooks(
        lambda line: logged.append(dict(line)), lambda p, t, now: None, lambda p, loss: None, lambda: False
    )
    go_on(made, progress, 3, nothing)
    assert progress.step == STEPS
    scores = [line["validation"]["validation"] for line in logged if "validation" in line]
    assert len(scores) == 3
    assert scores[0]["nats"] > scores[1]["nats"] > scores[2]["nats"]
    assert scores[0]["perplexity"] == pytest.approx(vocabulary.size, rel=0.5)
    assert scores[2]["bits_per_byte"] < scores[2]["nats"]
    assert [line["step"] for line in logged if "sample" in line] == [3, 6]
    assert [line["tokens"] for line in logged if "loss" in line] == [8 * 24 * step for step in range(1, 7)]


def test_a_trial_pass_is_timed_to_its_end(
    tokens: TokenisedCorpus, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an accelerator, which a call returns from before the work is done."""
    made, seen = training(tokens, vocabulary, Causal(), {}), list[str]()
    made.plan = replace(made.plan, device="cuda")
    monkeypatch.setattr(Batch, "to", lambda self, device: self)
    monkeypatch.setattr(PretrainState, "_pass", lambda *_: seen.append("pass"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append("end"))
    monkeypatch.setattr(pretrain_loop.time, "perf_counter", lambda: float(len(seen)))
    assert made.count(0, STEPS)[1] == 2 and seen == ["pass", "end", "pass", "end"]


def test_a_budget_that_is_spent_ends_it(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    made, progress = training(tokens, vocabulary, Masked(), {}), PretrainProgress(steps=STEPS)
    go_on(made, progress, 3, LoopHooks(lambda line: None, lambda p, t, now: None, lambda p, loss: None, lambda: True))
    assert (progress.step, progress.steps, progress.planned) == (1, 1, STEPS)
    assert "1 of 6 steps" in progress.facts["stopped"]


def test_a_budget_that_is_spent_by_the_last_step_stopped_nothing(
    tokens: TokenisedCorpus, vocabulary: Vocabulary
) -> None:
    made, progress = training(tokens, vocabulary, Masked(), {}), PretrainProgress(steps=1)
    go_on(made, progress, 3, LoopHooks(lambda line: None, lambda p, t, now: None, lambda p, loss: None, lambda: True))
    assert (progress.step, progress.steps, progress.planned) == (1, 1, 1)
    assert "stopped" not in progress.facts


def test_a_loss_that_is_no_number(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    made = training(tokens, vocabulary, Masked(), {})
    with torch.no_grad():
        made.parameters[0].fill_(torch.nan)
    with pytest.raises(Diverged, match="step 1"):
        made.step(0, STEPS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_end_of_a_step_and_its_checkpoint(
    number: int, tokens: TokenisedCorpus, vocabulary: Vocabulary
) -> None:
    made, progress, kept = training(tokens, vocabulary, Masked(), {}), PretrainProgress(steps=STEPS), dict[int, bool]()

    def tell(progress: PretrainProgress, loss: float) -> None:
        if progress.step == 3:
            signal.raise_signal(number)

    def keep(progress: PretrainProgress, tensors: Any, now: bool) -> None:
        kept[progress.step] = now

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            go_on(made, progress, 3, LoopHooks(lambda line: None, keep, tell, lambda: False))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert kept == {1: False, 2: False, 3: True}


@pytest.mark.slow
def test_a_signal_in_a_validation_gives_it_up_and_it_comes_anew(
    tokens: TokenisedCorpus, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone_through(
        made: PretrainState, progress: PretrainProgress, lines: list[Any]
    ) -> list[tuple[PretrainProgress, dict[str, Any], Any]]:
        kept: list[tuple[PretrainProgress, dict[str, Any], Any]] = []

        def keep(progress: PretrainProgress, tensors: Any, now: bool) -> None:
            if now:
                kept.append((PretrainProgress.of(progress.checkpoint({})), clones(tensors()), list(lines)))

        with suppress(KeyboardInterrupt):
            go_on(made, progress, 3, LoopHooks(lines.append, keep, lambda p, loss: None, lambda: False))
        return kept

    validated, until = PretrainState.validated, [0]

    def interrupted(self: PretrainState) -> dict[str, dict[str, float]]:
        until[0] -= 1
        if until[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return validated(self)

    whole: list[Any] = []
    assert gone_through(training(tokens, vocabulary, Causal(), {}), PretrainProgress(steps=STEPS), whole) == []
    monkeypatch.setattr(PretrainState, "validated", interrupted)
    for number, step in ((1, 0), (2, 3), (3, STEPS)):
        until[0], lines = number, list[Any]()
        [(progress, tensors, so_far)] = gone_through(
            training(tokens, vocabulary, Causal(), {}), PretrainProgress(steps=STEPS), lines
        )
        assert (progress.step, progress.owes_validation, so_far) == (step, True, lines)
        again = training(tokens, vocabulary, Causal(), {})
        again.restore(tensors)
        assert gone_through(again, progress, lines) == [] and lines == whole and not progress.owes_validation


def clones(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}
