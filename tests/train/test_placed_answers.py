"""Written answers that are looked up in what is read: parts of long passages, stray texts, no answer, modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.task import Dataset, Task
from graftwork.errors import IncompatibleModule
from graftwork.io.files import read_json, write_json
from graftwork.methods.verbalised import Verbalised
from graftwork.module.task_module import READ_BACK, TaskModule, save_module
from graftwork.module.thresholds import WithThresholds, with_thresholds
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.targets.passages import Gold, Golds, Passage, question_of
from graftwork.targets.verbal_answers import source_of
from graftwork.targets.written_texts import Text, written_array
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_data import dataset_of
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train import placed_answers
from graftwork.train.placed_answers import PlacedAnswers, parts_for, taught_parts

FAST = "lora:rank=2:learning_rate=0.02"
Says = Callable[..., None]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{write_seq2seq(tmp_path_factory.mktemp('t5') / 't5')}"


@pytest.fixture(scope="module")
def t5(network: str) -> Backbone:
    """The encoder of a tiny T5."""
    return open_backbone(network, precision="fp32")


@pytest.fixture(scope="module")
def fitted(t5: Backbone) -> tuple[PlacedAnswers, Dataset]:
    """A T5 that was trained a little on the toy questions, of which some have no answer."""
    data = tiny_dataset("span")
    made = Verbalised(by=FAST).fit(tiny_bench(data, t5, epochs=1))
    assert isinstance(made, PlacedAnswers)
    return made, data


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """Let the network write these texts, part by part, each with its log-probability and that of no answer."""

    def say(*told: tuple[str, float, float]) -> None:
        def writes(model: Any, encoded: Any, search: Any, beside: Any = ()) -> Any:
            assert len(encoded) == len(told)
            others: list[tuple[Text, ...]] = [
                (("unanswerable", none, False),) if beside and text != "unanswerable" else () for text, _, none in told
            ]
            return written_array([text for text, _, _ in told], [one[1] for one in told], [False] * len(told), others)

        monkeypatch.setattr(placed_answers, "write", writes)

    return say


def asked(text: str, question: str = "what is it?", gold: str = "") -> Example:
    golds = [Gold(gold, text.index(gold))] if gold else []
    passage = Passage.of(text)
    return question_of("q", question, passage, Golds(golds, passage))


def answers(fitted: PlacedAnswers, *examples: Example) -> list[dict[str, Any]]:
    return kinds.get("span").decode(fitted.logits(examples), fitted.task, examples)


def always(fitted: PlacedAnswers) -> PlacedAnswers:
    """The same network on a task whose questions all have an answer."""
    return replace(fitted, task=fitted.task.resolved(unanswerable=False))


def test_offsets_are_those_of_the_passage_whatever_letters_it_has(
    fitted: tuple[PlacedAnswers, Dataset], says: Says
) -> None:
    text = "Größe in İzmir – “Łódź” – 東京, 3,5 ñ."
    says(("łódź", -0.5, -4.0), ("東京", -0.1, -5.0))
    found = answers(fitted[0], asked(text), asked(text))
    assert [one["answer"] for one in found] == ["Łódź", "東京"]
    assert all(text[one["start"] : one["end"]] == one["answer"] for one in found)


def test_texts_that_stand_nowhere_are_counted(fitted: tuple[PlacedAnswers, Dataset], says: Says) -> None:
    told = ("a film", -0.2, -3.0), ("violet", -0.2, -3.0), ("unanswerable", -0.1, -0.1), ("a film", -4.0, -0.3)
    examples = [asked("so it was a film")] * 4
    says(*told)
    found = answers(fitted[0], *examples)
    assert [one["answer"] for one in found] == ["a film", "", "", ""]
    assert found[1]["probability"] == pytest.approx(math.exp(-3.0))
    assert found[2]["probability"] == pytest.approx(math.exp(-0.1))
    assert fitted[0].outside(examples) == 1
    assert always(fitted[0]).outside(examples) == 2, "where all have an answer, none is a stray text too"
    forced = answers(always(fitted[0]), *examples)
    assert all(one["answer"] for one in forced) and forced[1]["probability"] < 1e-3 < forced[0]["probability"]


def test_what_is_most_alike_is_counted_and_less_probable(fitted: tuple[PlacedAnswers, Dataset], says: Says) -> None:
    says(("warm film", math.log(0.8), -9.0))
    example = asked("so it was a cold film.")
    (found,) = answers(always(fitted[0]), example)
    assert found["answer"] == "film" and found["probability"] == pytest.approx(0.8 * 2 / 3)
    assert fitted[0].outside([example]) == 1


@pytest.fixture(scope="module")
def long(t5: Backbone) -> tuple[Example, list[tuple[int, Example]]]:
    """A question about a passage that is longer than the network reads, and its parts."""
    middle = " ".join(f"the good film of {'abcdefghij'[number % 10]}" for number in range(150))
    example = asked(f"cold {middle} warm.", gold="warm")
    parts = [(first, part) for _, first, part in parts_for(t5, [example], "none")]
    return example, parts


def test_long_passages_are_read_in_parts(t5: Backbone, long: tuple[Example, list[tuple[int, Example]]]) -> None:
    example, parts = long
    assert len(parts) > 1 and parts[-1][1].inputs["words"][-1] == "."
    sources = [source_of(part, "none") for _, part in parts]
    encoded = t5.encode(sources)
    assert encoded.cut == 0 and t5.encode([source_of(example, "none")]).cut == 1
    assert encoded.lengths[0] > t5.card.max_length - 30, "as long as fits"
    assert all(one.inputs["text"].startswith("question: what is it? context: ") for one in sources)
    among = parts_for(t5, [asked("so it was"), example, asked("a film")], "none")
    assert [part.owner for part in among] == [0, *[1] * len(parts), 2]


def test_of_a_long_passage_the_part_with_the_answer_is_trained_on(
    t5: Backbone, long: tuple[Example, list[tuple[int, Example]]]
) -> None:
    kind, (example, parts) = kinds.get("span"), long
    none = replace(example, target=Golds([], example.target.passage))
    cold = replace(example, target=Golds([Gold("cold", 0)], example.target.passage))
    shown = taught_parts(t5, [example, none, cold, asked("so it was", gold="so")], "none", kind)
    assert [one.source for one in shown] == [parts[-1][1].source, parts[0][1].source, parts[0][1].source, "so it was"]


def test_the_likeliest_text_that_some_part_has_wins(
    fitted: tuple[PlacedAnswers, Dataset], long: tuple[Example, list[tuple[int, Example]]], says: Says
) -> None:
    example, parts = long
    rest = [("unanswerable", -0.01, -0.01)] * (len(parts) - 2)
    says(("cold", -2.0, -0.5), *rest, ("warm", -0.4, -3.0))
    (found,) = answers(fitted[0], example)
    assert found["answer"] == "warm" and (example.source or "")[found["start"] : found["end"]] == "warm"
    assert found["start"] == len(example.source or "") - 5
    says(("warm", -0.1, -0.2), *rest, ("violet", -0.1, -0.3))
    (found,) = answers(fitted[0], example)
    assert found["answer"] == "" and found["probability"] == pytest.approx(math.exp(-0.3), abs=1e-4), (
        "of no part it is likely"
    )
    assert fitted[0].outside([example]) == 0, "a part has no answer"
    says(*[("violet", -0.1, -0.3)] * len(parts))
    assert fitted[0].outside([example]) == 1


def test_facts_tell_what_was_written(fitted: tuple[PlacedAnswers, Dataset]) -> None:
    told, data = fitted[0].facts, fitted[1]
    first = data.train.examples[0]
    assert told["source"] == f"question: {first.inputs['question']} context: {first.source}"
    assert told["validation_written_outside"] == fitted[0].outside(data.validation.examples)
    assert told["validation_rows"] == len(data.validation.examples) and told["train_rows_in_parts"] == 0
    assert len(fitted[0].logits([])) == 0


def test_no_answer_has_the_probability_of_being_written(fitted: tuple[PlacedAnswers, Dataset]) -> None:
    made, data = fitted
    assert made.none
    silent = [one.silent for one in made._written_parts(data.test.examples)]
    logits = np.concatenate([np.asarray(rows)[:1] for rows in made.logits(data.test.examples)])  # type: ignore[arg-type]
    np.testing.assert_allclose(logits.sum(axis=1), silent)
    none = [replace(example, target=Golds([], example.target.passage)) for example in data.test.examples]
    sources = [source_of(example, "none") for example in none]
    count = len(none)
    alone = made.writer.read_back(sources, written_array(["unanswerable"] * count, [0.0] * count, [False] * count))
    np.testing.assert_allclose(silent, alone, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("unanswerable", [True, False])
def test_it_learns_to_copy_the_answer(t5: Backbone, unanswerable: bool) -> None:
    words = ("good", "bad", "warm", "cold", "fine", "sad")

    def row(place: str, number: int) -> Example:
        word = words[number % 6]
        has = number % 4 < 3 or not unanswerable
        text = f"so the film was {word}" if has else "so the film was"
        return replace(asked(text, "film was?", word if has else ""), id=place)

    rows = {"train": 60, "validation": 24, "test": 24}
    data = dataset_of(
        Task("tiny", Path(), kind="span"),
        {name: tuple(row(f"{name}/{number}", number) for number in range(count)) for name, count in rows.items()},
    )
    bench = tiny_bench(data, t5, epochs=60)
    made = Verbalised(by="full:learning_rate=0.005").fit(bench)
    assert bench.score(made.logits(data.validation.examples)) > 0.8
    assert made.facts["validation_written_outside"] < 5


@pytest.mark.parametrize("thresholds", [None, [2.0, 2.0]])
def test_a_module_gives_the_same_answers_and_is_tested_by_reading_back(
    fitted: tuple[PlacedAnswers, Dataset], t5: Backbone, thresholds: list[float] | None, tmp_path: Path
) -> None:
    made, data = with_thresholds(fitted[0], thresholds), fitted[1]
    setting = Setting(data.task, kinds.get("span"), t5)
    about = {"run": "", "method": parse_method(f"verbalised:by={FAST}").config, "recipe": {}, "scores": {}}
    about |= {"precision": "fp32", "backbone_seed": 0, "trained_parameters": made.trained_parameters}
    kept = data.test.examples[:8]
    save_module(tmp_path, setting, made, about, kept, made.logits(kept))
    module = TaskModule.load(tmp_path)
    assert isinstance(module.fitted, WithThresholds) == bool(thresholds)
    given = [(example.inputs["question"], example.source or "") for example in data.test.examples]
    assert module.predict(given) == kinds.get("span").decode(
        made.logits(data.test.examples), data.task, data.test.examples
    )
    test = read_json(tmp_path / "selftest.json")
    assert len(test[READ_BACK]) == len(kept) and all(number < 0 for number in test[READ_BACK])
    write_json(tmp_path / "selftest.json", test | {READ_BACK: [number - 1 for number in test[READ_BACK]]})
    with pytest.raises(IncompatibleModule, match="other probabilities of texts"):
        TaskModule.load(tmp_path)
    cut = [rows[:1] for rows in test["logits"]]
    write_json(tmp_path / "selftest.json", test | {"logits": cut})
    with pytest.raises(IncompatibleModule):
        TaskModule.load(tmp_path)
