"""TF-IDF and a linear SVM: what is stored restores what was fitted, for every kind of target and for pairs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.methods import tfidf_svm
from graftwork.methods.tfidf_svm import STRENGTHS, TfidfSvm, features, make_vectorizer
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.folds import FOLDS, folds_of

CASES = [("classification", False), ("classification", True), ("multilabel", False), ("regression", False),
         ("regression", True)]  # fmt: skip


def texts(*listed: str) -> list[Example]:
    return [Example(f"train/{i}", {"text": text}) for i, text in enumerate(listed)]


@pytest.mark.parametrize(("kind", "pair"), CASES)
def test_what_is_stored_restores_what_was_fitted(kind: str, pair: bool) -> None:
    data = tiny_dataset(kind, pair=pair, rows=40)
    fitted = TfidfSvm().fit(tiny_bench(data, None))
    facts = json.loads(json.dumps(fitted.facts))
    restored = TfidfSvm().restore(Setting(data.task, kinds.get(kind), None), fitted.delta(), facts)
    logits = fitted.logits(data.test.examples)
    assert logits.shape == (len(data.test.examples), kinds.get(kind).outputs(data.task))
    assert np.array_equal(restored.logits(data.test.examples), logits)
    unseen = [replace(data.test.examples[0], inputs=dict.fromkeys(data.test.examples[0].inputs, "zebra 🦓 good?"))]
    assert np.array_equal(restored.logits(unseen), fitted.logits(unseen))
    assert restored.trained_parameters == fitted.trained_parameters > 0
    assert np.ptp(logits) > 0.5


def test_it_is_scikit_learns_svm() -> None:
    data = tiny_dataset(rows=40)
    fitted = TfidfSvm().fit(tiny_bench(data, None))
    words = [example.inputs["text"] for example in data.train.examples]
    vectorizer = make_vectorizer().fit(words)
    theirs = LinearSVC(C=fitted.facts["strength"]).fit(vectorizer.transform(words), data.train.targets)
    distance = theirs.decision_function(vectorizer.transform([e.inputs["text"] for e in data.test.examples]))
    np.testing.assert_allclose(fitted.logits(data.test.examples)[:, 1], distance, atol=1e-3)
    np.testing.assert_allclose(fitted.logits(data.test.examples)[:, 0], -distance, atol=1e-3)


def test_the_strength_is_the_best_on_held_out_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = tiny_bench(tiny_dataset(), None)
    lines: list[dict[str, float]] = []
    bench.log = lambda line: lines.append(dict(line))
    scores = iter([0.1, 0.7, 0.7, 0.3])
    monkeypatch.setattr(tfidf_svm, "train_scorer", lambda bench: lambda logits, examples: next(scores))
    assert TfidfSvm().fit(bench).facts["strength"] == STRENGTHS[2]
    assert lines == [
        {"strength": strength, "held_out": score}
        for strength, score in zip(STRENGTHS, [0.1, 0.7, 0.7, 0.3], strict=True)
    ]


def test_held_out_rows_are_predicted_as_by_scikit_learn() -> None:
    data = tiny_dataset(rows=60)
    data.train.targets[::4] = 1 - data.train.targets[::4]  # type: ignore[index, operator]
    bench = tiny_bench(data, None)
    lines: list[dict[str, float]] = []
    bench.log = lambda line: lines.append(dict(line))
    fitted, folds = TfidfSvm().fit(bench), folds_of(bench)
    inputs, targets = features(fitted.vectorizer, data.train.examples), np.asarray(data.train.targets)
    for line in lines:
        right = np.zeros(60, dtype=bool)
        for fold in range(FOLDS):
            theirs = LinearSVC(C=line["strength"], random_state=0, max_iter=5000)
            here = folds == fold
            right[here] = theirs.fit(inputs[~here], targets[~here]).predict(inputs[here]) == targets[here]
        assert line["held_out"] == pytest.approx(right.mean(), abs=1 / 60)
    assert 0 < min(line["held_out"] for line in lines) < max(line["held_out"] for line in lines) < 1


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression", "choice", "ranking"])
def test_validation_plays_no_part(kind: str) -> None:
    data = tiny_dataset(kind, rows=40)
    other = replace(data.validation, examples=data.train.examples, targets=data.train.targets)
    turned = replace(data, splits={**data.splits, "validation": other})
    one, two = (TfidfSvm().fit(tiny_bench(rows, None)) for rows in (data, turned))
    assert one.facts == two.facts and np.array_equal(one.weight, two.weight)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_rows_than_folds(rows: int) -> None:
    data = tiny_dataset()
    train = replace(data.train, examples=data.train.examples[:rows], targets=data.train.targets[:rows])
    fitted = TfidfSvm().fit(tiny_bench(replace(data, splits={**data.splits, "train": train}), None))
    assert fitted.facts["strength"] in STRENGTHS and np.isfinite(fitted.weight).all()


def test_choices_that_are_all_equally_right_rank_nothing() -> None:
    weight, bias = tfidf_svm._right_above_wrong(np.eye(3), np.array([[1, 0], [1, 0], [0, 1]]), 1.0, 0)
    assert weight.tolist() == [[0.0, 0.0, 0.0]] and bias.tolist() == [0.0]


def test_a_label_that_no_training_row_has_is_never_the_answer() -> None:
    data = tiny_dataset()
    task = data.task.resolved(labels=(*data.task.labels, "ugly"), positive=None, metrics=("accuracy",))
    fitted = TfidfSvm().fit(tiny_bench(replace(data, task=task), None))
    logits = fitted.logits(data.test.examples)
    assert logits.shape == (len(data.test.examples), 3)
    assert 2 not in logits.argmax(axis=1)


def test_a_label_that_every_row_has_is_always_given() -> None:
    data = tiny_dataset("multilabel")
    targets = data.train.targets.copy()
    targets[:, 0], targets[:, 1] = 1, 0
    splits = dict(data.splits) | {"train": replace(data.train, targets=targets)}
    logits = TfidfSvm().fit(tiny_bench(replace(data, splits=splits), None)).logits(data.test.examples)
    assert (logits[:, 0] > 0).all() and (logits[:, 1] < 0).all()


def test_a_single_label_that_some_rows_have() -> None:
    data = tiny_dataset("multilabel")
    splits = {name: replace(split, targets=split.targets[:, :1]) for name, split in data.splits.items()}
    alone = replace(data, task=data.task.resolved(labels=data.task.labels[:1]), splits=splits)
    logits = TfidfSvm().fit(tiny_bench(alone, None)).logits(data.train.examples)
    assert np.array_equal(logits > 0, splits["train"].targets > 0) and 0 < splits["train"].targets.mean() < 1


def test_punctuation_and_pairs_of_words_are_features() -> None:
    vectorizer = make_vectorizer().fit(["Good? Not bad!"])
    assert {"?", "!", "good", "good ?", "not bad"} <= set(vectorizer.get_feature_names_out())


def test_the_most_frequent_features_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfidf_svm, "MOST_FEATURES", 3)
    assert set(make_vectorizer().fit(["a b a b", "a b c"]).vocabulary_) == {"a", "b", "a b"}


def test_a_pair_is_what_differs_and_what_is_shared() -> None:
    vectorizer = make_vectorizer().fit(["good film", "bad film"])
    pairs = [Example("train/1", {"text_a": "good film", "text_b": "bad film"}),
             Example("train/2", {"text_a": "bad film", "text_b": "good film"}),
             Example("train/3", {"text_a": "good", "text_b": "good"})]  # fmt: skip
    rows = features(vectorizer, pairs).toarray()
    width = len(vectorizer.get_feature_names_out())
    assert rows.shape == (3, 2 * width)
    assert np.array_equal(rows[0], rows[1])
    assert rows[2, :width].max() == 0 and rows[2, width:].max() == pytest.approx(1)


def test_cost_is_two_per_feature_and_class() -> None:
    data = tiny_dataset()
    fitted = TfidfSvm().fit(tiny_bench(data, None))
    one = texts("good film")  # good, film, and the two together where training had them
    flops, grade = fitted.flops(one)
    assert grade == "model" and flops == 2 * features(fitted.vectorizer, one).nnz * 2


def test_right_choices_are_above_wrong_ones_of_the_same_text() -> None:
    """The plane is that of the differences, and goes through the origin."""
    data = tiny_dataset("choice", rows=40)
    fitted = TfidfSvm().fit(tiny_bench(data, None))
    assert fitted.weight.shape[0] == 1 and not fitted.bias.any()
    rows = features(fitted.vectorizer, data.train.examples)
    places = [(example.target.index(1), len(example.target)) for example in data.train.examples]
    starts = np.cumsum([0] + [count for _, count in places[:-1]])
    pairs = [(start + right, start + wrong) for start, (right, count) in zip(starts, places, strict=True)
             for wrong in range(count) if wrong != right]  # fmt: skip
    good, bad = np.array(pairs).T
    forward = (rows[good] - rows[bad]).toarray()
    model = LinearSVC(C=fitted.facts["strength"] / 2, random_state=1, max_iter=50_000, fit_intercept=False, tol=1e-6)
    model.fit(np.vstack([forward, -forward]), np.repeat([1, -1], len(pairs)))
    assert np.allclose(fitted.weight, model.coef_, atol=0.02)
    logits = fitted.logits(data.train.examples)
    found = kinds.get("choice").predictions(logits, data.task)
    assert [row[:, 0].argmax() for row in found] == [right for right, _ in places]
