"""Encoder-decoders that write: losses, states and texts are those of transformers, token by token."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DynamicCache,
    EncoderDecoderCache,
    T5EncoderModel,
)

from graftwork.core.example import Example
from graftwork.core.method import unfit
from graftwork.core.model import Model
from graftwork.core.writing import TOKENS, TextSearch, TextWriter, reading_part
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.load_seq2seq import special_tokens
from graftwork.pretrained.open_backbone import can_write, open_backbone
from graftwork.pretrained.seq2seq import POSITIONS_AT_ONCE, Seq2SeqBackbone, SpecialTokens
from graftwork.registry import kinds
from graftwork.testing import check_backbone, check_method, tiny_dataset
from graftwork.testing.tiny_writers import WRITERS, write_seq2seq
from graftwork.train.text_loop import padded_tokens

TEXTS = ["the film was so good", "sad", "it was a warm film is it so fine or cold", "a bad film"]
WANTED = ["a good film", "so sad", "it is warm", "bad"]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]
SLOW = {"t5", "mt5", "pegasus", "mbart", "marian", "m2m_100"}
SEARCHES = (TextSearch(1, 1.0, 0, 12), TextSearch(3, 0.6, 2, 12))


def opened(folder: Path) -> Seq2SeqBackbone:
    """Opened to write, in fp32."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone) and isinstance(backbone, TextWriter)
    return backbone


def until_end(row: list[int]) -> list[int]:
    """The tokens of a text, with its end, without what is put behind it."""
    return row[: row.index(1) + 1] if 1 in row else row


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gated T5, which no test changes."""
    return write_seq2seq(tmp_path_factory.mktemp("t5"), "t5 gated")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in WRITERS])
def test_losses_states_and_texts_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    backbone = opened(write_seq2seq(tmp_path, name))
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(4))
    given = AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(inputs["input_ids"], given["input_ids"])
    assert backbone.card.parameters == sum(weight.numel() for weight in theirs.parameters())
    tokens = padded_tokens(backbone.encode_texts(WANTED, 12)[0])
    with torch.no_grad():
        states, mask = backbone.features(inputs).sequence, inputs["attention_mask"]
        expected = theirs.get_encoder()(**{key: given[key] for key in ("input_ids", "attention_mask")})[0]
        torch.testing.assert_close(states[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)
        start = torch.tensor([backbone.special.start]).expand(4, 1)
        before = torch.cat([start, tokens[:, :-1].masked_fill(tokens[:, :-1] < 0, backbone.special.pad)], dim=1)
        loss = theirs(input_ids=given["input_ids"], attention_mask=mask, decoder_input_ids=before, labels=tokens).loss
        ours = backbone.log_probabilities(states, mask, tokens)
        torch.testing.assert_close(-ours.sum() / (tokens >= 0).sum(), loss, atol=1e-5, rtol=1e-5)
        for search in SEARCHES:
            found = backbone.write(states, mask, search)
            wanted = theirs.generate(
                input_ids=given["input_ids"], attention_mask=mask, num_beams=search.beams, do_sample=False,
                num_return_sequences=search.beams, max_new_tokens=12, no_repeat_ngram_size=search.no_repeat,
                past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
                **({"length_penalty": search.length_penalty} if search.beams > 1 else {}),
            ).tolist()  # fmt: skip
            every = [one for row in found for one in (row, *row.others)]
            assert [one.tokens for one in every] == [until_end(row[1:]) for row in wanted]
            assert [one.ended for one in every] == [1 in row[1:] for row in wanted]
    if name == "bart":
        assert {row.tokens[0] for row in found} == {3} == {row[0] for row in backbone.encode_texts(WANTED, 12)[0]}


def test_the_encoder_by_itself_is_the_backbone_of_other_tasks(folder: Path) -> None:
    writer, encoder = opened(folder), open_backbone(f"hf:{folder}", precision="fp32")
    assert reading_part(writer).card == encoder.card and not encoder.card.writes and reading_part(encoder) is encoder
    check_backbone(writer.reading, absent=("attention.qkv",))
    assert writer.card.revision != encoder.card.revision and writer.card.writes and writer.card.blocks == 5
    inputs = encoder.collate(encoder.encode(EXAMPLES), range(4))
    for ours, theirs in zip(writer.states(inputs), encoder.states(inputs), strict=True):
        assert torch.equal(ours, theirs)


def test_roles_have_sites_in_both_halves(folder: Path) -> None:
    writer = opened(folder)
    assert list(writer.sites("block")) == [f"encoder.block.{i}" for i in range(2)] + [
        f"decoder.block.{i}" for i in range(3)
    ]
    assert len(writer.sites("attention.query")) == 2 + 3 + 3 and len(writer.sites("mlp.up")) == 5
    assert "decoder.block.2.layer.1.EncDecAttention.v" in writer.sites("attention.value")
    assert len(writer.sites("norm")) == 2 * 2 + 3 * 3 and len(writer.sites("attention")) == 2 + 3 + 3
    twin = writer.twin()
    assert twin.module.shared.weight is writer.module.shared.weight is twin.module.decoder.embed_tokens.weight


def test_rates_fall_from_the_top_of_each_half(folder: Path) -> None:
    task = tiny_dataset("generation").task
    model = Model(opened(folder), kinds.get("generation"), task, towers=1)
    Full(decay=0.5).attach(model)
    rates = {name.removeprefix("network."): rate for name, rate in model.rates.items()}
    table = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert rates["shared.weight"] == rates[f"encoder.{table}"] == rates[f"decoder.{table}"] == 0.5**3
    assert rates["lm_head.weight"] == rates["decoder.final_layer_norm.weight"] == 1
    assert rates["decoder.block.0.layer.1.EncDecAttention.q.weight"] == 0.25
    assert rates["encoder.block.1.layer.0.SelfAttention.q.weight"] == 1 and model.tables() == []


@pytest.mark.parametrize(("k", "kept"), [(2, 2), (4, 1)])
def test_top_layers_start_from_kept_states_of_the_encoder(k: int, kept: int, folder: Path) -> None:
    task = tiny_dataset("generation").task
    model = Model(opened(folder), kinds.get("generation"), task, towers=1).eval()
    TopLayers(k=k).attach(model)
    writer = opened(folder)
    inputs = writer.collate(writer.encode(EXAMPLES), range(4))
    asked = inputs | {TOKENS: padded_tokens(writer.encode_texts(WANTED, 12)[0])}
    entering = writer.states(inputs)[kept]
    assert model.prefix == kept and torch.equal(model(asked, entering), model(asked))
    assert all("decoder" in name for name in model.delta()) == (k < 4)


def test_long_texts_are_cut_without_an_end(folder: Path) -> None:
    writer = opened(folder)
    tokens, cut = writer.encode_texts(["a film", "a good film it was"], 3)
    assert cut == 1 and tokens[0][-1] == 1 and len(tokens[1]) == 3 and tokens[1][-1] != 1
    assert writer.text_of(tokens[0]) == "a film"


def test_a_folder_that_does_not_say_how_texts_begin_is_refused(tmp_path: Path) -> None:
    for name in ("config.json", "generation_config.json"):
        path = write_seq2seq(tmp_path, "t5") / name
        told = json.loads(path.read_text())
        path.write_text(json.dumps({key: value for key, value in told.items() if key != "decoder_start_token_id"}))
    (tmp_path / "generation_config.json").unlink()
    config = tmp_path / "config.json"
    told = json.loads(config.read_text())
    told.pop("decoder_start_token_id", None)
    config.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match="decoder_start_token_id"):
        opened(tmp_path)


@pytest.mark.parametrize("stated", [3, [["x"]], [[]], [[999]], [4]])
def test_words_that_are_never_written_are_tokens(stated: Any, tmp_path: Path) -> None:
    path = write_seq2seq(tmp_path, "marian") / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bad_words_ids": stated}))
    config = AutoConfig.from_pretrained(tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match="bad_words_ids are no sequences of tokens"):
        special_tokens(tmp_path, config, tokenizer, 0)


METHODS = [
    ("lora", {"rank": 2}), ("full", {}), ("top_layers", {"k": 1}), ("adapter", {"size": 4}), ("ia3", {}),
    ("prefix", {"length": 2}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), METHODS)
def test_methods(name: str, settings: dict[str, Any], folder: Path) -> None:
    check_method(name, settings, backbone=f"hf:{folder}", of_kinds=("generation",))


@pytest.mark.slow
def test_biases_of_both_halves_train(tmp_path: Path) -> None:
    check_method("bitfit", backbone=f"hf:{write_seq2seq(tmp_path, 'bart')}", of_kinds=("generation",))


def test_a_folder_of_an_encoder_alone_writes_nothing(folder: Path, tmp_path: Path) -> None:
    T5EncoderModel.from_pretrained(folder).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, tmp_path)
    encoder = open_backbone(f"hf:{tmp_path}", precision="fp32", writes=True)
    assert not encoder.card.writes and encoder.card.blocks == 2
    assert can_write(f"hf:{folder}") and not can_write(f"hf:{tmp_path}") and can_write(f"random:hf:{tmp_path}")
    assert "writes no texts" in unfit(Lora(), tiny_dataset("generation").task, encoder.card)


def test_what_writes_nothing_does_not_fit() -> None:
    encoder = open_backbone("tiny_text", precision="fp32", writes=True)
    task = tiny_dataset("generation").task
    assert "writes no texts" in unfit(Lora(), task, encoder.card) and not encoder.card.writes


@pytest.mark.parametrize("beams", [1, 3])
def test_keys_of_what_was_read_are_computed_once(beams: int, folder: Path) -> None:
    writer, runs = opened(folder), list[str]()
    for path, site in writer.sites("attention.key").items():
        site.register_forward_hook(lambda *of, path=path: runs.append(path))
    inputs = writer.collate(writer.encode(EXAMPLES), range(4))
    with torch.no_grad():
        states = writer.features(inputs).sequence
        runs.clear()
        found = writer.write(states, inputs["attention_mask"], TextSearch(beams, 1.0, 0, 6))
    assert max(len(row.tokens) for row in found) > 2 and runs.count("decoder.block.2.layer.0.SelfAttention.k") > 2
    assert [runs.count(f"decoder.block.{block}.layer.1.EncDecAttention.k") for block in range(3)] == [1, 1, 1]


def test_log_probabilities_without_a_gradient_are_computed_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(folder)
    inputs = writer.collate(writer.encode(EXAMPLES), range(4))
    tokens, mask, read = padded_tokens(writer.encode_texts(WANTED, 12)[0]), inputs["attention_mask"], []
    assert tokens.numel() <= POSITIONS_AT_ONCE
    states = writer.states(inputs)[-1]
    whole = writer.log_probabilities(states, mask, tokens)
    assert whole.requires_grad is False
    monkeypatch.setattr("graftwork.pretrained.seq2seq.POSITIONS_AT_ONCE", tokens.shape[1] + 1)
    writer.module.decoder.register_forward_hook(lambda *given: read.append(1))
    with torch.no_grad():
        torch.testing.assert_close(writer.log_probabilities(states, mask, tokens), whole, atol=1e-5, rtol=1e-5)
    assert len(read) == len(tokens)


def test_new_fields_of_special_tokens_change_no_revision() -> None:
    plain = SpecialTokens((0,), (), (1,), 0)
    assert plain.identity == "SpecialTokens(start=0, first=(), ends=(1,), pad=0, banned=())"
    bart = SpecialTokens((2,), (0,), (2,), 1, ((3, 4),))
    assert bart.identity == "SpecialTokens(start=2, first=(0,), ends=(2,), pad=1, banned=((3, 4),))"
    sounds = SpecialTokens((5, 6), (), (1,), 0, languages=(7, 8), lead=" ")
    assert sounds.identity.startswith("SpecialTokens(start=(5, 6), ")
    assert sounds.identity.endswith(", banned=(), languages=(7, 8), lead=' ')")


def test_the_revision_of_a_saved_t5_is_kept(folder: Path) -> None:
    writer = opened(folder)
    former = {
        "reading": reading_part(writer).card.revision,
        "special": "SpecialTokens(start=0, first=(), ends=(1,), pad=0, banned=())",
    }
    assert writer.card.revision == digest(former)
