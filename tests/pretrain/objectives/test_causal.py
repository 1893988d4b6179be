"""That the loss is transformers' own, and that it can write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.errors import ConfigError
from graftwork.pretrain.corpus_tokens import TokenisedCorpus
from graftwork.pretrain.objectives.causal import Causal
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.open_backbone import open_backbone

SIZE = Causal.sizes["tiny"]


def test_the_loss_is_that_of_transformers(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    network = Causal().network(SIZE, vocabulary, 32, 0).eval()
    rows = Causal().packed(tokens.train, 32, vocabulary).rows(0, 0, 8)
    assert (rows[:, 0] == vocabulary.start).all()
    batch = Causal().prepare(rows, vocabulary, torch.Generator())
    own = Causal().loss(network, batch)
    theirs = network(input_ids=rows, labels=rows).loss
    assert own.total.item() == pytest.approx(theirs.item(), rel=1e-6)
    assert own.predicted == batch.predicted == 8 * 31
    assert own.nats.item() == pytest.approx(theirs.item() * 8 * 31, rel=1e-5)


def test_gpt_1(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    size = {"model_type": "openai-gpt", "n_embd": 16, "n_layer": 1, "n_head": 2}
    network = Causal(positions="sinusoidal").network(size, vocabulary, 32, 0).eval()
    rows = Causal().packed(tokens.train, 32, vocabulary).rows(0, 0, 4)
    own = Causal().loss(network, Causal().prepare(rows, vocabulary, torch.Generator()))
    assert own.total.item() == pytest.approx(network(input_ids=rows, labels=rows).loss.item(), rel=1e-6)


def test_samples_are_repeatable(vocabulary: Vocabulary) -> None:
    network = Causal().network(SIZE, vocabulary, 16, 0).train()
    one, two, three = (Causal().sample(network, vocabulary, "the cat", 20, seed) for seed in (3, 3, 4))
    assert one == two != three
    assert one.startswith("the cat")
    assert network.training


def test_what_is_saved_opens_as_a_backbone(vocabulary: Vocabulary, tmp_path: Path) -> None:
    network = Causal().network(SIZE, vocabulary, 40, 0)
    Causal().save(network, vocabulary, tmp_path)
    card = open_backbone(f"hf:{tmp_path}", precision="fp32").card
    assert (card.family, card.pooling, card.max_length) == ("gpt2", "last", 40)
    again = Causal().opened(tmp_path, 0)
    assert (again.longest, list(again.added)) == (40, [])
    for (name, one), (_, two) in zip(network.named_parameters(), again.network.named_parameters(), strict=True):
        assert torch.equal(one, two), name


@pytest.mark.parametrize(
    "size", [SIZE, {"model_type": "openai-gpt", "n_embd": 16, "n_layer": 1, "n_head": 2}], ids=["gpt2", "openai-gpt"]
)
def test_sinusoids_of_a_backbone_do_not_learn_either(
    size: dict[str, Any], vocabulary: Vocabulary, tmp_path: Path
) -> None:
    fixed = Causal(positions="sinusoidal")
    fixed.save(fixed.network(size, vocabulary, 32, 0), vocabulary, tmp_path / "fixed")
    network = fixed.opened(tmp_path / "fixed", 0).network
    assert [weight.shape[0] for weight in network.parameters() if not weight.requires_grad] == [32]
    Causal().save(Causal().network(size, vocabulary, 32, 0), vocabulary, tmp_path / "learned")
    with pytest.raises(ConfigError, match="are learned ones"):
        fixed.opened(tmp_path / "learned", 0)


@pytest.mark.parametrize("name", ["n_positions", "max_position_embeddings"])
def test_a_size_has_room_for_the_rows(name: str, vocabulary: Vocabulary) -> None:
    for places, message in ((16, "at most 16"), ("x", "not a gpt2 configuration")):
        with pytest.raises(ConfigError, match=message):
            Causal().network({**SIZE, name: places}, vocabulary, 17, 0)
