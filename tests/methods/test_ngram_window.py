"""The n-gram window as a method: it chooses its window on train, and never answers nothing."""

from __future__ import annotations

from graftwork.core.task import Dataset, Split
from graftwork.methods.ngram_window import NgramWindow
from graftwork.registry import kinds
from graftwork.targets.passages import Gold, Golds, Passage, question_of
from graftwork.testing import tiny_bench, tiny_dataset


def test_window_chosen_on_train() -> None:
    data, kind = tiny_dataset("span"), kinds.get("span")
    examples = []
    for number, name in enumerate(["Ann", "Bob", "Eve", "Kim"]):
        passage = Passage.of(f"On day {number} the prize was won by {name}, who left.")
        golds = Golds([Gold(name, passage.text.index(name))], passage)
        examples.append(question_of(f"train/{number}", "The prize was won by whom?", passage, golds))
    train = Split("train", tuple(examples), kind.encode([example.target for example in examples], data.task))
    fitted = NgramWindow().fit(tiny_bench(Dataset(data.task, {**data.splits, "train": train}, ""), None))
    assert (fitted.facts["window"], fitted.facts["words"]) == ("behind", 1) and fitted.facts["train_f1_by_window"][
        "behind 1"
    ] == 1
    assert [answer["answer"] for answer in kind.decode(fitted.logits(examples), data.task, examples)] == [
        "Ann",
        "Bob",
        "Eve",
        "Kim",
    ]


def test_it_fits_questions_only() -> None:
    assert NgramWindow().unfit(tiny_dataset("span").task, None) == ""
    assert "questions about passages" in NgramWindow().unfit(tiny_dataset("tagging").task, None)
