"""What is replaced, that the losses are transformers' own, and that what is kept is an ELECTRA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graftwork.errors import ConfigError
from graftwork.pretrain.corpus_tokens import TokenisedCorpus
from graftwork.pretrain.objective import IGNORED, Batch
from graftwork.pretrain.objectives.replaced_token import ReplacedToken, drawn_tokens
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.open_backbone import open_backbone

SIZE = ReplacedToken.sizes["tiny"]


@pytest.fixture
def batch(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> Batch:
    """8 rows of 34."""
    rows = ReplacedToken().packed(tokens.train, 34, vocabulary).rows(0, 0, 8)
    return ReplacedToken().prepare(rows, vocabulary, torch.Generator().manual_seed(0))


def test_every_chosen_token_is_masked(batch: Batch, vocabulary: Vocabulary) -> None:
    chosen = batch.tensors["labels"] != IGNORED
    assert batch.predicted == int(chosen.sum()) > 20
    assert torch.equal(batch.tensors["ids"] == vocabulary.mask, chosen)


def test_draws_follow_the_probabilities() -> None:
    shares = torch.tensor([0.5, 0.0, 0.3, 0.2])
    chance = (torch.arange(1000) + 0.5) / 1000
    ids = drawn_tokens(shares.log().expand(1000, 4), chance)
    assert torch.bincount(ids, minlength=4).tolist() == pytest.approx([500, 0, 300, 200], abs=1)


def test_the_losses_are_those_of_transformers(batch: Batch, vocabulary: Vocabulary) -> None:
    network = ReplacedToken().network(SIZE, vocabulary, 34, seed=0).eval()
    found = ReplacedToken(weight=7.0).loss(network, batch)
    ids, labels, chosen = batch.tensors["ids"], batch.tensors["labels"], batch.tensors["labels"] != IGNORED
    small = network.generator(input_ids=ids, labels=labels)
    shown = ids.clone()
    shown[chosen] = drawn_tokens(small.logits[chosen].detach(), batch.tensors["chance"][chosen])
    replaced = (shown != torch.where(chosen, labels, ids)).long()
    assert 0 < replaced.sum() <= chosen.sum()
    kept = network.discriminator(input_ids=shown, attention_mask=torch.ones_like(ids), labels=replaced)
    assert found.total.item() == pytest.approx((small.loss + 7 * kept.loss).item(), rel=1e-5)
    assert float(found.nats) / found.predicted == pytest.approx(small.loss.item(), rel=1e-5)


def test_parts_of_a_batch_add_up(batch: Batch, vocabulary: Vocabulary) -> None:
    network = ReplacedToken().network(SIZE, vocabulary, 34, seed=0).eval()
    whole, parts = (
        sum(ReplacedToken().loss(network, batch.part(*ends)).total.item() for ends in cuts)
        for cuts in ([(0, 8)], [(0, 3), (3, 8)])
    )
    assert parts == pytest.approx(whole, rel=1e-5)


def test_the_networks_share_their_embeddings_and_nothing_else(batch: Batch, vocabulary: Vocabulary) -> None:
    network = ReplacedToken().network(SIZE, vocabulary, 34, seed=0)
    one, two = (set(map(id, part.parameters())) for part in (network.discriminator, network.generator))
    assert len(one & two) == 3
    ReplacedToken().loss(network, batch).total.backward()
    assert all(weight.grad is not None for weight in network.parameters())
    assert network.generator.config.hidden_size == 32


def test_what_is_kept_opens_and_goes_on(vocabulary: Vocabulary, tmp_path: Path) -> None:
    objective = ReplacedToken()
    network = objective.network(SIZE, vocabulary, 34, seed=0)
    objective.save(network, vocabulary, tmp_path)
    assert open_backbone(f"hf:{tmp_path}", precision="fp32").card.blocks == 2
    again = objective.opened(tmp_path, seed=1)
    assert again.added == ["a generator"]
    named = dict(again.network.named_parameters())
    assert set(again.fresh) < set(named) and all(name.startswith("generator.") for name in again.fresh)
    kept = network.discriminator.state_dict()
    assert all(torch.equal(tensor, kept[name]) for name, tensor in again.network.discriminator.state_dict().items())


def test_bad_options() -> None:
    for options in ({"share": 1.0}, {"weight": 0.0}, {"generator": 0.0}):
        with pytest.raises(ConfigError, match="not possible"):
            ReplacedToken(**options)
