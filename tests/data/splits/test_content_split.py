"""Drawn splits: deterministic, stratified, blind to row order, equal texts together, train never left out."""

from __future__ import annotations

import random
from collections import Counter

from graftwork.data.splits.content_split import draw, with_every_label

FRACTIONS = {"test": 0.2, "validation": 0.1}


def texts(*names: object) -> list[dict[str, str]]:
    return [{"text": str(name)} for name in names]


def test_shares_hold_in_every_stratum() -> None:
    inputs, strata = texts(*range(1000)), [i % 10 == 0 for i in range(1000)]
    counts = Counter(zip(strata, draw(inputs, strata, FRACTIONS), strict=True))
    assert [counts[False, name] for name in ("train", "validation", "test")] == [630, 90, 180]
    assert [counts[True, name] for name in ("train", "validation", "test")] == [70, 10, 20]


def test_row_order_decides_nothing() -> None:
    dice = random.Random(1)
    rows = [({"text": f"t{dice.randrange(300)}"}, dice.choice("abc")) for _ in range(500)]

    def drawn(some: list[tuple[dict[str, str], str]]) -> dict[str, str]:
        names = draw([item for item, _ in some], [stratum for _, stratum in some], FRACTIONS)
        return {item["text"]: name for (item, _), name in zip(some, names, strict=True)}

    first = drawn(rows)
    dice.shuffle(rows)
    assert drawn(rows) == first
    assert set(first.values()) == {"train", "validation", "test"}


def test_equal_texts_land_together_whatever_their_strata() -> None:
    inputs = texts(*[i // 3 for i in range(300)])
    names = draw(inputs, [i % 2 for i in range(300)], FRACTIONS)
    assert all(len(set(names[i : i + 3])) == 1 for i in range(0, 300, 3))
    assert len(set(names)) == 3


def test_small_strata() -> None:
    for rows, expected in (
        (1, {"train": 1}),
        (2, {"train": 1, "test": 1}),
        (3, {"train": 1, "test": 1, "validation": 1}),
    ):
        assert Counter(draw(texts(*range(rows)), ["a"] * rows, FRACTIONS)) == expected


def test_a_text_too_frequent_for_the_quota_stays_in_train() -> None:
    names = draw(texts(*["ok"] * 50, *range(50)), ["a"] * 100, FRACTIONS)
    assert set(names[:50]) == {"train"}
    assert Counter(names) == {"train": 70, "test": 20, "validation": 10}


def test_the_salt_decides() -> None:
    inputs = texts(*range(100))
    assert draw(inputs, [0] * 100, FRACTIONS, "a") != draw(inputs, [0] * 100, FRACTIONS, "b")


def test_a_fixed_case_stays_as_it_was_released() -> None:
    names = draw(texts(*"abcdefghij"), [0] * 10, FRACTIONS)
    assert [i for i, name in enumerate(names) if name == "test"] == [0, 4]
    assert [i for i, name in enumerate(names) if name == "validation"] == [8]


def test_labels_that_train_lacks_go_back_to_it_with_all_equal_rows() -> None:
    inputs = texts(*"abcde", "d", "e")
    names = ["train", "test", "train", "test", "validation", "test", "validation"]
    kept = [{"x"}, {"x"}, {"y"}, {"x", "y"}, set[str](), {"x"}, {"y"}]
    assert with_every_label(inputs, names, kept) == names, "nothing lacks: as drawn"
    lacking = [{"x"}, {"x"}, {"y"}, {"x"}, {"y"}, {"z"}, {"y"}]
    back = ["train", "test", "train", "train", "validation", "train", "validation"]
    assert with_every_label(inputs, names, lacking) == back
    assert with_every_label(inputs[::-1], names[::-1], lacking[::-1]) == back[::-1]
    two = with_every_label(texts(*"abc"), ["train", "test", "test"], [set[str](), {"z"}, {"z"}])
    assert sorted(two) == ["test", "train", "train"], "one row is enough"
