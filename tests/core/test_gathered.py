"""A stream in lists of about equal size."""

from __future__ import annotations

import pytest

from graftwork.core.gathered import gathered


@pytest.mark.parametrize(
    ("most", "count", "expected"),
    [
        (4, 9, [["aaaa"], ["a", "bbb"], ["cc"]]),
        (5, 9, [["aaaa", "a"], ["bbb", "cc"]]),
        (99, 3, [["aaaa", "a", "bbb"], ["cc"]]),
        (99, 9, [["aaaa", "a", "bbb", "cc"]]),
    ],
)
def test_a_list_ends_with_what_fills_it(most: int, count: int, expected: list[list[str]]) -> None:
    assert list(gathered(iter(["aaaa", "a", "bbb", "cc"]), len, most, count)) == expected
    assert list(gathered([], len, most, count)) == []
