"""One seed per purpose."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from graftwork.errors import ConfigError, UnknownName
from graftwork.train.seeds import DRAWN, SOURCES, chosen_sources, derive, held_of, seeds_of


def test_seeds_are_the_same_on_every_machine() -> None:
    assert derive(0, "init") == 3598610026517748695
    assert derive(1, "order") == 6490945769113057457


def test_no_two_streams_are_the_same() -> None:
    seeds = [derive(seed, purpose) for seed, purpose in product(range(50), ("init", "order", "split"))]
    assert len(set(seeds)) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_torch_takes_them() -> None:
    torch.manual_seed(derive(7, "init"))
    first = torch.rand(3)
    torch.manual_seed(derive(7, "init"))
    assert torch.equal(first, torch.rand(3))


def test_what_is_held_is_drawn_as_by_seed_0() -> None:
    whole = seeds_of(3, ())
    assert whole == {source: derive(3, source) for source in SOURCES}
    held = seeds_of(3, held_of(("order",), 3))
    assert held == {"init": derive(0, "init"), "order": whole["order"], "augmentation": derive(0, "augmentation")}


def test_nothing_is_held_where_it_would_change_nothing() -> None:
    assert held_of(SOURCES, 3) == held_of(("order",), 0) == ()


def test_what_some_methods_draw_besides_is_held_in_their_runs_alone() -> None:
    assert held_of(("order",), 3) == ("init", "augmentation")  # as before there were any: it is part of a run's id
    assert held_of(("order",), 3, DRAWN) == ("init", "augmentation", "templates", "shots")
    assert held_of(("shots",), 3, DRAWN) == (*SOURCES, "templates")
    assert seeds_of(3, (), DRAWN) == {source: derive(3, source) for source in (*SOURCES, *DRAWN)}
    assert chosen_sources(None, DRAWN) == (*SOURCES, *DRAWN)
    assert chosen_sources("templates,init") == ("init", "templates")


def test_sources_are_named_and_others_explained() -> None:
    assert chosen_sources(None) == SOURCES
    assert chosen_sources(["order", "init"]) == chosen_sources("order, init") == ("init", "order")
    assert chosen_sources("order") == ("order",)
    for words, error, told in (
        (["dropout"], ConfigError, "goes with the order; other blocks run in eval mode"),
        (["split"], ConfigError, "--split-seed"),
        (["odrer"], UnknownName, "did you mean 'order'"),
        ([], ConfigError, "omit --vary"),
    ):
        with pytest.raises(error, match=told):
            chosen_sources(words)
