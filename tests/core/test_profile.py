"""Phases nest, a second is in one phase only, and all of them add up to the wall time."""

from __future__ import annotations

import pytest

from graftwork.core.profile import REST, Profile


def test_a_second_belongs_to_the_innermost_phase() -> None:
    now = [0.0]
    profile = Profile(clock=lambda: now[0])
    now[0] = 1.0
    with profile.phase("forward"):
        now[0] = 3.0
        with profile.phase("backward"):
            now[0] = 7.0
        now[0] = 7.5
    now[0] = 10.0
    assert profile.read() == {"forward": 2.5, "backward": 4.0, REST: 3.5}
    now[0] = 11.0
    assert sum(profile.read().values()) == 11.0


def test_a_phase_that_fails_is_closed() -> None:
    now = [0.0]
    profile = Profile(clock=lambda: now[0])
    with pytest.raises(ValueError, match="no"), profile.phase("prefix"):
        now[0] = 2.0
        raise ValueError("no")
    now[0] = 5.0
    assert profile.read() == {"prefix": 2.0, REST: 3.0}


def test_only_known_phases_are_measured() -> None:
    with pytest.raises(AssertionError), Profile().phase("waiting"):
        pass
