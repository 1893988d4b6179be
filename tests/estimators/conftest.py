"""Texts that can be learnt, of two classes, and estimators over them."""

from __future__ import annotations

import pytest

from graftwork.testing import tiny_dataset


@pytest.fixture(scope="session")
def rows() -> tuple[list[str], list[str]]:
    """60 different texts and their labels."""
    data = tiny_dataset(rows=60)
    return (
        [f"{example.inputs['text']} {number}" for number, example in enumerate(data.train.examples)],
        [str(example.target) for example in data.train.examples],
    )
