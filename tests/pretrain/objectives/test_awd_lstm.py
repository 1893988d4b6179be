"""AWD-LSTM pre-training: its step against a written-out computation, its streams, its folder, its samples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.core.example import Example
from graftwork.errors import ConfigError, DataError, IncompatibleModule
from graftwork.io.files import safe_load, write_tensors
from graftwork.pretrain.corpus_tokens import SplitTokens, TokenisedCorpus
from graftwork.pretrain.nt_asgd import NtAsgd
from graftwork.pretrain.objective import Batch, InOrder, Loss, OwnOptimiser, Writes
from graftwork.pretrain.objectives.awd_lstm import AwdLstmObjective, LanguageModel, VariedStreams, discriminative
from graftwork.pretrain.packing import Streams
from graftwork.pretrain.pretrain_folder import PretrainProgress
from graftwork.pretrain.pretrain_loop import PretrainPlan, PretrainState
from graftwork.pretrain.validation_loss import HeldOut
from graftwork.pretrain.vocabulary import BERT, Vocabulary
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.train.checkpoint_files import Checkpoints
from graftwork.train.optimiser import FlatAdamW

VOCABULARY = Vocabulary(tiny_tokenizer(), BERT)
SIZE = {"embedding_size": 6, "hidden_size": 9, "layers": 3, "max_length": 32}
UNDROPPED = AwdLstmObjective(dropout=0.0, activation=0.0, slowness=0.0)
Numbers = NDArray[np.float64]


def model(seed: int = 0) -> LanguageModel:
    drawn = UNDROPPED.network(SIZE, VOCABULARY, 8, seed)
    assert isinstance(drawn, LanguageModel)
    return drawn


def tokens_of(ids: Any) -> SplitTokens:
    return SplitTokens(np.asarray(ids, np.uint16), np.array([0, len(ids)]), bytes=len(ids), words=len(ids))


def ids_of(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY.size, (rows, length), generator=draw)


def batch_of(rows: torch.Tensor, state: Loss | None = None) -> Batch:
    prepared = UNDROPPED.prepare(rows, VOCABULARY, torch.Generator())
    return prepared if state is None else prepared.beside(state.state)


class WrittenOut:
    """The model in plain numpy, position by position, with the masks that it is given."""

    def __init__(self, network: LanguageModel, objective: AwdLstmObjective):
        self.weights = {name: weight.detach().double().numpy().copy() for name, weight in network.named_parameters()}
        self.objective, self.layers = objective, len(network.network.layers)

    def masks(self, rows: int) -> dict[str, Numbers]:
        """As torch draws them, in the order in which a pass asks for them."""
        drops, widths = self.objective.drops, (6, 9, 9, 6)

        def drawn(shape: tuple[int, ...], share: float) -> Numbers:
            return torch.nn.functional.dropout(torch.ones(shape), share).double().numpy()

        masks = {"embedding": drawn((VOCABULARY.size,), drops.embedding)}
        for number in range(self.layers):
            masks[f"entering {number}"] = drawn((rows, 1, widths[number]), drops.hidden if number else drops.input)
            masks[f"weight {number}"] = drawn((4 * widths[number + 1], widths[number + 1]), drops.weight)
        masks["read"] = drawn((rows, 1, widths[-1]), drops.output)
        return masks

    def loss(self, ids: NDArray[np.int64], masks: dict[str, Numbers], carried: list[tuple[Numbers, Numbers]]) -> float:
        weights = self.weights
        table = weights["network.embedding.weight"]
        sequence = table[ids[:, :-1]] * masks["embedding"][ids[:, :-1]][:, :, None]
        for number in range(self.layers):
            sequence = self._layer(number, sequence * masks[f"entering {number}"], masks, *carried[number])
        read = sequence * masks["read"]
        logits = read @ table.T + weights["decoder_bias"]
        shifted = logits - logits.max(axis=-1, keepdims=True)
        log_shares = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        nats = -np.take_along_axis(log_shares, ids[:, 1:, None], axis=-1).mean()
        changes = sequence[:, 1:] - sequence[:, :-1]
        own = self.objective
        return float(nats + own.activation * (read**2).mean() + own.slowness * (changes**2).mean())

    def _layer(
        self, number: int, sequence: Numbers, masks: dict[str, Numbers], hidden: Numbers, cell: Numbers
    ) -> Numbers:
        of = {name.rpartition(".")[2]: w for name, w in self.weights.items() if f"layers.{number}." in name}
        left = []
        for position in range(sequence.shape[1]):
            gates = sequence[:, position] @ of["weight_ih"].T + of["bias_ih"]
            gates = gates + hidden @ (of["weight_hh"] * masks[f"weight {number}"]).T + of["bias_hh"]
            taken, kept, candidate, shown = np.split(gates, 4, axis=1)
            cell = cell / (1 + np.exp(-kept)) + np.tanh(candidate) / (1 + np.exp(-taken))
            hidden = np.tanh(cell) / (1 + np.exp(-shown))
            left.append(hidden)
        return np.stack(left, axis=1)


def test_a_step_is_what_the_papers_write() -> None:
    """Every dropout, both penalties, tied weights and a carried state: the loss, and its gradient by differences."""
    objective = AwdLstmObjective(
        drop_embedding=0.2, drop_input=0.3, drop_hidden=0.25, drop_output=0.4, drop_weight=0.5, activation=2.0
    )
    network, rows = model(), ids_of(3, 6)
    before = objective.loss(network.eval(), batch_of(ids_of(3, 9, seed=1)))
    network.train()
    torch.manual_seed(11)
    loss = objective.loss(network, batch_of(rows, before))
    loss.total.backward()  # type: ignore[no-untyped-call]

    written = WrittenOut(network, objective)
    torch.manual_seed(11)
    masks = written.masks(3)
    assert all(0 in mask for mask in masks.values())
    carried = [
        tuple(before.state[f"{part}.{number}"].double().numpy() for part in ("hidden", "cell")) for number in range(3)
    ]
    assert loss.total.item() == pytest.approx(written.loss(rows.numpy(), masks, carried), rel=1e-5)  # type: ignore[arg-type]
    for name, weight in network.named_parameters():
        assert weight.grad is not None
        place = np.unravel_index(int(weight.grad.abs().argmax()), tuple(weight.shape))
        around = []
        for moved in (1e-5, -1e-5):
            written.weights[name][place] += moved
            around.append(written.loss(rows.numpy(), masks, carried))  # type: ignore[arg-type]
            written.weights[name][place] -= moved
        assert float(weight.grad[place]) == pytest.approx((around[0] - around[1]) / 2e-5, rel=1e-3), name


def test_the_state_carries_the_past_over_a_step() -> None:
    network, rows = model().eval(), ids_of(2, 13)
    whole = UNDROPPED.loss(network, batch_of(rows))
    first = UNDROPPED.loss(network, batch_of(rows[:, :8]))
    second = UNDROPPED.loss(network, batch_of(rows[:, 7:], first))
    alone = UNDROPPED.loss(network, batch_of(rows[:, 7:]))
    assert first.predicted + second.predicted == whole.predicted == 24
    torch.testing.assert_close(first.nats + second.nats, whole.nats)
    assert abs(float(alone.nats - second.nats)) > 1e-4
    torch.testing.assert_close(second.state, whole.state)


def test_the_parts_of_a_batch_add_up() -> None:
    objective, network = replace(UNDROPPED, activation=2.0, slowness=1.0), model()
    batch = batch_of(ids_of(5, 8))
    whole = objective.loss(network, batch)
    parts = [objective.loss(network, batch.part(*rows)) for rows in ((0, 2), (2, 5))]
    torch.testing.assert_close(parts[0].total + parts[1].total, whole.total)
    assert set(whole.terms) == {"activation", "slowness"}
    for name, term in whole.terms.items():
        torch.testing.assert_close(parts[0].terms[name] + parts[1].terms[name], term)


def test_dropout_is_of_training_only() -> None:
    objective, network, batch = AwdLstmObjective(), model(), batch_of(ids_of(2, 8))
    torch.manual_seed(3)
    one, other = (float(objective.loss(network, batch).nats) for _ in range(2))
    assert one != other
    network.eval()
    assert float(objective.loss(network, batch).nats) == float(UNDROPPED.loss(network, batch).nats)
    assert AwdLstmObjective(dropout=0.5).drops.input == 0.125


def test_it_writes_a_backbone_that_it_can_go_on_from(tmp_path: Path) -> None:
    network = model()
    with torch.no_grad():
        network.decoder_bias.normal_()
    UNDROPPED.save(network, VOCABULARY, tmp_path)
    opened = UNDROPPED.opened(tmp_path, 0)
    assert not opened.added and opened.vocabulary.specials == VOCABULARY.specials
    for (name, weight), (again, loaded) in zip(
        network.named_parameters(), opened.network.named_parameters(), strict=True
    ):
        assert name == again and torch.equal(weight, loaded)
    backbone = open_backbone(f"hf:{tmp_path}", precision="fp32")
    encoded = backbone.encode([Example("1", {"text_a": "a film", "text_b": "so bad"})])
    first, second = VOCABULARY.encode(["a film", "so bad"])
    assert encoded.ids == [[VOCABULARY.end, *first, VOCABULARY.end, *second]]
    with torch.no_grad():
        states = backbone.features(backbone.collate(encoded, [0])).sequence
        expected, _ = network.eval().states(torch.tensor(encoded.ids), [], UNDROPPED.drops)
    torch.testing.assert_close(states, expected)
    assert backbone.card.max_length == 32


def test_a_decoder_that_is_missing_is_said(tmp_path: Path) -> None:
    UNDROPPED.save(model(), VOCABULARY, tmp_path)
    weights = safe_load(tmp_path / "model.safetensors", mapped=False)
    del weights["decoder.bias"]
    write_tensors(tmp_path / "model.safetensors", weights)
    opened = UNDROPPED.opened(tmp_path, 0)
    assert (opened.added, opened.fresh) == (["a bias of the decoder"], ["decoder_bias"])
    assert set(opened.fresh) < {name for name, _ in opened.network.named_parameters()}
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"layers": 2}))
    with pytest.raises(IncompatibleModule, match="not those of the network"):
        UNDROPPED.opened(tmp_path, 0)


def test_layers_learn_the_slower_the_lower() -> None:
    rates = discriminative(model(), 2.0)
    assert rates["decoder_bias"] == rates["network.embedding.weight"] == 1.0
    assert [rates[f"network.layers.{number}.weight_hh"] for number in range(3)] == [0.125, 0.25, 0.5]
    assert set(discriminative(model(), 1.0).values()) == {1.0}


def test_either_optimiser_takes_the_rates() -> None:
    assert isinstance(UNDROPPED, OwnOptimiser)
    recipe = replace(AwdLstmObjective.recipe, learning_rate=0.5)
    network = model()
    network.learned = True
    plain = replace(UNDROPPED, divisor=2.0).optimiser(network, recipe)
    averaged = replace(UNDROPPED, divisor=2.0, updates="nt_asgd").optimiser(network, recipe)
    assert isinstance(plain, FlatAdamW) and isinstance(averaged, NtAsgd)
    assert plain.rates == averaged.rates == discriminative(network, 2.0)
    assert (plain.learning_rate, averaged.clip) == (0.5, recipe.clip)
    fresh = UNDROPPED.optimiser(model(), recipe)
    assert isinstance(fresh, FlatAdamW) and not fresh.rates


def test_the_streams_are_in_order() -> None:
    tokens = tokens_of(range(100))
    even = UNDROPPED.packed(tokens, 8, VOCABULARY)
    assert isinstance(even, InOrder) and isinstance(even, Streams)
    assert even.rows(0, 1, 2)[:, 0].tolist() == [8, 58]


def test_streams_of_varied_steps_are_read_without_a_gap() -> None:
    tokens = tokens_of(np.arange(4000))
    rows = replace(UNDROPPED, bptt="varied").packed(tokens, 20, VOCABULARY)
    assert isinstance(rows, VariedStreams) and isinstance(rows, InOrder)
    steps, beginnings, lengths = rows.steps(4), [], []
    for epoch in range(3):
        last = None
        for step in range(epoch * steps, (epoch + 1) * steps):
            window = rows.rows(5, step, 4)
            assert torch.equal(window, rows.rows(5, step, 4))
            assert rows.begins(step, 4) == (last is None)
            assert window[:, 0].tolist() == [int(window[0, 0]) + 1000 * row for row in range(4)]
            assert window.diff(dim=1).unique().tolist() == [1]
            if last is None:
                beginnings.append(int(window[0, 0]))
            else:
                assert torch.equal(window[:, 0], last[:, -1])
            lengths.append(window.shape[1] - 1)
            last = window
        assert last is not None and int(last[0, -1]) < 1000
    assert len(set(beginnings)) == 3 and max(beginnings) < 20
    assert len(set(lengths)) > 5 and min(lengths) >= 10 and max(lengths) <= 30
    assert not torch.equal(rows.rows(5, 0, 4)[:, 0], rows.rows(6, 0, 4)[:, 0])


@pytest.mark.parametrize("bptt", ["fixed", "varied"])
def test_as_many_rows_as_there_are_make_a_batch(bptt: str) -> None:
    for count in range(11, 80, 3):
        rows = replace(UNDROPPED, bptt=bptt).packed(tokens_of(range(count)), 10, VOCABULARY)
        for step in range(3):
            assert rows.rows(0, step, len(rows)).shape[0] == len(rows) > 0


@pytest.mark.parametrize("bptt", ["fixed", "varied"])
def test_a_corpus_smaller_than_a_batch_is_refused(bptt: str) -> None:
    rows = replace(UNDROPPED, bptt=bptt).packed(tokens_of(range(30)), 10, VOCABULARY)
    with pytest.raises(DataError, match="smaller than one batch"):
        rows.rows(0, 0, 4)


def training(objective: AwdLstmObjective, tokens: TokenisedCorpus, vocabulary: Vocabulary) -> PretrainState:
    recipe = replace(
        objective.recipe, batch=8, length=20, learning_rate=3.0 if objective.updates == "nt_asgd" else 1e-2
    )
    rows = {20: objective.packed(tokens.train, 20, vocabulary)}
    held = HeldOut(objective.packed(tokens.validation, 20, vocabulary), tokens.validation, 4, 20)
    plan = PretrainPlan(objective, vocabulary, recipe, 0, rows, {"validation": held})
    return PretrainState(plan, objective.network(SIZE, vocabulary, 20, 0))


@pytest.mark.parametrize("updates", ["adamw", "nt_asgd"])
def test_a_restored_training_goes_on_exactly(
    updates: str, tokens: TokenisedCorpus, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    """The carried state, the averages and the cuts of varied steps are all in the checkpoint or in the step."""
    objective, steps = AwdLstmObjective(bptt="varied", updates=updates), 9
    whole = training(objective, tokens, vocabulary)
    if updates == "nt_asgd":
        assert isinstance(whole.optimiser, NtAsgd)
        for nats in (1.0, *[2.0] * 6):
            whole.optimiser.validated(nats)
    for step in range(4):
        whole.step(step, steps)
    checkpoints = Checkpoints(tmp_path, "run", dict)
    checkpoints.write(PretrainProgress(4, steps).checkpoint(whole.tensors()))
    lines = [whole.step(step, steps) for step in range(4, steps)]
    torch.manual_seed(99)
    found = checkpoints.read()
    assert found is not None
    second = training(objective, tokens, vocabulary)
    second.restore(found.tensors)
    assert [second.step(step, steps) for step in range(4, steps)] == lines
    assert second.validated() == whole.validated()
    ended, expected = second.tensors(), whole.tensors()
    assert ended.keys() == expected.keys() and "state.0.cell.2" in ended
    for name, tensor in ended.items():
        assert torch.equal(tensor, expected[name]), name


@pytest.mark.parametrize("bptt", ["fixed", "varied"])
def test_no_state_is_carried_to_rows_of_another_length(
    bptt: str, tokens: TokenisedCorpus, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = training(AwdLstmObjective(bptt=bptt), tokens, vocabulary)
    short = made.plan.objective.packed(tokens.train, 10, vocabulary)
    recipe = replace(made.plan.recipe, short_length=10, short_share=0.5)
    made.plan = replace(made.plan, recipe=recipe, train={10: short, **made.plan.train})
    carried, run = list[bool](), PretrainState._pass

    def noted(training: PretrainState, part: Batch, number: int) -> Loss:
        carried.append("hidden.0" in part.tensors)
        return run(training, part, number)

    monkeypatch.setattr(PretrainState, "_pass", noted)
    for step in range(6):
        made.step(step, 6)
    assert carried == [False, True, True, False, True, True]


@pytest.mark.parametrize("updates", ["adamw", pytest.param("nt_asgd", marks=pytest.mark.slow)])
def test_it_learns(updates: str, tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    made = training(AwdLstmObjective(dropout=0.5, updates=updates), tokens, vocabulary)
    before = made.validated()["validation"]["nats"]
    losses = [made.step(step, 40)["loss"] for step in range(40)]
    assert made.validated()["validation"]["nats"] < before - 0.3
    assert sum(losses[-5:]) < sum(losses[:5]) - 1.5


def test_a_sample_is_drawn_from_its_seed_and_leaves_no_trace() -> None:
    assert isinstance(UNDROPPED, Writes)
    network = model().train()
    state = torch.get_rng_state()
    one, same, other = (UNDROPPED.sample(network, VOCABULARY, "a film", 12, seed) for seed in (1, 1, 2))
    assert one == same != other
    assert network.training and torch.equal(torch.get_rng_state(), state)


@torch.no_grad()
def test_a_sample_follows_the_state() -> None:
    """Token by token with what is carried, as one pass over all of them."""
    network, draw = model().eval(), torch.Generator().manual_seed(4)
    for weight in network.parameters():
        weight.mul_(5.0)  # or all that stands before a token would hardly move it
    ids = [VOCABULARY.end, *VOCABULARY.encode(["a film"])[0]]
    for _ in range(8):
        states, _ = network.states(torch.tensor([ids]), [], UNDROPPED.drops)
        values, tokens = network.logits(states[0, -1]).topk(40)
        ids.append(int(tokens[torch.multinomial(values.softmax(dim=0), 1, generator=draw)]))
    assert VOCABULARY.end not in ids[1:]
    assert UNDROPPED.sample(network, VOCABULARY, "a film", 8, 4) == VOCABULARY.decode(ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop_weight": 1.0}, "drop_weight is out of range"),
        ({"drop_input": 0.5, "dropout": 2.0}, "drop_input is out of range"),
        ({"drop_hidden": -0.1}, "drop_hidden is out of range"),
        ({"divisor": 0.0}, "divisor"),
        ({"activation": -1.0}, "penalties"),
        ({"bptt": "long"}, "unknown bptt 'long'"),
        ({"updates": "sgd"}, "unknown updates 'sgd'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AwdLstmObjective(**options)


@pytest.mark.parametrize("size", [{"width": 3}, {"layers": 0}, {"hidden_size": "big"}])
def test_sizes_that_make_no_network(size: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        UNDROPPED.network(size, VOCABULARY, 8, 0)
