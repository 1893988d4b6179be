"""Answers of an encoder-decoder that is prompted, and answers that are written instead of scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.core.language_model import ReadPrompts, TokenTree
from graftwork.core.ragged import flat
from graftwork.core.writing import TextSearch
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.methods.prompt import Prompt
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq_reader import Seq2SeqReader
from graftwork.testing import check_method, tiny_bench, tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.greedy_writing import margins_of, written_by
from graftwork.train.prompt_tokens import begins_another
from graftwork.train.prompted import Prompted, PromptedWriter
from graftwork.train.prompted_model import prompted_model_of

PROMPTS = ["the film was good and warm", "a sad film", "so it was a bad cold film it was"]
ANSWERS = [[" good", " bad"], [" warm", " warm and good", " cold"], [" bad film"]]


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_seq2seq(tmp_path_factory.mktemp("t5"))
    told = json.loads((folder / "tokenizer.json").read_text())
    digits = dict(zip("bdfgjkpqvwxz", "0123456789.-", strict=True))
    told["model"]["vocab"] = [[digits.get(piece, piece), chance] for piece, chance in told["model"]["vocab"]]
    (folder / "tokenizer.json").write_text(json.dumps(told))
    return folder


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, vocabulary = tmp_path_factory.mktemp("gpt2"), tiny_tokenizer().get_vocab_size()
    PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), pad_token="[PAD]").save_pretrained(folder)
    config = GPT2Config(
        vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=2, n_positions=300, initializer_range=0.2, bos_token_id=2,
        eos_token_id=3,
    )  # fmt: skip
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def opened(folder: Path, writes: bool = False) -> Backbone:
    return open_backbone(f"hf:{folder}", precision="fp32", writes=writes)


@torch.no_grad()
def loss_of(folder: Path, prompt: Sequence[int], answer: Sequence[int]) -> float:
    """Minus the loss of one answer by transformers, summed over its tokens."""
    network = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    return -len(answer) * float(network(input_ids=torch.tensor([prompt]), labels=torch.tensor([answer])).loss)


@pytest.mark.parametrize(
    "name", ["t5 gated", "bart", *(pytest.param(one, marks=pytest.mark.slow) for one in ("t5", "marian", "pegasus"))]
)
def test_an_answer_of_an_encoder_decoder_has_the_loss_of_transformers(name: str, tmp_path: Path) -> None:
    folder = write_seq2seq(tmp_path, name)
    asked = (model := prompted_model_of(opened(folder, writes=True))).tokenise(PROMPTS, ANSWERS, "")
    found = model.likelihoods(asked)
    wanted = [[loss_of(folder, one.context, way) for way in one.continuations] for one in asked]
    for scores, expected in zip(found, wanted, strict=True):
        assert scores == pytest.approx(expected, abs=1e-4)
    ends = {way[-1] for way in asked[1].continuations}
    assert ends == {model.reader.ends[0]}  # there an answer begins another one
    assert model.reader.ends[0] not in {way[-1] for one in (asked[0], asked[2]) for way in one.continuations}


@pytest.mark.parametrize("name", ["t5 gated", "bart"])
def test_an_encoder_reads_a_prompt_once_and_a_decoder_what_answers_begin_with(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_seq2seq(tmp_path, name)
    model: Any = prompted_model_of(opened(folder, writes=True))
    many = [" good", " good film", " good film it was", " bad film", " good bad", " bad"]
    asked = model.tokenise(PROMPTS, [many, many[:4], many[3:4]], "")
    encoded, decoded = [], []
    read, follow = Seq2SeqReader.read, Seq2SeqReader.follow

    def reading(reader: Seq2SeqReader, rows: Sequence[Sequence[int]]) -> ReadPrompts:
        encoded.extend(map(list, rows))
        return read(reader, rows)

    def following(
        reader: Seq2SeqReader, prompts: ReadPrompts, owners: Sequence[int], rows: Sequence[Sequence[int]]
    ) -> Tensor:
        decoded.extend(zip(owners, map(tuple, rows), strict=True))
        return follow(reader, prompts, owners, rows)

    monkeypatch.setattr(Seq2SeqReader, "read", reading)
    monkeypatch.setattr(Seq2SeqReader, "follow", following)
    found = model.likelihoods(asked)
    assert sorted(encoded) == sorted(one.context for one in asked)
    assert len(decoded) == sum(len(TokenTree.of(one.continuations).paths) for one in asked)
    assert len(decoded) < sum(len(way) > 1 for one in asked for way in one.continuations)
    assert not any(
        one != other and one[0] == other[0] and other[1][: len(one[1])] == one[1]
        for one in decoded
        for other in decoded
    )
    for scores, one in zip(found, asked, strict=True):
        assert scores == pytest.approx([loss_of(folder, one.context, way) for way in one.continuations], abs=1e-4)


def test_an_answer_that_begins_another_one_has_an_end(gpt2: Path) -> None:
    assert begins_another([[3, 4], [1], [3, 4, 5]]) and not begins_another([[3, 4], [3, 5], [3, 4]])
    model = prompted_model_of(opened(gpt2))
    (asked,) = model.tokenise(["the film :"], [[" good", " good film"]], ".")
    (plain,) = model.tokenise(["the film :"], [[" good", " bad"]], ".")
    assert asked.continuations[0][:-1] == plain.continuations[0]
    assert asked.continuations[0][-1] == asked.continuations[1][-1] not in plain.continuations[1]
    (without,) = model.tokenise(["the film :"], [[" good", " good film"]], "")
    assert [way[-1] for way in without.continuations] == [3, 3]  # the token that ends texts
    model.reader.module.config.eos_token_id = None  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="nothing tells where it ends"):
        model.tokenise(["the film :"], [[" good", " good film"]], "")


class Told:
    """A `Cursor` that likes tokens as told, by what was written."""

    def __init__(self, *likes: dict[tuple[int, ...], Sequence[float]]):
        self.likes, self.calls = likes, 0

    def __call__(self, rows: Sequence[int], written: Sequence[Sequence[int]]) -> Tensor:
        self.calls += 1
        return torch.tensor([self.likes[row][tuple(tokens)] for row, tokens in zip(rows, written, strict=True)])


def test_what_is_written_is_one_of_the_answers_and_likeliest_token_by_token() -> None:
    cursor = Told({(): [9.0, 2.0, 1.5, 0.0], (1,): [9.0, 0.0, 0.0, 3.0]}, {(2,): [5.0, 0.0, 0.0, 1.0]})
    margins = margins_of(cursor, [[[1, 2], [1, 3], [2, 3]], [[2, 0], [2, 3]]])
    assert margins == [[-3.0, 0.0, -0.5], [0.0, -4.0]]  # of the second only the token where its answers differ is asked
    assert cursor.calls == 2
    assert margins_of(Told({}), [[[1, 2], [1, 2]]]) == [[0.0, 0.0]]


def test_a_text_is_written_up_to_its_end() -> None:
    cursor = Told({(): [0.0, 1.0], (1,): [0.0, 1.0], (1, 1): [2.0, 0.0]}, {(): [3.0, 0.0]})
    found = written_by(cursor, 2, 3, ends=[0], over=lambda tokens: False)
    assert [(tokens, cut) for tokens, _, cut in found] == [([1, 1, 0], False), ([0], False)]
    assert found[1][1] == pytest.approx(float(torch.tensor([3.0, 0.0]).log_softmax(0)[0]))
    cut = written_by(Told({(): [0.0, 1.0], (1,): [0.0, 1.0]}), 1, 2, ends=[0], over=lambda tokens: False)
    assert cut[0][0] == [1, 1] and cut[0][2]


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_written_label_is_the_likeliest_where_labels_are_one_token(
    family: str, request: pytest.FixtureRequest
) -> None:
    backbone, data = opened(request.getfixturevalue(family)), tiny_dataset("classification")
    scored, written = (
        Prompt(shots=2, template="category", answer=answer).fit(tiny_bench(data, backbone))
        for answer in ("likelihood", "written")
    )
    ours, theirs = (np.asarray(one.logits(data.test.examples)) for one in (written, scored))
    if family == "t5":  # to the other one its labels are several tokens
        assert ours == pytest.approx(theirs - theirs.max(axis=1, keepdims=True), abs=1e-4)
    assert (ours.max(axis=1) == 0).all() and ours.min() < -1e-3


def test_greedy_writing_is_that_of_transformers(gpt2: Path) -> None:
    model = prompted_model_of(opened(gpt2))
    prompts = model.reader.tokens(PROMPTS)
    model.begin("", PROMPTS[0])
    network = GPT2LMHeadModel.from_pretrained(gpt2).eval()
    for prompt, (text, chance, *_) in zip(prompts, model.write(prompts, TextSearch(1, 1.0, 0, 8), ""), strict=True):
        found = network.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False, pad_token_id=0)[0].tolist()
        tokens = found[len(prompt) :]
        assert text == model.reader.text_of([token for token in tokens if token != 3]).strip()
        with torch.no_grad():
            shares = network(torch.tensor([found])).logits[0].log_softmax(dim=-1)
        told = sum(float(shares[len(prompt) - 1 + place, token]) for place, token in enumerate(tokens))
        assert chance == pytest.approx(told, abs=1e-3)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
@pytest.mark.parametrize("answer", ["likelihood", "written"])
def test_a_regression_answers_a_number_of_its_range(family: str, answer: str, request: pytest.FixtureRequest) -> None:
    backbone, data = opened(request.getfixturevalue(family)), tiny_dataset("regression")
    fitted = Prompt(shots=2, answer=answer).fit(tiny_bench(data, backbone))
    assert isinstance(fitted, Prompted) and len(fitted.numbers) > 2
    found = flat(fitted.logits(data.test.examples))
    assert found.shape == (len(data.test.examples), 1)
    assert min(fitted.numbers) <= found.min() and found.max() <= max(fitted.numbers)
    if answer == "written":
        assert all(np.isclose(fitted.numbers, one).any() for one in found[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "t5"])
@pytest.mark.parametrize("kind", ["classification", "choice", "regression"])
@pytest.mark.parametrize("answer", ["likelihood", "written"])
def test_the_contract_of_methods(family: str, kind: str, answer: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(family)
    check_method("prompt", {"shots": 2, "answer": answer}, backbone=f"hf:{folder}", of_kinds=[kind])


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_written_text_is_as_probable_when_it_is_read_back(family: str, request: pytest.FixtureRequest) -> None:
    data, backbone = tiny_dataset("generation"), opened(request.getfixturevalue(family), writes=True)
    fitted = Prompt(shots=1).fit(tiny_bench(replace(data, task=data.task.resolved(longest=6)), backbone))
    assert isinstance(fitted, PromptedWriter)
    outputs = np.asarray(fitted.logits(data.test.examples))
    assert (outputs["log_probability"] < 0).all()
    found = fitted.read_back(data.test.examples, outputs)
    assert np.isfinite(found).all() and found.shape == outputs.shape
    if family == "t5":  # its tokenizer cuts a text as it was written
        same = [not cut and text for text, _, cut, _ in outputs.tolist()]
        assert found[same] == pytest.approx(outputs["log_probability"][same], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_contract_of_methods_that_write(family: str, request: pytest.FixtureRequest) -> None:
    check_method("prompt", {"shots": 1}, backbone=f"hf:{request.getfixturevalue(family)}", of_kinds=["generation"])


def test_a_template_says_what_stands_before_and_behind_a_written_text(gpt2: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[written.a]\nexample = "of {text}"\nanswer = "\\nit was {answer}."\n')
    data = tiny_dataset("generation")
    data = replace(data, task=data.task.resolved(longest=12))
    fitted = Prompt(shots=1, template=str(path)).fit(tiny_bench(data, opened(gpt2)))
    assert isinstance(fitted, PromptedWriter) and fitted.prompts.end == ".\n\n"
    assert fitted.prompts.context({"text": "a film"}).endswith("of a film\nit was")
    assert fitted.prompts.shots[0].endswith(" film.")
    long = Example("long", {"text": "film " * 600})
    (asked,), cut = fitted.tokenised([long])
    assert cut == 1 and 280 < len(asked.context) + 12 <= 300  # room for what is written
    assert len(fitted.logits([long])) == 1


def test_numbers_that_are_none_are_an_error(t5: Path) -> None:
    backbone = opened(t5, writes=True).copy()
    torch.nn.init.constant_(next(iter(backbone.module.parameters())), float("nan"))
    model: Any = prompted_model_of(backbone)
    asked = model.tokenise(PROMPTS, [[" good", " bad"]] * 3, "")
    for work in (model.likelihoods, model.margins):
        with pytest.raises(IncompatibleModule, match="no numbers"):
            work(asked)


def test_labels_that_are_the_same_tokens_are_an_error(t5: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[text.a]\nexample = "{text}"\nanswer = "{label}"\nwords = { good = "#", bad = "&" }\n')
    with pytest.raises(ConfigError, match="the same tokens"):
        Prompt(template=str(path)).fit(tiny_bench(tiny_dataset("classification"), opened(t5)))
