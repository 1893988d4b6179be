"""Which words each direction sees, what the softmax makes of them, and the backbone that is left."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.nn.character_ids import character_ids
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import TokenisedCorpus, tokenise
from graftwork.pretrain.objective import Batch
from graftwork.pretrain.objectives.bidirectional import Bidirectional, TrainedBiLM, log_uniform
from graftwork.pretrain.pretraining import pretrain
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import check_backbone

SIZE: dict[str, Any] = {
    "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8], [3, 8]], "n_highway": 1, "max_characters_per_token": 50,
                 "activation": "relu"},
    "lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3,
             "use_skip_connections": True},
}  # fmt: skip
LENGTH, ROWS = 12, 4
FULL = Bidirectional(predicted=20, samples=0)


@pytest.fixture(scope="module")
def words(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return learn(open_corpus([corpus]), "characters", tmp_path_factory.mktemp("vocabularies"), lowercase=False)


@pytest.fixture(scope="module")
def tokens(corpus: Path, words: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> TokenisedCorpus:
    return tokenise(open_corpus([corpus], validation=0.1), words, tmp_path_factory.mktemp("tokens"))


def network_of(objective: Bidirectional, words: Vocabulary) -> TrainedBiLM:
    network = objective.network(SIZE, words, LENGTH, 0)
    assert isinstance(network, TrainedBiLM)
    return network


def batch_of(objective: Bidirectional, tokens: TokenisedCorpus, words: Vocabulary) -> Batch:
    rows = objective.packed(tokens.train, LENGTH, words).rows(0, 0, ROWS)
    return objective.prepare(rows, words, torch.Generator().manual_seed(0))


def test_every_word_is_predicted_once_by_each_direction(tokens: TokenisedCorpus, words: Vocabulary) -> None:
    network, batch = network_of(FULL, words).eval(), batch_of(FULL, tokens, words)
    loss, ids = FULL.loss(network, batch), batch.tensors["ids"]
    assert (ids[:, 0] == words.start).all()
    assert (ids[:, -1] == words.end).all()
    forward, backward = network(ids)
    expected = 0.0
    for row in range(ROWS):
        for at in range(1, LENGTH - 1):
            label = int(ids[row, at]) if ids[row, at] < 20 else words.unk
            for read in (forward[row, at - 1], backward[row, at + 1]):
                expected -= network.softmax(read).log_softmax(dim=0)[label].item()
    assert loss.predicted == batch.predicted == 2 * ROWS * (LENGTH - 2)
    assert float(loss.nats) == pytest.approx(expected, rel=1e-5)
    assert float(loss.total.detach()) == pytest.approx(expected / loss.predicted, rel=1e-5)


def test_no_direction_sees_what_it_predicts(tokens: TokenisedCorpus, words: Vocabulary) -> None:
    network, ids = network_of(FULL, words).eval(), batch_of(FULL, tokens, words).tensors["ids"]
    other = ids.clone()
    other[:, 5] = (ids[:, 5] + 1) % words.size
    with torch.no_grad():
        pairs = list(zip(network(ids), network(other), strict=True))
    forward, backward = [(one != two).any(dim=2).any(dim=0).tolist() for one, two in pairs]
    assert forward == [False] * 5 + [True] * (LENGTH - 5)
    assert backward == [True] * 6 + [False] * (LENGTH - 6)


def test_the_parts_of_a_batch_add_up(tokens: TokenisedCorpus, words: Vocabulary) -> None:
    objective = Bidirectional(samples=8, dropout=0.0)
    network, batch = network_of(objective, words).train(), batch_of(objective, tokens, words)
    whole = objective.loss(network, batch).total.item()
    parts = [objective.loss(network, batch.part(start, start + 1)).total.item() for start in range(ROWS)]
    assert sum(parts) == pytest.approx(whole, rel=1e-5)


def test_a_sample_stands_for_the_vocabulary(tokens: TokenisedCorpus, words: Vocabulary) -> None:
    """The mean over many draws is near the full softmax, and nearer with more drawn words."""
    objective = Bidirectional(predicted=40, samples=0, dropout=0.0)
    network, batch = network_of(objective, words).train(), batch_of(objective, tokens, words)
    torch.nn.init.normal_(network.softmax.weight)
    full = float(objective.loss(network, batch).total.detach())
    away = []
    for count in (8, 2000):
        sampled = replace(objective, samples=count)
        losses = []
        for seed in range(10):
            rows = sampled.prepare(batch.tensors["ids"], words, torch.Generator().manual_seed(seed))
            losses.append(float(sampled.loss(network, rows).total.detach()))
        away.append(abs(sum(losses) / len(losses) - full))
    assert away[1] < 0.05 * full
    assert away[1] < away[0]
    network.eval()
    assert float(sampled.loss(network, rows).total.detach()) == pytest.approx(full)  # validation takes the full one


def test_frequent_words_are_drawn_more_often() -> None:
    drawn = log_uniform(20_000, 50, torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn, minlength=50) / len(drawn)
    expected = torch.tensor([math.log((k + 2) / (k + 1)) / math.log(51) for k in range(50)])
    torch.testing.assert_close(counts, expected, atol=0.01, rtol=0)
    assert float(expected.sum()) == pytest.approx(1.0)


def test_what_is_saved_opens_as_a_backbone_and_goes_on(words: Vocabulary, tmp_path: Path) -> None:
    network = network_of(FULL, words)
    FULL.save(network, words, tmp_path)
    backbone = open_backbone(f"hf:{tmp_path}", precision="fp32")
    assert (backbone.card.family, backbone.card.width, backbone.card.blocks) == ("elmo", 16, 2)
    check_backbone(backbone, absent=backbone.card.lacks)
    again = FULL.opened(tmp_path, 1)
    assert (list(again.added), again.vocabulary.revision) == ([], words.revision)
    for (name, one), (_, two) in zip(network.named_parameters(), again.network.named_parameters(), strict=True):
        assert torch.equal(one, two), name
    other = replace(FULL, predicted=10).opened(tmp_path, 1)
    assert list(other.added) == ["a softmax over 10 words"]
    assert list(other.fresh) == ["softmax.weight", "softmax.bias"]


def test_the_backbone_reads_as_it_was_trained(words: Vocabulary, tmp_path: Path) -> None:
    """The same words between the same boundaries have the same states."""
    network, text = network_of(FULL, words).eval(), "my old friend remembers the letter ."
    FULL.save(network, words, tmp_path)
    backbone = open_backbone(f"hf:{tmp_path}", precision="fp32")
    ids = torch.tensor([[words.start, *words.encode([text])[0], words.end]])
    inputs = backbone.collate(backbone.encode([Example("x/1", {"text": text})]), [0])
    with torch.no_grad():
        torch.testing.assert_close(backbone.states(inputs)[-1], torch.cat(network(ids), dim=-1))
    assert inputs["characters"][0, 2].tolist() == character_ids("old")


def test_it_says_how_many_words_count_as_one(tokens: TokenisedCorpus, words: Vocabulary) -> None:
    (said,) = FULL.remarks(tokens.validation, words)
    share = 100 * float((tokens.validation.ids >= 20).mean())
    assert 0 < share < 100
    assert said.startswith(f"{share:.2g} % of the held-out words are not among the 20 that are predicted")
    assert Bidirectional(predicted=0).remarks(tokens.validation, words) == []


@pytest.mark.parametrize("option", [{"predicted": -1}, {"samples": -1}, {"dropout": 1.0}])
def test_bad_options_are_named(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        Bidirectional(**option)  # type: ignore[arg-type]


def test_a_run_learns_and_is_a_backbone(corpus: Path, tmp_path: Path, own_home: Path) -> None:
    size = tmp_path / "options.json"
    size.write_text(str(SIZE).replace("'", '"').replace("True", "true"))
    done = pretrain(
        corpus, objective="bidirectional:samples=16", size=str(size), steps=20, runs=tmp_path / "runs", validation=0.1,
        recipe={"batch": 8, "length": 16, "learning_rate": 0.02}, precision="fp32", device="cpu",
    )  # fmt: skip
    before, after = (done.result.facts[when]["validation"]["nats"] for when in ("before", "after"))
    assert after < before - 0.5
    assert open_backbone(str(done.folder), precision="fp32").card.family == "elmo"
