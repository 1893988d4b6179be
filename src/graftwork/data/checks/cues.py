"""Label cues: single words that predict a label regardless of the rest of the row (Gururangan et al. 2018,
arXiv:1803.02324; Poliak et al. 2018, arXiv:1805.01042). Each side of a pair is examined alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.special import betaincinv

from graftwork.core.example import Example, text_of
from graftwork.data.checks.repeats import inputs_of
from graftwork.targets.labels import labels_of
from graftwork.targets.words import LETTERS, TOKEN

FEWEST = 5  # fewest distinct rows that contain the word
CHANCE = 0.01  # probability that any word at all is reported when the labels are random
MOST = 10  # most words listed per side; and as many more that give a class away
GIVES_AWAY, OF_CLASS = 0.95, 0.2  # for a warning about a text: least share of the word's rows, and of the label's rows
_TOKEN = re.compile(rf"{LETTERS}(?:['’]{LETTERS})*+|{TOKEN}")


@dataclass(frozen=True)
class Side:
    """One input examined alone: the texts of N rows and which of C labels the rows have."""

    name: str
    texts: Sequence[str]
    labels: Sequence[str]
    marks: sparse.csr_array  # (N, C) of 0 and 1


def cues(examples: Sequence[Example], labels: Sequence[str]) -> dict[str, Any]:
    """Find words that at least double the odds of a label, with 99 % confidence over all words, labels and sides.

    A word's share is bounded from below by the binomial distribution (Clopper & Pearson 1934), at 1 % divided by the
    number of words, labels and sides (Bonferroni). Rows with the same inputs count once. For choices the labels are
    right and wrong. Empty where no label applies to a whole text.
    """
    sides = list(_sides(_different(examples), labels))
    counted = [_counted(side) for side in sides]
    tests = sum(rows.size * len(side.labels) for side, (_, rows, _) in zip(sides, counted, strict=True))
    found = [_listed(side, *count, tests) for side, count in zip(sides, counted, strict=True)]
    listed = [cue for cues_of_side in found for cue in _strongest(cues_of_side)]
    return {"words": sum(map(len, found)), "tests": tests, "strongest": listed} if sides else {}


def _different(examples: Sequence[Example]) -> list[Example]:
    """Return the examples without exact repeats (same inputs and target), keeping the first of each."""
    first: dict[Any, Example] = {}
    for example in examples:
        first.setdefault((inputs_of(example.inputs), example.target), example)
    return list(first.values())


def _sides(examples: Sequence[Example], labels: Sequence[str]) -> Iterator[Side]:
    roles = set(examples[0].inputs) if examples else set()
    if "choices" in roles:
        rows = [
            (choice, mark) for one in examples for choice, mark in zip(one.inputs["choices"], one.target, strict=True)
        ]
        right = np.array([int(mark) == 1 for _, mark in rows])
        marks = sparse.csr_array(np.stack([right, ~right], axis=1).astype(np.int32))
        yield Side("choices", [choice for choice, _ in rows], ("right", "wrong"), marks)
    elif labels and roles <= {"text", "text_a", "text_b"}:
        places = {label: place for place, label in enumerate(labels)}
        marked = [(row, places[label]) for row, one in enumerate(examples) for label in set(labels_of(one.target))]
        of_row, of_label = np.array(marked, dtype=np.int64).reshape(-1, 2).T
        ones = np.ones(len(marked), dtype=np.int32)
        marks = sparse.csr_array((ones, (of_row, of_label)), shape=(len(examples), len(labels)))
        for role in sorted(roles):
            yield Side(role, [text_of(example.inputs[role]) for example in examples], labels, marks)


def _counted(side: Side) -> tuple[list[str], NDArray[np.int64], sparse.csr_array]:
    """Return the words that are in at least `FEWEST` rows, the rows with each (W,), and those with each label (W, C).

    `Side.marks` and the last result are sparse, since a row, and so a word, has few of possibly thousands of labels.
    """
    known: dict[str, int] = {}
    owners, words = [], []
    for row, text in enumerate(side.texts):
        tokens = set(_TOKEN.findall(text.casefold()))
        owners += [row] * len(tokens)
        words += [known.setdefault(token, len(known)) for token in tokens]
    shape = (len(side.texts), len(known))
    has = sparse.csc_array((np.ones(len(words), dtype=np.int32), (owners, words)), shape=shape)
    rows = np.diff(has.indptr)
    chosen = np.flatnonzero(rows >= FEWEST)
    names = list(known)
    with_label = sparse.csr_array(has[:, chosen].T @ side.marks)
    return [names[place] for place in chosen.tolist()], rows[chosen].astype(np.int64), with_label


def _listed(
    side: Side, words: Sequence[str], rows: NDArray[np.int64], with_label: sparse.csr_array, tests: int
) -> list[dict[str, Any]]:
    """Return the cues of one side, sorted by (lower bound - label's share of all rows) * rows, greatest first."""
    having = np.asarray(side.marks.sum(axis=0))  # (C,)
    shares = having / len(side.texts)
    doubled = 2 * shares / (1 + shares)  # the share at twice the odds
    with_label.sort_indices()
    word, label = with_label.nonzero()
    more = with_label.data > doubled[label] * rows[word]
    word, label, hits = word[more], label[more], with_label.data[more]
    of = rows[word]
    low = betaincinv(hits, of - hits + 1.0, CHANCE / max(1, tests))
    kept = np.flatnonzero(low > doubled[label])
    gained = (low - shares[label]) * of
    named = [words[place] for place in word.tolist()]
    order = sorted(kept.tolist(), key=lambda place: (-gained[place], named[place]))
    return [
        {
            "side": side.name,
            "word": named[place],
            "label": side.labels[label[place]],
            "rows": int(of[place]),
            "with_label": int(hits[place]),
            "share_at_least": float(low[place]),
            "share_of_all_rows": float(shares[label[place]]),
            "of_the_label": float(hits[place] / having[label[place]]),
        }
        for place in order
    ]


def _strongest(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first `MOST` cues of a side, and up to `MOST` of the others that give a class away."""
    return [*found[:MOST], *[cue for cue in found[MOST:] if _gives_away(cue)][:MOST]]


def _gives_away(cue: dict[str, Any]) -> bool:
    return bool(cue["share_at_least"] >= GIVES_AWAY and cue["of_the_label"] >= OF_CLASS)


def cue_warnings(found: dict[str, Any]) -> Iterator[str]:
    """Yield a warning for each side with cue words: a text of a pair, the choices, or a text by single words."""
    for side in dict.fromkeys(cue["side"] for cue in found.get("strongest", [])):
        own = [cue for cue in found["strongest"] if cue["side"] == side]
        if side == "text":
            own = list(filter(_gives_away, own))
            start = "One word gives a class away"
        else:
            start = f"Words of {'the choices' if side == 'choices' else side} alone give answers away"
        if own:
            told = "; ".join(map(_told, own[:3]))
            yield f"{start}: {told}. A method may learn such words instead of the question."


def _told(cue: dict[str, Any]) -> str:
    return (
        f"{cue['word']!r} ({cue['with_label']:,} of {cue['rows']:,} rows are {cue['label']}; of all rows "
        f"{cue['share_of_all_rows']:.0%})"
    )
