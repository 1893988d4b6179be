"""What is masked, and that the loss is transformers' own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graftwork.errors import ConfigError, UnknownName
from graftwork.pretrain.corpus_tokens import TokenisedCorpus
from graftwork.pretrain.objective import IGNORED, Batch
from graftwork.pretrain.objectives.masked import Masked, pairs
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrained.open_backbone import open_backbone

SIZE = Masked.sizes["tiny"]


def draw(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def rows(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> torch.Tensor:
    """(64, 66)"""
    return Masked().packed(tokens.train, 66, vocabulary).rows(0, 0, 64)


def test_rows_are_framed(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    assert rows.shape == (64, 66)
    assert (rows[:, 0] == vocabulary.start).all()
    assert (rows[:, -1] == vocabulary.end).all()


def test_shares_of_what_is_masked(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    batch = Masked().prepare(rows, vocabulary, draw())
    ids, labels = batch.tensors["ids"], batch.tensors["labels"]
    chosen = labels != IGNORED
    special = torch.isin(rows, torch.tensor(vocabulary.special_ids))
    assert not (chosen & special).any()
    assert (chosen.sum(1) == (0.15 * (~special).sum(1)).round()).all()
    assert batch.predicted == int(chosen.sum()) > 500
    assert torch.equal(labels[chosen], rows[chosen])
    assert torch.equal(ids[~chosen], rows[~chosen])
    shown = ids[chosen]
    masked = (shown == vocabulary.mask).float().mean()
    kept = (shown == labels[chosen]).float().mean()
    assert masked.item() == pytest.approx(0.8, abs=0.05)
    assert kept.item() == pytest.approx(0.1, abs=0.04)
    assert not torch.isin(shown[shown != vocabulary.mask], torch.tensor(vocabulary.special_ids)).any()


def test_masks_are_a_pure_function_of_the_draw(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    torch.manual_seed(1)
    one = Masked().prepare(rows, vocabulary, draw(7)).tensors["ids"]
    torch.manual_seed(2)
    assert torch.equal(one, Masked().prepare(rows, vocabulary, draw(7)).tensors["ids"])
    assert not torch.equal(one, Masked().prepare(rows, vocabulary, draw(8)).tensors["ids"])


def test_static_masks_depend_on_the_row_alone(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    static = Masked(masking="static")
    one = static.prepare(rows, vocabulary, draw(1)).tensors["ids"]
    turned = static.prepare(rows.flip(0), vocabulary, draw(2)).tensors["ids"]
    assert torch.equal(one, turned.flip(0))
    assert (one == vocabulary.mask).any(1).all()


def test_whole_words_are_masked_whole(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    chosen = Masked(unit="words").prepare(rows, vocabulary, draw()).tensors["labels"] != IGNORED
    inside = torch.from_numpy(vocabulary.inside)[rows]
    assert inside.any()
    goes_on = inside[:, 1:] & ~torch.isin(rows[:, :-1], torch.tensor(vocabulary.special_ids))
    assert torch.equal(chosen[:, 1:][goes_on], chosen[:, :-1][goes_on])
    plain = Masked().prepare(rows, vocabulary, draw()).tensors["labels"] != IGNORED
    assert not torch.equal(plain[:, 1:][goes_on], plain[:, :-1][goes_on])
    assert 0.1 < chosen.float().mean().item() < 0.16


def test_a_piece_behind_a_special_token_is_masked_as_often_as_others(
    rows: torch.Tensor, vocabulary: Vocabulary
) -> None:
    special = torch.isin(rows, torch.tensor(vocabulary.special_ids))
    cut = torch.from_numpy(vocabulary.inside)[rows][:, 1:] & special[:, :-1]  # rows that begin inside a word
    assert cut.any()
    drawn = (Masked(unit="words").prepare(rows, vocabulary, draw(seed)).tensors["labels"] for seed in range(200))
    masked = torch.cat([(labels[:, 1:] != IGNORED)[cut] for labels in drawn])
    assert 0.08 < masked.float().mean().item() < 0.25


@pytest.mark.parametrize("second", ["next_sentence", "sentence_order"])
def test_pairs(second: str, tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    rows = Masked(second=second).packed(tokens.train, 40, vocabulary).rows(0, 0, 64)
    assert rows.shape == (64, 37)
    made, types, false = pairs(rows, vocabulary, draw(), second)
    assert made.shape == types.shape == (64, 40)
    assert 16 < int(false.sum()) < 48
    for row, whole, kinds, wrong in zip(rows, made, types, false, strict=True):
        first = whole[kinds == 0]
        other = whole[kinds == 1]
        assert first[0] == vocabulary.start
        assert first[-1] == other[-1] == vocabulary.end
        one, two = first[1:-1], other[:-1]
        if not wrong:
            assert torch.equal(torch.cat([one, two]), row)
        elif second == "sentence_order":
            assert torch.equal(torch.cat([two, one]), row)
        else:
            assert torch.equal(one, row[: len(one)])
            assert not torch.equal(two, row[len(one) :])
    with pytest.raises(ConfigError, match="--batch"):
        pairs(rows[:1], vocabulary, draw(), "next_sentence")


def test_the_loss_is_that_of_transformers(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    network = Masked().network(SIZE, vocabulary, 66, 0).eval()
    batch = Masked().prepare(rows, vocabulary, draw())
    own = Masked().loss(network, batch)
    network.set_attn_implementation("eager")  # type: ignore[operator]
    theirs = network(input_ids=batch.tensors["ids"], labels=batch.tensors["labels"]).loss
    assert own.total.item() == pytest.approx(theirs.item(), rel=1e-6)
    own.total.backward()  # type: ignore[no-untyped-call]
    mine = {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}
    network.zero_grad()
    theirs.backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None
        torch.testing.assert_close(mine[name], weight.grad, rtol=1e-4, atol=1e-6)


def test_the_loss_with_next_sentence_is_that_of_transformers(tokens: TokenisedCorpus, vocabulary: Vocabulary) -> None:
    objective = Masked(second="next_sentence")
    network = objective.network(SIZE, vocabulary, 40, 0).eval()
    batch = objective.prepare(objective.packed(tokens.train, 40, vocabulary).rows(0, 0, 16), vocabulary, draw())
    own = objective.loss(network, batch)
    named = {"input_ids": batch.tensors["ids"], "token_type_ids": batch.tensors["types"]}
    theirs = network(**named, labels=batch.tensors["labels"], next_sentence_label=batch.tensors["second"]).loss
    assert own.total.item() == pytest.approx(theirs.item(), rel=1e-6)
    assert set(own.terms) == {"next_sentence"}


@pytest.mark.parametrize("architecture", ["roberta", "distilbert", "albert"])
def test_other_architectures_have_their_own_loss_too(
    architecture: str, rows: torch.Tensor, vocabulary: Vocabulary
) -> None:
    size = {"model_type": architecture, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    size["intermediate_size"] = 32
    if architecture == "distilbert":
        size = {"model_type": architecture, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}
    network = Masked().network(size, vocabulary, 66, 0).eval()
    batch = Masked().prepare(rows, vocabulary, draw())
    theirs = network(input_ids=batch.tensors["ids"], labels=batch.tensors["labels"]).loss
    assert Masked().loss(network, batch).total.item() == pytest.approx(theirs.item(), rel=1e-6)


def test_parts_of_a_batch_add_up(rows: torch.Tensor, vocabulary: Vocabulary) -> None:
    network = Masked().network(SIZE, vocabulary, 66, 0).eval()
    batch = Masked().prepare(rows, vocabulary, draw())

    def loss(part: Batch) -> float:
        return Masked().loss(network, part).total.item()

    assert loss(batch.part(0, 10)) + loss(batch.part(10, 64)) == pytest.approx(loss(batch), rel=1e-5)


def test_what_is_saved_opens_as_a_backbone(vocabulary: Vocabulary, tmp_path: Path) -> None:
    network = Masked().network(SIZE, vocabulary, 66, 0)
    Masked().save(network, vocabulary, tmp_path)
    card = open_backbone(f"hf:{tmp_path}", precision="fp32").card
    assert (card.family, card.pooling, card.max_length, card.blocks) == ("bert", "mean", 66, 2)
    again = Masked().opened(tmp_path, 0)
    assert again.added == []
    assert again.longest == 66
    assert again.vocabulary.revision == vocabulary.revision
    for (name, one), (_, two) in zip(network.named_parameters(), again.network.named_parameters(), strict=True):
        assert torch.equal(one, two), name
    assert Masked(second="sentence_order").opened(tmp_path, 0).added == ["a head for sentence order"]


def test_sinusoids_do_not_learn(vocabulary: Vocabulary) -> None:
    network = Masked(positions="sinusoidal").network(SIZE, vocabulary, 32, 0)
    table = network.get_submodule("bert.embeddings.position_embeddings").weight
    assert isinstance(table, torch.Tensor)
    assert not table.requires_grad
    products = table @ table.T  # the nearer, the more alike
    assert products[5, 5] > products[5, 6] > products[5, 8] > products[5, 12]


@pytest.mark.parametrize("second", ["none", "sentence_order"])
def test_sinusoids_of_a_backbone_do_not_learn_either(second: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    fixed = Masked(positions="sinusoidal", second=second)
    fixed.save(fixed.network(SIZE, vocabulary, 32, 0), vocabulary, tmp_path)
    for objective in (fixed, Masked(second=second)):
        network = objective.opened(tmp_path, 0).network
        still = [name for name, weight in network.named_parameters() if not weight.requires_grad]
        assert still == (["bert.embeddings.position_embeddings.weight"] if objective is fixed else [])


def test_learned_positions_are_no_sinusoids(vocabulary: Vocabulary, tmp_path: Path) -> None:
    Masked().save(Masked().network(SIZE, vocabulary, 32, 0), vocabulary, tmp_path)
    with pytest.raises(ConfigError, match=r"are learned ones[\s\S]*positions=sinusoidal"):
        Masked(positions="sinusoidal").opened(tmp_path, 0)


def test_sinusoids_need_a_table(vocabulary: Vocabulary) -> None:
    size = {"model_type": "modernbert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with pytest.raises(ConfigError, match=r"no table of positions[\s\S]*modernbert"):
        Masked(positions="sinusoidal").network(size | {"intermediate_size": 32}, vocabulary, 32, 0)


def test_bad_options() -> None:
    with pytest.raises(UnknownName, match="'word'"):
        Masked(unit="word")
    with pytest.raises(ConfigError, match="shares"):
        Masked(masked=0.9, random=0.2)
    with pytest.raises(ConfigError, match="pairs are cut anew at every step"):
        Masked(masking="static", second="next_sentence")


@pytest.mark.parametrize("masked", [0.1, 0.3, 0.7, 0.8, 0.9, 1.0])
def test_no_token_has_to_be_shown_as_it_is(masked: float) -> None:
    assert Masked(masked=masked, random=round(1 - masked, 1)).masked == masked


def test_bad_sizes(vocabulary: Vocabulary) -> None:
    with pytest.raises(UnknownName, match="hidden_sizes"):
        Masked().network({"hidden_sizes": 3}, vocabulary, 32, 0)
    with pytest.raises(ConfigError, match="size"):
        Masked().network({"hidden_size": 30, "num_attention_heads": 4}, vocabulary, 32, 0)
    with pytest.raises(UnknownName, match="gpt2"):
        Masked().network({"model_type": "gpt2"}, vocabulary, 32, 0)
    with pytest.raises(ConfigError, match="not a bert configuration"):
        Masked().network({"hidden_size": "wide"}, vocabulary, 32, 0)


@pytest.mark.parametrize(("architecture", "before"), [("bert", 0), ("roberta", 1)])
def test_a_size_has_room_for_the_rows(architecture: str, before: int, vocabulary: Vocabulary) -> None:
    size = {"model_type": architecture, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    size |= {"intermediate_size": 32, "max_position_embeddings": 32 + before * (vocabulary.pad + 1)}
    Masked().network(size, vocabulary, 32, 0)
    with pytest.raises(ConfigError, match=r"longer than a network of this size[\s\S]*--length 33[\s\S]*at most 32"):
        Masked().network(size, vocabulary, 33, 0)
