"""Weights and costs by label: from files and from Python, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graftwork.data.readers.label_tables import read_class_weights, read_costs
from graftwork.errors import ConfigError, DataError, StorageError


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_weights_are_read(tmp_path: Path) -> None:
    expected = {"NA": 1.0, "a, b": 2.5}
    assert read_class_weights(written(tmp_path, 'label,weight\nNA,1\n"a, b",2.5\n')) == expected
    assert read_class_weights(str(written(tmp_path, "weight\tlabel\n1\tNA\n2.5\ta, b\n", "t.tsv"))) == expected
    assert read_class_weights({"NA": 1, "a, b": 2.5}) == expected


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("label,count\na,1\n", "there is no column 'weight'", ":1"),
        ("label,weight\na,1\na,2\n", "the label 'a' occurs twice", ":3"),
        ("label,weight\na,0\n", "a weight that can't be used", ":2"),
        ("label,weight\na,much\n", "a weight that can't be used", ":2"),
        ("label,weight\na,inf\n", "a weight that can't be used", ":2"),
    ],
)
def test_bad_weights(tmp_path: Path, text: str, what: str, where: str) -> None:
    with pytest.raises((ConfigError, DataError)) as caught:
        read_class_weights(written(tmp_path, text))
    assert caught.value.what == what and caught.value.where.endswith(f"table.csv{where}")


def test_what_is_no_table() -> None:
    with pytest.raises(StorageError, match="no such file"):
        read_class_weights("balancd.csv")
    with pytest.raises(ConfigError, match="class_weights are of the wrong type"):
        read_class_weights(3)
    with pytest.raises(ConfigError, match="a weight that can't be used"):
        read_class_weights({"a": True})


def test_costs_are_read(tmp_path: Path) -> None:
    expected = {"ham": {"ham": 0.0, "spam": 10.0}, "spam": {"ham": 1.5, "spam": 0.0}}
    assert read_costs(written(tmp_path, ",ham,spam\nham,0,10\nspam,1.5,0\n")) == expected
    assert read_costs(written(tmp_path, "true\tspam\tham\nspam\t0\t1.5\nham\t10\t0\n", "t.tsv")) == expected
    assert read_costs(expected) == expected


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (",a,b\na,0,-1\nb,1,0\n", "a cost that can't be used"),
        (",a,b\na,0,1 EUR\nb,1,0\n", "a cost that can't be used"),
        (",a,b\na,0,1\n", "'b' is missing among the rows"),
        (",a\na,0\nb,1\n", "'b' is missing among the columns"),
        (",a,b\na,0,1\nb,1,0\nb,1,0\n", "the label 'b' occurs twice"),
        (",a,b\na,0\nb,1,0\n", "the row has too few fields"),
        ({"a": {"a": 0, "b": None}}, "a cost that can't be used"),
        ({"a": {"a": 0, "b": 1}, "b": {"a": 1}}, "'b' is missing among the columns"),
    ],
)
def test_bad_costs(tmp_path: Path, given: Any, what: str) -> None:
    with pytest.raises((ConfigError, DataError), match="(?s)" + what) as caught:
        read_costs(written(tmp_path, given) if isinstance(given, str) else given)
    assert caught.value.where and (caught.value.do or caught.value.expected)
