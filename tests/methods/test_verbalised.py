"""Tasks as texts: sources, answers, their likelihoods, and what a tiny T5 that is trained to write them answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting, Workbench, unfit
from graftwork.core.ragged import Ragged, flat
from graftwork.core.run import Recipe
from graftwork.core.task import Dataset, Task
from graftwork.errors import ConfigError
from graftwork.methods.verbalised import FittedVerbalised, Verbalised
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.targets.verbal_answers import VerbalAnswers, even_step, source_of, verbal_answers
from graftwork.testing import check_method, tiny_bench, tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.prompted_model import opened_to_write
from graftwork.train.text_loop import padded_tokens, writer_of

FAST = "lora:rank=2:learning_rate=0.02"


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    """The encoder of a tiny T5 that can write numbers, as tasks of the older kinds open it."""
    folder = write_seq2seq(tmp_path_factory.mktemp("t5"))
    told = json.loads((folder / "tokenizer.json").read_text())
    digits = dict(zip("bdfgjkpqvwxz", "0123456789.-", strict=True))
    told["model"]["vocab"] = [[digits.get(piece, piece), chance] for piece, chance in told["model"]["vocab"]]
    (folder / "tokenizer.json").write_text(json.dumps(told))
    return open_backbone(f"hf:{folder}", precision="fp32")


def fitted_on(
    data: Dataset, backbone: Backbone, epochs: int = 2, **settings: Any
) -> tuple[FittedVerbalised, Workbench]:
    """Fit to the data with a small LoRA."""
    bench = tiny_bench(data, backbone, epochs=epochs)
    return Verbalised(**{"by": FAST, **settings}).fit(bench), bench


def numbers_of(*targets: float, step: float = 0.0) -> VerbalAnswers:
    """The answers of a regression with these training targets."""
    task = kinds.get("regression").resolve(Task("t", Path(), kind="regression"), targets)
    return verbal_answers(task, targets, step)


def test_a_source_names_its_fields() -> None:
    pair = Example("train/1", {"text_a": "It rains.", "text_b": "It is wet."}, "yes")
    assert source_of(pair, "mrpc").inputs == {"text": "mrpc sentence1: It rains. sentence2: It is wet."}
    asked = Example("train/1", {"question": "Who?", "words": ("Ann", ",", "I", "see")}, source="Ann, I see")
    assert source_of(asked, "none").inputs == {"text": "question: Who? context: Ann, I see"}
    one = Example("train/1", {"text": "why", "choices": ("so", "thus")}, (1, 0))
    assert source_of(one, "none").inputs == {"text": "choice1: so choice2: thus sentence: why"}


def test_numbers_are_those_of_t5_where_the_scale_is_that_of_stsb() -> None:
    found = numbers_of(0.0, 2.6, 5.0)
    assert found.texts == tuple(f"{number / 5:.1f}" for number in range(26))
    task = kinds.get("regression").resolve(Task("t", Path(), kind="regression"), [0.0, 2.6, 5.0])
    encoded = flat(kinds.get("regression").encode([2.57, 0.1001, -3.0, 9.0], task))
    assert [found.right(target) for target in encoded] == ["2.6", "0.2", "0.0", "5.0"]
    assert numbers_of(-1.0, 1.0, step=0.5).texts == ("-1.0", "-0.5", "0.0", "0.5", "1.0")
    assert [even_step(span) for span in (5.0, 5.1, 100.0, 0.003, 25.0)] == [0.2, 0.5, 5.0, 0.0002, 1.0]


@pytest.mark.parametrize("step", [10.0, 0.001])
def test_a_step_that_does_not_suit_the_numbers_is_refused(step: float) -> None:
    with pytest.raises(ConfigError, match="the step does not suit") as caught:
        numbers_of(0.0, 5.0, step=step)
    assert caught.value.expected == "a step that makes 2 to 200 numbers"


def test_labels_are_written_with_blanks_unless_that_makes_two_alike() -> None:
    for labels, texts in ((("not_so", "so"), ("not so", "so")), (("a_b", "a b"), ("a_b", "a b"))):
        assert verbal_answers(Task("t", Path(), labels=labels), [], 0.0).texts == texts


def test_a_number_is_the_mean_of_all_and_choices_are_cut_to_their_count() -> None:
    chances = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1e4]])
    found = VerbalAnswers(("0", "1", "2"), (-1.0, 0.0, 1.0)).logits(chances, [])
    np.testing.assert_allclose(np.asarray(found)[:, 0], softmax(chances, axis=1) @ [-1.0, 0.0, 1.0])
    examples = [Example("a", {"text": "", "choices": ("x",) * count}) for count in (2, 3)]
    cut = VerbalAnswers(()).logits(chances, examples)
    assert isinstance(cut, Ragged) and cut.tolist() == [[[0.0], [1.0]], [[3.0], [0.0], [-1e4]]]


def test_logits_are_the_likelihoods_of_the_labels(t5: Backbone) -> None:
    data = tiny_dataset("classification", pair=True)
    fitted, bench = fitted_on(data, t5, prefix="film")
    found, model = np.asarray(fitted.logits(data.test.examples)), fitted.writer.model
    for row, example in enumerate(data.test.examples[:3]):
        read = model.backbone.encode([source_of(example, "film")])
        inputs = model.backbone.collate(read, [0])
        tokens = padded_tokens(writer_of(model).encode_texts(data.task.labels, 9)[0])
        with torch.no_grad():
            states, mask = model.read(inputs), inputs["attention_mask"]
            alone = [float(writer_of(model).log_probabilities(states, mask, told[None]).sum()) for told in tokens]
        np.testing.assert_allclose(found[row], alone, atol=1e-4)
    told = fitted.facts
    assert told["answers"] == list(data.task.labels) and told["source"].startswith("film sentence1: ")
    assert 0 <= told["validation_written_outside"] <= told["validation_rows"] == len(data.validation.examples)
    assert bench.tally.flops > 0 and fitted.flops(data.test.examples[:1])[0] > 0


@pytest.mark.slow
def test_it_learns_to_write_the_labels(t5: Backbone) -> None:
    data = tiny_dataset("classification", rows=40)
    fitted, bench = fitted_on(data, t5, epochs=12)
    free = fitted.writer.logits([source_of(example, "none") for example in data.validation.examples])["text"].tolist()
    outside = sum(text.strip() not in data.task.labels for text in free)
    assert fitted.facts["validation_written_outside"] == outside == 0
    assert bench.score(fitted.logits(data.validation.examples)) > 0.8


@pytest.mark.parametrize(
    "kind",
    ["classification", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("span", "regression", "choice"))],
)
def test_the_contract_of_methods(kind: str, t5: Backbone) -> None:
    check_method("verbalised", {"by": FAST}, backbone=t5.card.id, of_kinds=(kind,))


@pytest.mark.slow
@pytest.mark.parametrize("by", ["full", "adapter:size=4", "ia3", "top_layers:k=1"])
def test_the_contract_with_other_methods(by: str, t5: Backbone) -> None:
    check_method("verbalised", {"by": by}, backbone=t5.card.id, of_kinds=("classification",))


def test_labels_of_the_same_tokens_are_refused(t5: Backbone) -> None:
    data = tiny_dataset("classification")
    alike = replace(data, task=data.task.resolved(labels=("\u4e00", "\u4e8c"), positive=None))
    with pytest.raises(ConfigError, match="the same tokens") as caught:
        fitted_on(alike, t5)
    assert caught.value.got == "'\u4e00' and '\u4e8c'" and "rename" in caught.value.do


@pytest.mark.parametrize(
    ("settings", "kind", "why"),
    [
        ({}, "tagging", "it answers classification, regression, choice, span of texts, and this task is tagging"),
        ({"step": -1.0}, "regression", "step must be 0 or more"),
        ({"by": "linear_probe"}, "classification", "linear_probe trains no network that writes"),
        ({"by": "no_transfer"}, "classification", "'no_transfer' is itself over another method"),
        ({"by": "top_layers:k=99"}, "classification", "99"),
    ],
)
def test_it_says_why_it_does_not_fit(settings: dict[str, Any], kind: str, why: str, t5: Backbone) -> None:
    assert why in unfit(Verbalised(**settings), tiny_dataset(kind).task, t5.card)


def test_it_reads_texts_alone(t5: Backbone) -> None:
    why = unfit(Verbalised(), replace(tiny_dataset().task, image="file"), t5.card)
    assert why.endswith("of texts, and this task is classification of images")


def test_a_backbone_without_a_decoder_does_not_fit() -> None:
    card = open_backbone("tiny_text", precision="fp32").card
    assert "tiny_text writes no texts" in unfit(Verbalised(), tiny_dataset().task, card)


def test_other_methods_keep_their_ids_beside_it(t5: Backbone, tmp_path: Path) -> None:
    rows = "".join(f"it was {word} {place}\t{word}\n" for place in range(20) for word in ("good", "bad"))
    (tmp_path / "t.tsv").write_text(f"text\tlabel\n{rows}")
    methods = [parse_method(words) for words in ("lora", "verbalised:by=lora")]
    setup = RunSettings(backbone=t5.card.id, runs=str(tmp_path / "runs"), cache=str(tmp_path / "cache"))
    task, recipe = Task.from_file(tmp_path / "t.tsv"), Recipe()
    alone, beside = (open_session(task, listed, setup) for listed in (methods[:1], methods))
    assert alone.spec(methods[0], recipe, 0).id == beside.spec(methods[0], recipe, 0).id
    heads = [beside.spec(method, recipe, 0).recipe["head_start"] for method in methods]
    assert "linear layer" in heads[0] and "language-model head" in heads[1]


def test_the_decoder_is_opened_beside_one_encoder(t5: Backbone) -> None:
    task = tiny_dataset("classification").task
    network = opened_to_write(Setting(task, kinds.get("classification"), t5))
    again = {id(weight) for weight in network.module.parameters()}
    assert {id(weight) for weight in t5.module.parameters()} < again
    plain = open_backbone(t5.card.id, precision="fp32", writes=True)
    assert len(again) == len(list(plain.module.parameters()))  # what was tied is tied
    for ours, theirs in zip(network.module.parameters(), plain.module.parameters(), strict=True):
        assert torch.equal(ours, theirs)
