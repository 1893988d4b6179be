"""What the noise does, and that loss and folder are transformers' own."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BartForConditionalGeneration

from graftwork.errors import ConfigError
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import SplitTokens, tokenise
from graftwork.pretrain.objectives.denoising import Denoising, bart_size, full_stops, with_sentences_moved
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn
from graftwork.pretrained.open_backbone import open_backbone

LENGTH = 64


def draw(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def pieces(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return learn(open_corpus([corpus]), "bpe", tmp_path_factory.mktemp("vocabularies"), size=400)


@pytest.fixture(scope="module")
def train(corpus: Path, pieces: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> SplitTokens:
    return tokenise(open_corpus([corpus], validation=0.1), pieces, tmp_path_factory.mktemp("tokens")).train


def pieces_of(read: list[int], mask: int) -> list[list[int]]:
    """Cut at the masks."""
    found: list[list[int]] = [[]]
    for one in read:
        if one == mask:
            found.append([])
        else:
            found[-1].append(one)
    return found


def test_spans_become_masks(train: SplitTokens, pieces: Vocabulary) -> None:
    objective = Denoising(permuted=False)
    rows = objective.packed(train, LENGTH, pieces).rows(0, 0, 64)
    batch = objective.prepare(rows, pieces, draw())
    ids, labels, mask = batch.tensors["ids"], batch.tensors["labels"], pieces.mask
    assert mask is not None and torch.equal(labels, rows) and batch.predicted == rows.numel()
    noise, spans = round(0.3 * (LENGTH - 2)), round(round(0.3 * (LENGTH - 2)) / 3)
    assert ids.shape == (64, LENGTH - noise + spans)
    assert ((ids == mask).sum(1) == spans).all() and bool(batch.tensors["mask"].all())
    hidden = []
    for read, row in zip(ids.tolist(), rows.tolist(), strict=True):
        shown, place = pieces_of(read, mask), 0
        assert row[: len(shown[0])] == shown[0] and row[len(row) - len(shown[-1]) :] == shown[-1]
        for piece in shown:  # what is left stands in the row, in order
            while row[place : place + len(piece)] != piece:
                place += 1
            place += len(piece)
        assert place <= len(row) and sum(map(len, shown)) == LENGTH - noise
        hidden.append(place)
    assert torch.equal(objective.prepare(rows, pieces, draw()).tensors["ids"], ids)
    assert not torch.equal(objective.prepare(rows, pieces, draw(1)).tensors["ids"], ids)


def test_lengths_are_poisson_and_places_are_any() -> None:
    text, objective = torch.arange(1000), Denoising(share=0.03)
    lengths, places = [], []
    for seed in range(60):
        found = objective._infilled(text, 9999, draw(seed)).tolist()
        shown = pieces_of([-1, *found, 1000], 9999)
        lengths += [two[0] - one[-1] - 1 for one, two in pairwise(shown) if one and two]  # hardly ever side by side
        places += [place / len(found) for place, one in enumerate(found) if one == 9999]
    counted, spread = torch.tensor(lengths).float(), torch.tensor(places)
    assert len(counted) > 550 and counted.min() == 0
    assert counted.mean().item() == pytest.approx(3.0, abs=0.1)
    assert counted.var().item() == pytest.approx(2.7, abs=0.5)  # a tenth less than where their sum is free
    assert spread.mean().item() == pytest.approx(0.5, abs=0.05) and spread.std().item() == pytest.approx(0.29, abs=0.03)


def test_sentences_move_whole(pieces: Vocabulary) -> None:
    stops = full_stops(pieces)
    assert pieces.encode(["."])[0][-1] in stops and pieces.end in stops and pieces.id_of("Ġ.") in stops
    text = torch.tensor([1, 2, 0, 3, 0, 4, 5, 6, 0, 7])
    orders = {tuple(with_sentences_moved(text, text == 0, draw(seed)).tolist()) for seed in range(200)}
    assert len(orders) == 24
    for order in orders:
        assert sorted(order) == sorted(text.tolist())
        for sentence in ((1, 2, 0), (3, 0), (4, 5, 6, 0)):
            begins = order.index(sentence[0])
            assert order[begins : begins + len(sentence)] == sentence
    one = torch.tensor([1, 2, 0])
    assert torch.equal(with_sentences_moved(one, one == 0, draw()), one)


def test_the_loss_is_that_of_transformers(train: SplitTokens, pieces: Vocabulary) -> None:
    objective = Denoising()
    network: Any = objective.network(bart_size(1, 16, 2), pieces, LENGTH, 0).eval()
    batch = objective.prepare(objective.packed(train, LENGTH, pieces).rows(0, 0, 8), pieces, draw())
    own, named = objective.loss(network, batch), batch.tensors
    theirs = network(input_ids=named["ids"], attention_mask=named["mask"], labels=named["labels"]).loss
    assert own.total.item() == pytest.approx(theirs.item(), rel=1e-6)
    assert own.nats.item() == pytest.approx(theirs.item() * 8 * LENGTH, rel=1e-5)


def test_what_is_saved_opens_in_transformers_and_as_a_backbone(pieces: Vocabulary, tmp_path: Path) -> None:
    objective = Denoising()
    network: Any = objective.network(bart_size(1, 16, 2), pieces, LENGTH, 0).eval()
    objective.save(network, pieces, tmp_path)
    theirs, loading = BartForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    read = AutoTokenizer.from_pretrained(tmp_path)("the cat", return_tensors="pt", return_token_type_ids=False)
    assert read["input_ids"][0].tolist() == [pieces.start, *pieces.encode(["the cat"])[0], pieces.end]
    opened = objective.opened(tmp_path, 0)
    again: Any = opened.network
    logits = [one.eval()(**read, labels=read["input_ids"]).logits for one in (network, theirs, again)]
    assert torch.allclose(logits[0], logits[1], atol=1e-6) and torch.allclose(logits[0], logits[2], atol=1e-6)
    assert (list(opened.added), opened.longest, opened.vocabulary.revision) == ([], LENGTH, pieces.revision)
    assert theirs.generate(**read, max_new_tokens=3)[0, 0] == pieces.end
    card = open_backbone(f"hf:{tmp_path}", precision="fp32").card
    assert (card.family, card.pooling, card.blocks, card.max_length) == ("bart", "mean", 1, LENGTH)


def test_what_can_not_be() -> None:
    with pytest.raises(ConfigError, match=r"span=0\.5"):
        Denoising(span=0.5)
