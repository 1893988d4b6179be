"""TF-IDF + linear SVM: the classic baseline without a backbone (Joachims 1998; Wang & Manning 2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC, LinearSVR

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example, answers_of
from graftwork.core.method import Baseline, Logits, Setting, Workbench
from graftwork.core.ragged import Numbers, Ragged, flat
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.targets.choices import pairs_of
from graftwork.targets.words import TOKEN, UNSPACED_APART
from graftwork.train.folds import folds_of, parts_of, train_scorer
from graftwork.train.seeds import derive

if TYPE_CHECKING:
    from torch import Tensor

MOST_FEATURES = 4_000_000  # features kept, the most frequent ones; module.json may hold about twice as many words
PLAIN_TOKEN = r"\w+|[^\w\s]"  # for modules whose facts lack UNSPACED_APART
STRENGTHS = (0.1, 0.3, 1.0, 3.0)  # the SVM's C, chosen on folds of train
SCALES = (-3.0, 5.0)  # bounds of the log of the factor on distances


@dataclass
class Svm:
    """A linear SVM on TF-IDF vectors: logits = features @ weight.T + bias."""

    vectorizer: Any
    weight: NDArray[np.float64]  # (C, F)
    bias: NDArray[np.float64]  # (C,)
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """The weights and biases of the SVM; inverse document frequencies are counted, not trained."""
        return self.weight.size + self.bias.size

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return signed distances (N, C), or the value itself in regression; (W, 1) for choices."""
        return of_examples(np.asarray(features(self.vectorizer, examples) @ self.weight.T + self.bias), examples)

    def scale(self, factor: float) -> None:
        """Multiply the logits by a factor, and record it in the facts."""
        self.weight, self.bias, self.facts = self.weight * factor, self.bias * factor, {**self.facts, "scale": factor}

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return the SVM and the inverse document frequencies; the vocabulary is in the facts."""
        return {"weight": self.weight, "bias": self.bias, "idf": self.vectorizer.idf_}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count two FLOPs per non-zero feature and class."""
        return 2.0 * features(self.vectorizer, examples).nnz * self.weight.shape[0], "model"


def of_examples(rows: NDArray[np.float64], examples: Sequence[Example]) -> Logits:
    """Return rows of logits (W, C) by example: as they are where each example has one."""
    counts = [answers_of(example) for example in examples]
    return rows if None in counts else Ragged(rows, np.array(counts, dtype=np.int64))


def make_vectorizer(token: str = TOKEN) -> Any:
    """Return a TF-IDF vectoriser of lower-cased words and word pairs; punctuation marks are words."""
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=token, max_features=MOST_FEATURES)


def features(vectorizer: Any, examples: Sequence[Example]) -> Any:
    """Examples -> sparse features (N, F), or (W, F). A pair becomes [|a - b|, a * b]: what differs, what is shared.

    Every choice forms a pair with its text.
    """
    if "choices" in examples[0].inputs:
        examples = pairs_of(examples)
    if "text" in examples[0].inputs:
        return vectorizer.transform([example.inputs["text"] for example in examples])
    a, b = (vectorizer.transform([example.inputs[role] for example in examples]) for role in ("text_a", "text_b"))
    return sparse.hstack([abs(a - b), a.multiply(b)]).tocsr()


@methods.register("tfidf_svm")
@dataclass(frozen=True)
class TfidfSvm(Baseline):
    """A one-vs-rest SVM with squared hinge loss; support vector regression for numbers.

    For choices, a ranking SVM on pairs of a right and a wrong choice of the same text (Joachims 2002,
    doi:10.1145/775047.775067).
    """

    VERSION: ClassVar[int] = 2  # 1 chose the strength on validation
    RESTORES: ClassVar[tuple[int, ...]] = (1,)
    CUTS_WORDS: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task reads texts and has an answer per text or per choice."""
        if task.reads != "text":
            return f"it reads texts, and this task reads {task.reads}s"
        return (
            "it predicts one answer per text, and this task has one per word" if kinds.get(task.kind).per_word else ""
        )

    def fit(self, bench: Workbench) -> Svm:
        """Fit with the strength that is best on held-out training rows."""
        examples, validation = bench.train.examples, bench.validation
        given = [listed for example in examples for listed in example.inputs.values()]
        texts = [text for listed in given for text in ([listed] if isinstance(listed, str) else listed)]
        vectorizer = make_vectorizer().fit(texts)
        rows = SvmRows.of(bench, features(vectorizer, examples))
        strength, fits = cross_validated(bench, rows)
        weight, bias = rows.solve(np.arange(len(rows.targets)), strength)
        words = vectorizer.get_feature_names_out().tolist()
        facts = {"strength": strength, "vocabulary": words, "features": len(words), UNSPACED_APART: True}
        fitted = Svm(vectorizer, weight, bias, facts)
        if getattr(bench.setting.task.settings, "costs", None) is not None:
            fitted.scale(probable(fitted.logits(validation.examples), validation.targets))
        bench.tally.add_model((fits + 1) * 4.0 * rows.inputs.nnz * weight.shape[0])  # one pass of the data each
        return fitted

    def restore(self, setting: Setting, delta: Mapping[str, Tensor | NDArray[Any]], facts: Mapping[str, Any]) -> Svm:
        """Rebuild the SVM from the stored weights and vocabulary."""
        token = TOKEN if facts.get(UNSPACED_APART) else PLAIN_TOKEN
        vectorizer = make_vectorizer(token).set_params(vocabulary=facts["vocabulary"])
        vectorizer.idf_ = np.asarray(delta["idf"])
        return Svm(vectorizer, np.asarray(delta["weight"]), np.asarray(delta["bias"]), facts)


@dataclass(frozen=True)
class SvmRows:
    """Feature rows of train: one per example, or per choice."""

    inputs: Any  # (N, F), or (W, F)
    targets: NDArray[Any]
    outputs: int  # C
    seed: int
    weights: NDArray[np.float64] | None  # of examples, (N,) or per label (N, C); for classes and labels only

    @classmethod
    def of(cls, bench: Workbench, inputs: Any) -> SvmRows:
        """Take targets, seed and class weights from a workbench."""
        return cls(
            inputs,
            flat(bench.train.targets),
            bench.setting.kind.outputs(bench.setting.task),
            derive(bench.seed_of("init"), "init") % 2**31,
            bench.class_weights.of_targets(bench.train.targets) if bench.class_weights else None,
        )

    def solve(self, some: NDArray[np.int64], strength: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights (C, F) and biases (C,) fitted to some of the rows."""
        weights = None if self.weights is None else self.weights[some]
        return _solve(self.inputs[some], self.targets[some], self.outputs, strength, self.seed, weights)


def cross_validated(bench: Workbench, rows: SvmRows) -> tuple[float, float]:
    """Return the strength with the best headline metric on held-out rows, the larger of equals, and the fits made.

    A fit to a part of the rows counts as that part.
    """
    folds, examples, score = folds_of(bench), bench.train.examples, train_scorer(bench)
    of_rows = np.repeat(folds, [answers_of(example) or 1 for example in examples])
    held_out, fits, best = np.flatnonzero(folds >= 0), 0.0, (-math.inf, STRENGTHS[-1])
    for strength in STRENGTHS:
        predicted = np.zeros((len(of_rows), rows.outputs))
        for here, others in parts_of(of_rows):
            weight, bias = rows.solve(others, strength)
            predicted[here] = rows.inputs[here] @ weight.T + bias
            fits += len(others) / len(of_rows)
        reached = score(of_examples(predicted, examples)[held_out], held_out)
        bench.log({"strength": strength, "held_out": reached})
        best = max(best, (reached, strength))
    return best[1], fits


def probable(distances: Logits, classes: Numbers) -> float:
    """Return the factor on signed distances (N, C) that minimises the cross-entropy of their softmax on classes (N,).

    Predictions of least expected cost need probabilities, and distances are not log-odds. As in Platt 1999, without his
    offset: 1 / (N + 2) of each target goes to the other classes, so that separable rows have a finite factor.
    """
    given, right = np.asarray(flat(distances)), flat(classes).astype(np.int64)
    doubt = 1 / (len(right) + 2)
    wanted = np.full(given.shape, doubt / (given.shape[1] - 1))
    wanted[np.arange(len(right)), right] = 1 - doubt

    def loss(exponent: float) -> float:
        return float(-(wanted * log_softmax(given * np.exp(exponent), axis=1)).sum(axis=1).mean())

    return float(np.exp(minimize_scalar(loss, bounds=SCALES, method="bounded").x))


def _solve(
    inputs: Any,
    targets: NDArray[Any],
    outputs: int,
    strength: float,
    seed: int,
    of_examples: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights (C, F) and biases (C,); the shape and type of the targets determine the problem.

    `of_examples` are weights of the examples, (N,) or per label (N, C), for classes and labels only.
    """
    if outputs == 1 and targets.shape[1:] == (2,):  # (mark of the candidate, its example)
        return _right_above_wrong(inputs, targets, strength, seed)
    if targets.ndim == 1 and targets.dtype.kind == "f":
        model = LinearSVR(C=strength, random_state=seed, max_iter=5000, loss="squared_epsilon_insensitive", dual=False)
        model.fit(inputs, targets)
        return model.coef_.reshape(1, -1), np.atleast_1d(model.intercept_)
    columns = np.eye(outputs)[targets] if targets.ndim == 1 else targets  # (N, C) of 0 and 1
    count = of_examples if of_examples is None or of_examples.ndim == 2 else np.tile(of_examples[:, None], outputs)
    solved = [
        _one_against_rest(inputs, column, strength, seed, None if count is None else count[:, label])
        for label, column in enumerate(columns.T)
    ]
    return np.vstack([weight for weight, _ in solved]), np.array([bias for _, bias in solved])


def _one_against_rest(
    inputs: Any, column: NDArray[Any], strength: float, seed: int, count: NDArray[np.float64] | None
) -> tuple[NDArray[Any], float]:
    if column.min() == column.max():  # a label of all or none of the training examples
        return np.zeros(inputs.shape[1]), 2.0 * float(column[0]) - 1.0
    model = LinearSVC(C=strength, random_state=seed, max_iter=5000).fit(inputs, column, sample_weight=count)
    return model.coef_[0], float(model.intercept_[0])


def _right_above_wrong(
    inputs: Any, targets: NDArray[Any], strength: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a ranking SVM to marks and examples (W, 2): a plane that separates the differences of right minus wrong
    choices of a text from their negatives."""
    texts = np.split(np.arange(len(targets)), np.flatnonzero(np.diff(targets[:, 1])) + 1)
    pairs = [(good, bad) for rows in texts for good in rows for bad in rows if targets[good, 0] > targets[bad, 0]]
    if not pairs:  # as in a fold, or a small draw, in which all choices of each text are equally right
        return np.zeros((1, inputs.shape[1])), np.zeros(1)
    good, bad = np.array(pairs).T
    forward = inputs[good] - inputs[bad]
    sides = np.repeat([1, -1], len(pairs))
    model = LinearSVC(C=strength / 2, random_state=seed, max_iter=5000, fit_intercept=False)
    model.fit(sparse.vstack([forward, -forward]).tocsr(), sides)
    return model.coef_, np.zeros(1)
