"""What is hidden, that the text can be put together again, and that loss and folder are transformers' own."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, T5ForConditionalGeneration

import graftwork as gw
from graftwork.errors import ConfigError
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import SplitTokens, tokenise
from graftwork.pretrain.objective import IGNORED
from graftwork.pretrain.objectives.span_corruption import SpanCorruption, random_division, sentinel
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn
from graftwork.pretrained.open_backbone import open_backbone

SIZE = SpanCorruption.sizes["tiny"] | {"d_model": 16, "num_heads": 2, "d_kv": 8, "d_ff": 24}
LENGTH = 48


def draw(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def sentinels(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """Pieces of words, and sentinels."""
    learned = learn(open_corpus([corpus]), "unigram", tmp_path_factory.mktemp("vocabularies"), size=300)
    return SpanCorruption().extended(learned)


@pytest.fixture(scope="module")
def train(corpus: Path, sentinels: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> SplitTokens:
    return tokenise(open_corpus([corpus], validation=0.1), sentinels, tmp_path_factory.mktemp("tokens")).train


def rebuilt(read: list[int], written: list[int], names: list[int]) -> list[int]:
    """Put what was written in the place of its sentinel."""
    spans: dict[int, list[int]] = {}
    for one in written:
        if one in names:
            assert one == names[len(spans)], "sentinels are in order"
            spans[one] = []
        else:
            spans[names[len(spans) - 1]].append(one)
    assert [one for one in read if one in names] == list(spans)
    assert all(spans.values())
    return [text for one in read for text in spans.get(one, [one])]


@pytest.mark.parametrize(("share", "span"), [(0.15, 3.0), (0.5, 1.5)])
def test_the_text_can_be_put_together_again(
    share: float, span: float, train: SplitTokens, sentinels: Vocabulary
) -> None:
    objective = SpanCorruption(share, span)
    packed = objective.packed(train, LENGTH, sentinels)
    rows = packed.rows(0, 0, 16)
    batch = objective.prepare(rows, sentinels, draw())
    ids, labels, mask = (batch.tensors[name] for name in ("ids", "labels", "mask"))
    assert ids.shape[1] in (LENGTH - 1, LENGTH) and rows.shape[1] == packed.content > LENGTH * (1 - share / 2)
    assert torch.equal(mask.bool(), ids != sentinels.pad)
    names = [sentinels.id_of(sentinel(number)) for number in range(100)]
    ends, lengths, hidden = 0, [], 0
    for row, read, written in zip(rows.tolist(), ids.tolist(), labels.tolist(), strict=True):
        text = [one for one in row if one != sentinels.end]
        ends += len(row) - len(text)
        read, written = [one for one in read if one != sentinels.pad], [one for one in written if one != IGNORED]
        assert read.pop() == written.pop() == sentinels.end
        assert rebuilt(read, written, names) == text
        spans = sum(one in names for one in written)
        assert len(written) - spans == round(share * len(text))
        hidden, lengths = hidden + len(written) - spans, [*lengths, (len(written) - spans) / spans]
    assert ends > 16  # the rows do hold several documents
    assert sum(lengths) / len(lengths) == pytest.approx(span, rel=0.15)
    assert batch.predicted == int((labels != IGNORED).sum())
    same, other = (objective.prepare(rows, sentinels, draw(seed)).tensors["ids"] for seed in (0, 1))
    assert torch.equal(same, ids) and not torch.equal(other, ids)


def test_spans_are_of_any_length() -> None:
    generator = draw()
    found = torch.stack([random_division(6, 3, generator) for _ in range(400)])
    assert (found.sum(1) == 6).all() and found.min() == 1 and found.max() == 4
    assert found.float().mean(0).tolist() == pytest.approx([2.0] * 3, abs=0.2)
    assert random_division(1, 1, generator).tolist() == [1]


def test_rows_with_hardly_a_token(sentinels: Vocabulary) -> None:
    rows = torch.full((2, 12), sentinels.end)
    rows[1, 3] = 5
    batch = SpanCorruption().prepare(rows, sentinels, draw())
    assert [row[row != sentinels.pad].tolist() for row in batch.tensors["ids"]] == [[sentinels.end], [5, sentinels.end]]


def test_the_loss_is_that_of_transformers(train: SplitTokens, sentinels: Vocabulary) -> None:
    objective = SpanCorruption()
    network: Any = objective.network(SIZE, sentinels, LENGTH, 0).eval()
    assert network.lm_head.weight is not network.shared.weight
    batch = objective.prepare(objective.packed(train, LENGTH, sentinels).rows(0, 0, 8), sentinels, draw())
    own, named = objective.loss(network, batch), batch.tensors
    theirs = network(input_ids=named["ids"], attention_mask=named["mask"], labels=named["labels"]).loss
    assert own.total.item() == pytest.approx(theirs.item(), rel=1e-6)
    assert own.nats.item() == pytest.approx(theirs.item() * batch.predicted, rel=1e-5)
    assert own.total.item() == pytest.approx(torch.tensor(float(sentinels.size)).log().item(), rel=0.15)
    parts = [objective.loss(network, batch.part(*part)).total.item() for part in ((0, 3), (3, 8))]
    assert sum(parts) == pytest.approx(own.total.item(), rel=1e-5)


@pytest.mark.parametrize(("tied", "length", "longest"), [(False, LENGTH, 512), (True, 600, 600)])
def test_what_is_saved_opens_in_transformers_and_as_a_backbone(
    tied: bool, length: int, longest: int, sentinels: Vocabulary, tmp_path: Path
) -> None:
    """It takes texts as long as those it was trained on, and 512 tokens at least."""
    objective = SpanCorruption()
    network: Any = objective.network(SIZE | {"tie_word_embeddings": tied}, sentinels, length, 0).eval()
    objective.save(network, sentinels, tmp_path)
    theirs, loading = T5ForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    assert (theirs.lm_head.weight is theirs.shared.weight) is tied is theirs.config.scale_decoder_outputs
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    read = tokenizer("the cat <extra_id_0> .", return_tensors="pt")
    assert read["input_ids"][0].tolist()[-1] == sentinels.end
    assert sentinels.id_of(sentinel(0)) in read["input_ids"][0]
    assert sentinels.encode(["<extra_id_0>"]) != [[sentinels.id_of(sentinel(0))]]  # in a text it is text
    labels = torch.tensor([[5, 6, 7]])
    opened = objective.opened(tmp_path, 0)
    again: Any = opened.network
    logits = [one(**read, labels=labels).logits for one in (network, theirs.eval(), again.eval())]
    assert torch.allclose(logits[0], logits[1], atol=1e-6) and torch.allclose(logits[0], logits[2], atol=1e-6)
    assert (list(opened.added), opened.vocabulary.revision) == ([], sentinels.revision)
    writing = theirs.generate(**read, max_new_tokens=4)
    assert writing[0, 0] == sentinels.pad
    card = open_backbone(f"hf:{tmp_path}", precision="fp32").card
    assert (card.family, card.pooling, card.blocks, card.max_length) == ("t5", "mean", 2, longest)


def test_what_can_not_be(train: SplitTokens, sentinels: Vocabulary, vocabulary: Vocabulary) -> None:
    with pytest.raises(ConfigError, match=r"share=1\.5"):
        SpanCorruption(share=1.5)
    with pytest.raises(ConfigError, match="<extra_id_"):
        SpanCorruption().packed(train, 4096, sentinels)
    with pytest.raises(ConfigError, match="<extra_id_"):
        SpanCorruption().packed(train, 32, vocabulary)


@pytest.mark.real
def test_going_on_from_a_real_t5(corpus: Path, tmp_path: Path) -> None:
    folder = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache/graftwork-fixtures/flan-t5-small"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not made")
    opened, theirs = SpanCorruption().opened(folder, 0), T5ForConditionalGeneration.from_pretrained(folder)
    labels = {"input_ids": torch.tensor([[21820, 32099, 1]]), "labels": torch.tensor([[32099, 296, 1]])}
    own: Any = opened.network
    assert own.eval()(**labels).loss.item() == pytest.approx(theirs.eval()(**labels).loss.item(), rel=1e-5)
    done = gw.pretrain(
        corpus, objective="span_corruption", backbone=f"hf:{folder}", steps=4, recipe={"batch": 4, "length": 48},
        validation=0.1, runs=tmp_path,
    )  # fmt: skip
    facts = done.result.facts
    assert facts["added"] == [] and facts["after"]["validation"]["nats"] < facts["before"]["validation"]["nats"]
    theirs = T5ForConditionalGeneration.from_pretrained(done.backbone)
    assert theirs.lm_head.weight is not theirs.shared.weight
    assert AutoTokenizer.from_pretrained(done.backbone).convert_tokens_to_ids("<extra_id_0>") == 32099
