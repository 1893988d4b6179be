"""Splits: every row in one, equal rows in the same, and nothing but the rows and the seed decides which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graftwork.core.kind_settings import settings_of
from graftwork.core.task import SPLITS, Task
from graftwork.data.load import load
from graftwork.data.splits.content_split import draw, salt_of

ROWS = st.lists(st.tuples(st.text("abc", max_size=3), st.sampled_from("xy")), min_size=1, max_size=40)
FRACTIONS = {"test": 0.2, "validation": 0.1}


def drawn(rows: list[tuple[str, str]], seed: int | None = None) -> list[str]:
    return draw([{"text": text} for text, _ in rows], [label for _, label in rows], FRACTIONS, salt_of(seed))


@given(rows=ROWS, seed=st.integers(0, 5))
def test_every_row_has_one_split_and_equal_rows_share_it(rows: list[tuple[str, str]], seed: int) -> None:
    names = drawn(rows, seed)
    assert len(names) == len(rows) and set(names) <= set(SPLITS)
    split_of: dict[str, set[str]] = {}
    for (text, _), name in zip(rows, names, strict=True):
        split_of.setdefault(text, set()).add(name)
    assert all(len(found) == 1 for found in split_of.values())
    assert "train" in names


@given(rows=ROWS, data=st.data())
def test_the_order_of_rows_decides_nothing(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    names = drawn(rows)
    assert drawn([rows[place] for place in order]) == [names[place] for place in order]


@given(count=st.integers(1, 200), seed=st.integers(0, 5))
def test_shares_are_those_asked_for(count: int, seed: int) -> None:
    rows = [(f"row {n}", "x") for n in range(count)]
    counts = Counter(drawn(rows, seed))
    free = count - 1
    for name, share in FRACTIONS.items():
        expected = min(max(1, round(share * count)), free)
        free -= expected
        assert counts[name] == expected


SETTINGS: dict[str, list[Any]] = {
    "name": ["a", "b"], "metrics": [("macro_f1",), ("accuracy", "macro_f1")], "positive": ["x", "y"],
    "labels": [("x", "y"), ("y", "x")], "thresholds": [None, "half"], "rejects": [None, ""],
}  # fmt: skip
OF_ANY_KIND = SETTINGS.keys() - {"positive", "labels", "thresholds"}


@given(
    kind=st.sampled_from(["classification", "multilabel"]),
    chosen=st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in SETTINGS.items()}),
)
def test_settings_about_something_else_move_no_row(place: Path, kind: str, chosen: dict[str, Any]) -> None:
    chosen = {name: value for name, value in chosen.items() if name in {*OF_ANY_KIND, "labels", *settings_of(kind)}}
    path = place / "t.csv"
    path.write_text("text,label\n" + "".join(f"number {n},{'xy'[n % 2]}\n" for n in range(30)))

    def ids(task: Task) -> dict[str, list[str]]:
        return {name: [one.id for one in split.examples] for name, split in load(task, checked=False).splits.items()}

    assert ids(Task.from_settings({"name": "t", "data": path, "kind": kind, **chosen})) == ids(
        Task("t", path, kind=kind)
    )
