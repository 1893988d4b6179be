"""Translators with tags: what they read, lose and write in a language is what transformers does, token by token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DynamicCache,
    EncoderDecoderCache,
    PreTrainedTokenizerFast,
)

from graftwork.bank.bank import Bank
from graftwork.cli.main import main
from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.core.writing import Instruction, TextSearch, TextWriter, reading_part, with_instruction
from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone
from graftwork.pretrained.seq2seq_reader import Seq2SeqReader
from graftwork.registry import kinds
from graftwork.testing.tiny_writers import TRANSLATORS, write_seq2seq, write_translator
from graftwork.train.text_loop import padded_tokens

TEXTS = ["the film was so good", "sad", "it was a warm film is it so fine or cold", "a bad film"]
WANTED = ["a good film", "so sad", "it is warm", "bad"]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]
SEARCHES = (TextSearch(1, 1.0, 0, 12), TextSearch(3, 0.6, 2, 12))


def opened(folder: Path | str) -> Seq2SeqBackbone:
    """Opened to write, in fp32, and told nothing."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone) and isinstance(backbone, TextWriter)
    return backbone


def told(folder: Path | str, **given: str) -> Seq2SeqBackbone:
    """Opened, and told this."""
    return opened(folder).instructed(Instruction(**given))


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny NLLB, which no test changes."""
    return write_translator(tmp_path_factory.mktemp("nllb"))


def theirs_of(folder: Path, name: str, source: str, target: str) -> tuple[Any, Any, torch.Tensor]:
    """What transformers makes of the folder: its network, sources and targets with their tags, as it trains on them."""
    if name == "m2m100":  # its own tokenizer needs a library that is not here
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        numbers = {tag: tokenizer.convert_tokens_to_ids(tag) for tag in (source, target)}
        plain = [tokenizer(text, add_special_tokens=False).input_ids for text in (*TEXTS, *WANTED)]
        tagged = [[numbers[source if row < 4 else target], *ids, 2] for row, ids in enumerate(plain)]
        given = tokenizer.pad({"input_ids": tagged[:4]}, padding_side="right", return_tensors="pt")
        return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), given, padded_tokens(tagged[4:])
    tokenizer = AutoTokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)
    assert type(tokenizer).__name__ == TRANSLATORS[name][1]
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    labels = padded_tokens(tokenizer(text_target=WANTED).input_ids)
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), given, labels


@pytest.mark.parametrize("name", ["mbart-50", "nllb", "m2m100"])
def test_ids_losses_and_texts_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    _, source, target = TRANSLATORS[name][2]
    backbone = told(write_translator(tmp_path, name), source_language=source, target_language=target)
    theirs, given, labels = theirs_of(tmp_path, name, source, target)
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(4))
    assert torch.equal(inputs["input_ids"], given["input_ids"])
    number = backbone.tokenizer.token_to_id(target)
    assert (inputs["input_ids"][:, 0] == backbone.tokenizer.token_to_id(source)).all() and number not in (0, 1, 2, 3)
    tokens = padded_tokens(backbone.encode_texts(WANTED, 20)[0])
    assert torch.equal(tokens, labels) and (tokens[:, 0] == number).all()
    with torch.no_grad():
        states, mask = backbone.features(inputs).sequence, inputs["attention_mask"]
        loss = theirs(**{key: given[key] for key in ("input_ids", "attention_mask")}, labels=labels).loss
        ours = backbone.log_probabilities(states, mask, tokens)
        torch.testing.assert_close(-ours.sum() / (tokens >= 0).sum(), loss, atol=1e-5, rtol=1e-5)
        for search in SEARCHES:
            wanted = theirs.generate(
                input_ids=given["input_ids"], attention_mask=mask, num_beams=search.beams, do_sample=False,
                num_return_sequences=search.beams, max_new_tokens=12, no_repeat_ngram_size=search.no_repeat,
                forced_bos_token_id=number, past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
                **({"length_penalty": search.length_penalty} if search.beams > 1 else {}),
            ).tolist()  # fmt: skip
            found = [one for row in backbone.write(states, mask, search) for one in (row, *row.others)]
            assert [one.tokens for one in found] == [
                row[1 : row.index(2, 1) + 1] if 2 in row[1:] else row[1:] for row in wanted
            ]
            assert {one.tokens[0] for one in found} == {number} and not any(
                target in backbone.text_of(one.tokens) for one in found
            )


def test_a_decoder_that_a_tag_starts_is_started_by_the_targets(tmp_path: Path) -> None:
    folder = write_translator(tmp_path, "mbart")
    plain = opened(folder)
    romanian, german = (plain.tokenizer.token_to_id(tag) for tag in ("ro_RO", "de_DE"))
    assert plain.instructed(Instruction()) is plain and plain.special.start == (romanian,)
    backbone = told(folder, source_language="de_DE", target_language="en_XX")
    assert backbone.special.start == (plain.tokenizer.token_to_id("en_XX"),) and backbone.special.first == ()
    assert all(row[-2:] == [2, german] for row in backbone.encode(EXAMPLES).ids)
    only = told(folder, source_language="de_DE")  # the folder says the other
    assert only.special.start == (romanian,) and only.encode(EXAMPLES).ids == backbone.encode(EXAMPLES).ids


def test_what_is_told_changes_what_is_read_and_no_other_that_shares_the_network(nllb: Path) -> None:
    plain = opened(nllb)
    before = plain.encode(EXAMPLES).ids
    both = Instruction("deu_Latn", "fra_Latn")
    german, french = plain.instructed(both), plain.instructed(Instruction("fra_Latn", "deu_Latn"))
    again = french.instructed(both)
    assert german.encode(EXAMPLES).ids == again.encode(EXAMPLES).ids != french.encode(EXAMPLES).ids
    assert plain.encode(EXAMPLES).ids == before and plain.special.first == ()
    assert german.module is french.module is plain.module and german.card == french.card == plain.card
    assert again.tokenizer is german.tokenizer, "a tokenizer of a language is made once"
    revisions = [reading_part(one).card.revision for one in (plain, german, french, again)]
    assert len({*revisions[:3]}) == 3 and revisions[1] == revisions[3]
    copied = german.twin()
    assert copied.encode(EXAMPLES).ids == german.encode(EXAMPLES).ids and copied.special == german.special


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (("de", "fra_Latn"), ("no tag", "source_language 'de'", "deu_Latn", "--source-language deu_Latn")),
        (("eng_Latn", "french"), ("no tag", "target_language 'french'", "fra_Latn", "--target-language fra_Latn")),
        (("eng_Latn", "klingon"), ("no tag", "'klingon'", "one of its 3 tags: eng_Latn, deu_Latn", "name one of them")),
        (("eng_Latn", "</s>"), ("no tag", "'</s>'")),
        ((None, None), ("needs the language tags", "neither of them", "two of its 3 tags", "--target-language")),
        ((None, "deu_Latn"), ("needs the language tags", "target_language 'deu_Latn' without source_language")),
        (("deu_Latn", None), ("needs the language tags", "source_language 'deu_Latn' without target_language")),
    ],
)
def test_languages_that_it_cannot_be_told_are_refused(
    given: tuple[str | None, str | None], parts: tuple[str, ...], nllb: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        opened(nllb).instructed(Instruction(*given))
    assert all(part in refused.value.message for part in (str(nllb), *parts)), refused.value.message


@pytest.mark.parametrize("writes", [True, False])
def test_a_backbone_without_tags_takes_none(writes: bool, tmp_path: Path) -> None:
    backbone = open_backbone(f"hf:{write_seq2seq(tmp_path)}", precision="fp32", writes=writes)
    with pytest.raises(ConfigError, match="takes no language tags") as refused:
        with_instruction(backbone, Instruction("en_XX", "de_DE"))
    assert "source_language 'en_XX', target_language 'de_DE'" in refused.value.got
    assert "--source-prefix" in refused.value.do and with_instruction(backbone, Instruction()) is backbone
    assert with_instruction(backbone, None) is backbone


def test_languages_of_m2m100_may_be_said_without_its_signs(tmp_path: Path) -> None:
    folder = write_translator(tmp_path, "m2m100")
    short = told(folder, source_language="de", target_language="fr")
    long = told(folder, source_language="__de__", target_language="__fr__")
    assert short.encode(EXAMPLES).ids == long.encode(EXAMPLES).ids and short.special == long.special


def test_a_folder_that_says_the_target_needs_none(tmp_path: Path) -> None:
    path = write_translator(tmp_path, "mbart-50") / "generation_config.json"
    number = opened(tmp_path).tokenizer.token_to_id("en_XX")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"forced_bos_token_id": number}))
    plain = opened(tmp_path)
    assert plain.instructed(Instruction()) is plain and plain.special.first == (number,)
    read = told(tmp_path, source_language="uk_UA")
    assert read.special == plain.special and read.encode(EXAMPLES).ids != plain.encode(EXAMPLES).ids


def test_a_prefix_stands_before_every_text_that_is_read(tmp_path: Path) -> None:
    plain = opened(write_seq2seq(tmp_path))
    backbone = plain.instructed(Instruction(source_prefix="so good: "))
    by_hand = [Example(one.id, {"text": f"so good: {one.inputs['text']}"}) for one in EXAMPLES]
    assert backbone.encode(EXAMPLES).ids == plain.encode(by_hand).ids != plain.encode(EXAMPLES).ids
    assert backbone.encode_texts(WANTED, 9) == plain.encode_texts(WANTED, 9) and backbone.special == plain.special
    pair = Example("train/9", {"text_a": "is it cold", "text_b": "it was warm"})
    told_pair = Example("train/9", {"text_a": "so good: is it cold", "text_b": "it was warm"})
    assert backbone.encode([pair]).ids == plain.encode([told_pair]).ids
    assert backbone.twin().encode(EXAMPLES).ids == backbone.copy().encode(EXAMPLES).ids == backbone.encode(EXAMPLES).ids
    long = [Example("train/8", {"text": "so " * (plain.card.max_length - 2)})]
    assert plain.encode(long).cut == 0 and backbone.encode(long).cut == 1


def test_a_tokenizer_that_puts_tags_behind_texts_still_does(tmp_path: Path) -> None:
    path = write_translator(tmp_path, "nllb") / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"legacy_behaviour": True}))
    backbone = told(tmp_path, source_language="deu_Latn", target_language="fra_Latn")
    theirs = AutoTokenizer.from_pretrained(tmp_path, src_lang="deu_Latn")
    assert backbone.encode(EXAMPLES).ids == theirs(TEXTS).input_ids
    assert backbone.encode(EXAMPLES).ids[0][-2:] == [2, theirs.convert_tokens_to_ids("deu_Latn")]


def test_the_data_report_counts_what_stands_before_a_text(rows: Path, tmp_path: Path) -> None:
    import graftwork as gw

    backbone = f"hf:{write_seq2seq(tmp_path / 't5')}"
    plain, longer = (
        gw.data_report(Task.from_file(rows, kind="generation", **given), backbone=backbone)["lengths"]["train"]
        for given in ({}, {"source_prefix": "so good " * 3})
    )
    assert plain["up to 8"] == 25 and longer["up to 8"] == 0 and longer["up to 16"] == 25
    with pytest.raises(ConfigError, match="takes no language tags"):
        gw.data_report(Task.from_file(rows, kind="generation", target_language="de_DE"), backbone=backbone)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows of a task that writes."""
    words = ("good", "bad", "warm", "cold", "fine", "sad")
    texts = [f"the film was {words[i % 6]} {words[i // 6 % 6]}" for i in range(36)]
    path = tmp_path / "last.jsonl"
    path.write_text("".join(f"{json.dumps({'text': text, 'label': text.split()[-1]})}\n" for text in texts))
    return path


def test_the_settings_reach_a_run_its_module_and_a_bank(nllb: Path, rows: Path, tmp_path: Path) -> None:
    import graftwork as gw

    given = {"kind": "generation", "longest": 4, "source_language": "deu_Latn"}
    asked = {"method": "zero_shot", "backbone": f"hf:{nllb}", "runs": str(tmp_path / "runs"), "precision": "fp32"}
    bank = Bank.create(tmp_path / "shop.bank")
    for target in ("fra_Latn", "eng_Latn"):
        task = Task.from_file(rows, name=target, target_language=target, **given)
        bank.add(gw.train(task, **asked).folder / "module", target)
    question = bank.tasks["fra_Latn"].description["task"]
    assert (question["source_language"], question["target_language"]) == ("deu_Latn", "fra_Latn")
    module = bank.module("fra_Latn")
    assert "a text of its own from deu_Latn to fra_Latn" in (module.folder / "README.md").read_text()
    assert isinstance(module.backbone, Seq2SeqBackbone)
    number = module.backbone.tokenizer.token_to_id("fra_Latn")
    assert module.backbone.special.first == (number,) and module.difference == 0.0
    shared = bank.open_backbone()
    assert (
        isinstance(shared, Seq2SeqBackbone) and shared.special.first == () and shared.module is module.backbone.module
    )
    answers = bank.predict([(name, TEXTS[0]) for name in ("fra_Latn", "eng_Latn")])
    alone = [TaskModule.load(bank.tasks[name].folder).predict([TEXTS[0]])[0] for name in ("fra_Latn", "eng_Latn")]
    assert [one["log_probability"] for one in answers] == pytest.approx([one["log_probability"] for one in alone])
    assert answers[0]["log_probability"] != answers[1]["log_probability"]
    assert bank.cut([("fra_Latn", "a " * 600), ("eng_Latn", "a")]) == [True, False]


def test_a_bank_counts_the_prefix_of_a_task_in_what_is_cut(rows: Path, tmp_path: Path) -> None:
    import graftwork as gw

    network = f"hf:{write_seq2seq(tmp_path / 't5')}"
    bank = Bank.create(tmp_path / "shop.bank")
    for name, given in (("plain", {}), ("told", {"source_prefix": "so good "})):
        task = Task.from_file(rows, name=name, kind="generation", longest=4, **given)
        made = gw.train(task, method="zero_shot", backbone=network, precision="fp32", runs=str(tmp_path / "runs"))
        bank.add(made.folder / "module", name)
    assert bank.card is not None
    text = "so " * (bank.card.max_length - 2)
    assert bank.cut([("plain", text), ("told", text), ("told", "so")]) == [False, True, False]


def test_a_network_that_is_asked_reads_and_answers_with_its_tags(nllb: Path) -> None:
    backbone = told(nllb, source_language="deu_Latn", target_language="fra_Latn")
    reader, number = Seq2SeqReader(backbone), backbone.tokenizer.token_to_id
    assert [row[0] for row in reader.tokens(TEXTS)] == [number("deu_Latn")] * 4
    assert [row[0] for row in reader.answers(WANTED)] == [number("fra_Latn")] * 4


def test_settings_of_languages_are_texts() -> None:
    for name in ("source_language", "target_language", "source_prefix"):
        with pytest.raises(ConfigError, match=f"{name} must be a text"):
            Task("t", Path(), kind="generation", settings={name: " "})
    task = Task("t", Path(), kind="generation", settings={"source_prefix": "sum up: "})
    assert Instruction.of(task) == Instruction(source_prefix="sum up: ") == Instruction.of_question(task.question())
    assert Instruction.of(Task("t", Path())) is None and Instruction.of_question({"kind": "generation"}) is None
    assert kinds.get("generation").settings().source_prefix is None


def test_a_tokenizer_that_only_another_library_reads_is_told(tmp_path: Path) -> None:
    (write_translator(tmp_path, "m2m100") / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"no tokenizer\.json") as refused:
        opened(tmp_path)
    assert "M2M100" in refused.value.do


def test_the_command_line_refuses_before_anything_runs(
    nllb: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = tmp_path / "task.toml"
    task.write_text(
        f'data = "{rows.name}"\nkind = "generation"\nsource_language = "eng_Latn"\ntarget_language = "de"\n'
    )
    for data in (["task.toml"], [rows.name, "--kind", "generation", "--source-language", "eng_Latn"]):
        asked = ["train", *data, "--method", "lora", "--backbone", f"hf:{nllb}"]
        assert main([*asked, *(["--target-language", "de"] if len(data) > 1 else [])]) == 2
        said = capsys.readouterr().err
        assert "target_language 'de'" in said and "write --target-language deu_Latn" in said
    assert not list(tmp_path.glob("runs/*/spec.json"))
