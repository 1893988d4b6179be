"""A Transformer from nothing on parallel text: the loss, the averaged weights, the folder, and the whole command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import graftwork as gw
from graftwork.errors import ConfigError, UnknownName
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import TokenisedCorpus, tokenise
from graftwork.pretrain.last_averaged import AveragingOptimiser
from graftwork.pretrain.objectives.translation import Translation, transformer_size
from graftwork.pretrain.schedule import rate
from graftwork.pretrain.start_point import recipe_of
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.train.optimiser import FlatAdamW

SIZE = transformer_size(1, 16, 2, 0.0)
WORDS = {"red": "rot", "green": "grün", "small": "klein", "cat": "Katze", "dog": "Hund", "house": "Haus", "is": "ist"}


def pairs(count: int) -> str:
    """A table of sentences, each translated word for word."""
    draw = torch.Generator().manual_seed(0)
    rows = []
    for _ in range(count):
        chosen = [list(WORDS)[int(one)] for one in torch.randint(len(WORDS), (3 + len(rows) % 9,), generator=draw)]
        rows.append(f"{' '.join(chosen)}\t{' '.join(WORDS[word] for word in chosen)}")
    return "source\ttarget\n" + "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 400 pairs."""
    path = tmp_path_factory.mktemp("parallel") / "pairs.tsv"
    path.write_text(pairs(400))
    return path


@pytest.fixture(scope="module")
def shared_pieces(parallel: Path, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """One vocabulary of both sides."""
    corpus = open_corpus([parallel], unit="pair")
    return Translation().extended(learn(corpus, "bpe", tmp_path_factory.mktemp("vocabularies"), size=300))


@pytest.fixture(scope="module")
def tokens(parallel: Path, shared_pieces: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> TokenisedCorpus:
    corpus = open_corpus([parallel], unit="pair", validation=0.2)
    return tokenise(corpus, shared_pieces, tmp_path_factory.mktemp("tokens"))


def test_a_row_is_what_is_read_and_what_is_written(tokens: TokenisedCorpus, shared_pieces: Vocabulary) -> None:
    rows = Translation().packed(tokens.train, 40, shared_pieces).rows(0, 3, 8)
    batch = Translation().prepare(rows, shared_pieces, torch.Generator())
    for read, written in zip(batch.tensors["ids"], batch.tensors["labels"], strict=True):
        source, target = read[read != shared_pieces.pad].tolist(), written[written >= 0].tolist()
        assert source[-1] == target[-1] == shared_pieces.end
        words = shared_pieces.decode(source[:-1]).split()
        assert [WORDS[word] for word in words] == shared_pieces.decode(target[:-1]).split()
    assert batch.predicted == int((batch.tensors["labels"] >= 0).sum())


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_the_loss_is_that_of_transformers(positions: str, tokens: TokenisedCorpus, shared_pieces: Vocabulary) -> None:
    objective = Translation(positions=positions)
    network: Any = objective.network(SIZE, shared_pieces, 40, 0).eval()
    rows = objective.packed(tokens.train, 40, shared_pieces).rows(0, 1, 4)
    batch = objective.prepare(rows, shared_pieces, torch.Generator())
    own, named = objective.loss(network, batch), batch.tensors
    theirs = network(input_ids=named["ids"], attention_mask=named["mask"], labels=named["labels"])
    assert own.nats.item() / batch.predicted == pytest.approx(theirs.loss.item(), rel=1e-5)
    logits, labels = theirs.logits.flatten(0, 1), named["labels"].flatten()
    smoothed = cross_entropy(logits, labels, label_smoothing=0.1)
    assert own.total.item() == pytest.approx(smoothed.item(), rel=1e-5)
    assert abs(smoothed.item() - theirs.loss.item()) > 1e-4
    assert Translation(smoothing=0.0, positions=positions).loss(network, batch).total.item() == pytest.approx(
        theirs.loss.item(), rel=1e-5
    )
    fixed = {name for name, weight in network.named_parameters() if not weight.requires_grad}
    assert len(fixed) == (2 if positions == "sinusoidal" else 0)
    assert network.lm_head.weight is network.get_encoder().embed_tokens.weight is network.get_input_embeddings().weight


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_what_is_saved_opens_in_transformers_and_as_a_backbone(
    positions: str, shared_pieces: Vocabulary, tmp_path: Path
) -> None:
    objective = Translation(positions=positions)
    network: Any = objective.network(SIZE, shared_pieces, 40, 0).eval()
    objective.save(network, shared_pieces, tmp_path)
    theirs, loading = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    read = tokenizer(["red cat house", "small"], return_tensors="pt", padding=True, return_token_type_ids=False)
    assert [one for one in read["input_ids"][1].tolist() if one != shared_pieces.pad] == [
        *shared_pieces.encode(["small"])[0], shared_pieces.end,
    ]  # fmt: skip
    labels = torch.tensor([[5, 6, 7], [8, 9, 9]])
    opened = objective.opened(tmp_path, 0)
    again: Any = opened.network
    logits = [one.eval()(**read, labels=labels).logits for one in (network, theirs, again)]
    assert torch.allclose(logits[0], logits[1], atol=1e-5) and torch.allclose(logits[0], logits[2], atol=1e-5)
    still = {name for name, weight in again.named_parameters() if not weight.requires_grad}
    assert len(still) == (2 if positions == "sinusoidal" else 0)
    room = 512 if positions == "sinusoidal" else 40
    assert (list(opened.added), opened.longest, opened.vocabulary.revision) == ([], room, shared_pieces.revision)
    assert (theirs.generate(**read, max_new_tokens=4)[:, 0] == shared_pieces.pad).all()
    card = open_backbone(f"hf:{tmp_path}", precision="fp32").card
    assert (card.pooling, card.blocks, card.max_length) == ("mean", 1, room)


def test_the_answer_is_the_mean_of_the_last_validated_weights() -> None:
    def made() -> AveragingOptimiser:
        weight = nn.Parameter(torch.zeros(3))
        return AveragingOptimiser(FlatAdamW({"w": weight}, 1.0, 0.0, 1.0), {"w": weight}, 3)

    def taken(optimiser: AveragingOptimiser, steps: int) -> torch.Tensor:
        for _ in range(steps):
            optimiser.parameters["w"].grad = torch.tensor([1.0, 2.0, -1.0])
            optimiser.step(0.1)
        return optimiser.parameters["w"].detach().clone()

    def answer(optimiser: AveragingOptimiser) -> torch.Tensor:
        with optimiser.answering():
            return optimiser.parameters["w"].detach().clone()

    one = made()
    seen = {}
    for step, more in ((5, 5), (50, 45), (91, 41), (95, 4), (98, 3)):
        seen[step] = taken(one, more)
        expected = [seen[near] for near in seen if near >= 0.9 * step][-3:]
        assert torch.allclose(answer(one), torch.stack(expected).mean(0)), step
        assert torch.equal(one.parameters["w"].detach(), seen[step])
        one.validated(1.0)
        assert torch.allclose(answer(one), torch.stack(expected).mean(0)), step
    assert list(one.kept) == [91, 95, 98]
    other = made()
    with torch.no_grad():
        other.parameters["w"].copy_(seen[98])
    other.restore(one.tensors())
    assert torch.equal(answer(other), answer(one))
    assert torch.equal(taken(other, 2), taken(one, 2))
    assert torch.equal(answer(other), answer(one))


def test_the_rate_falls_with_the_square_root() -> None:
    recipe = recipe_of(Translation.recipe, {"warm_up": 0.1})
    assert [rate(recipe, step, 1000) for step in (49, 99, 399, 899)] == pytest.approx([0.5, 1.0, 0.5, 1 / 3], rel=0.02)


@pytest.fixture
def how(tmp_path: Path) -> Callable[..., Any]:
    """A few steps of a small network."""
    (tmp_path / "size.json").write_text(json.dumps(SIZE))

    def run(corpus: Path, **more: Any) -> Any:
        given = {"steps": 8, "validation": 0.2, "vocabulary": 300, "runs": tmp_path / "runs", **more}
        recipe = {"batch": 8, "length": 32}
        return gw.pretrain(corpus, objective="translation", size=str(tmp_path / "size.json"), recipe=recipe, **given)

    return run


def test_the_whole_of_it(parallel: Path, how: Callable[..., Any]) -> None:
    done = how(parallel, validate_every=2)
    facts, costs = done.result.facts, done.result.costs
    assert facts["after"]["validation"]["nats"] < facts["before"]["validation"]["nats"]
    assert facts["text"]["train"]["documents"] + facts["text"]["validation"]["documents"] == 800
    assert 0.2 < facts["passes"] < 2
    assert costs["train_flops"].grade == "counter" and costs["train_flops"].value > 0
    assert any("tokens of the targets" in note for note in facts["notes"])
    again = how(parallel, validate_every=2)
    assert again.reused


@pytest.mark.slow
def test_one_pass_is_an_epoch(parallel: Path, how: Callable[..., Any]) -> None:
    facts = how(parallel, steps=None, vocabulary=290).result.facts
    assert any("are left out of training" in note for note in facts["notes"])
    assert facts["passes"] == pytest.approx(1.0)


def test_what_can_not_be(parallel: Path, how: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="average=0"):
        Translation(average=0)
    with pytest.raises(UnknownName, match="rotary"):
        Translation(positions="rotary")
    with pytest.raises(ConfigError, match="--unit file"):
        how(parallel, unit="file")
    with pytest.raises(ConfigError, match="leave --replay out"):
        how(parallel, general=parallel, replay=0.2)


@pytest.mark.slow
def test_it_learns_to_translate(parallel: Path, how: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "wide.json").write_text(json.dumps(transformer_size(1, 64, 2, 0.0)))
    done = gw.pretrain(
        parallel, objective="translation:average=1", size=str(tmp_path / "wide.json"), vocabulary=300, steps=300,
        recipe={"batch": 16, "length": 32, "learning_rate": 3e-3}, validation=0.2, runs=tmp_path / "runs",
    )  # fmt: skip
    network: Any = AutoModelForSeq2SeqLM.from_pretrained(done.backbone).eval()
    tokenizer = AutoTokenizer.from_pretrained(done.backbone)
    read = tokenizer(
        ["small dog is red", "green house is small"], return_tensors="pt", padding=True, return_token_type_ids=False
    )
    found = tokenizer.batch_decode(network.generate(**read, max_new_tokens=20), skip_special_tokens=True)
    assert [text.strip() for text in found] == ["klein Hund ist rot", "grün Haus ist klein"]
