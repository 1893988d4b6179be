"""The regressor and the tagger."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

import graftwork as gw
from graftwork.testing import tiny_dataset

WORDS = "Anna met Bob Ross in Rome and Lea saw Kim Lee there".split()  # noqa: SIM905


def sentences(scheme: str = "BI") -> tuple[list[list[str]], list[list[str]]]:
    """40 lists of words, and tags: capitals that follow each other are one name. `scheme` is BI or BIES."""
    random = np.random.default_rng(0)
    X = [random.choice(WORDS, size=8).tolist() for _ in range(40)]
    y = []
    for words in X:
        names = [False, *(word[0].isupper() for word in words), False]
        tags = []
        for before, name, after in zip(names, names[1:], names[2:], strict=False):
            letter = ("I" if after else "E") if before else ("B" if after else "S")
            tags.append(f"{letter if scheme == 'BIES' else 'BI'[before]}-PER" if name else "O")
        y.append(tags)
    return X, y


def test_a_regressor(tmp_path: Any) -> None:
    data = tiny_dataset("regression", rows=60)
    texts = [f"{example.inputs['text']} {number}" for number, example in enumerate(data.train.examples)]
    y = [100 * float(example.target) for example in data.train.examples]
    regressor = gw.Regressor("tfidf_svm").fit(texts, y)
    assert regressor.score(texts, y) > 0.8
    assert regressor.predict(texts).dtype == np.float64
    again = pickle.loads(pickle.dumps(regressor))
    assert (again.predict(texts) == regressor.predict(texts)).all()
    adapted = gw.Regressor(backbone="tiny_text", epochs=1).fit(np.array(texts), np.array(y).astype(int))
    assert adapted.predict(texts[:3]).shape == (3,)
    with pytest.raises(ValueError, match="not compatible with arrays of bytes/strings"):
        gw.Regressor("tfidf_svm").fit(texts, ["much"] * 60)


@pytest.mark.slow
def test_a_tagger() -> None:
    X, y = sentences()
    tagger = gw.Tagger("perceptron_tagger").fit(X[:30], y[:30])
    assert tagger.classes_.tolist() == ["B-PER", "I-PER", "O"]
    assert [len(tags) for tags in tagger.predict(X)] == [8] * 40
    assert tagger.score(X[30:], y[30:]) > 0.9
    assert gw.Tagger("perceptron_tagger").fit(*sentences("BIES")).score(*sentences("BIES")) > 0.9
    again = pickle.loads(pickle.dumps(tagger))
    assert again.predict(X) == tagger.predict(X)
    assert cross_val_score(gw.Tagger("perceptron_tagger"), X, y, cv=2).min() > 0.8
    grid = GridSearchCV(gw.Tagger(backbone="tiny_text"), {"method": ["linear_probe", "most_frequent_tag"]}, cv=2)
    assert grid.fit(X, y).best_estimator_.method_ in ("linear_probe", "most_frequent_tag")


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        ("some words", ["O"], "one text where lists of words"),
        (["some words"] * 20, [["O"]] * 20, "X, row 0: no list of words"),
        ([["some", "words"]] * 20, None, "requires y to be passed"),
        ([["some", "words"]] * 20, [["O"]] * 20, "y, row 0: the numbers of words and tags differ"),
        ([["some", None]] * 20, [["O", "O"]] * 20, "X, row 0: no list of words"),
        ([], [], "there are no rows"),
    ],
)
def test_bad_rows_of_words(X: Any, y: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        gw.Tagger("perceptron_tagger").fit(X, y)
