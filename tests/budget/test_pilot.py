"""A pilot, watched: what is marked, and that nothing of the whole data is touched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graftwork.budget.pilot import fit_pilot
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.run.session import Session

OpenSession = Callable[..., Session]


def test_what_a_fit_asks_for_is_marked_in_order(open_tiny: OpenSession) -> None:
    session, method = open_tiny(), parse_method("top_layers:k=1")
    ticks = iter(range(10**6))
    rows, batches = np.array([3, 1, 4, 5]), [np.array([0, 1]), np.array([2, 3]), np.array([0, 1])]
    spec = session.spec(method, Recipe(), 0)
    fitted, trace = fit_pilot(session, method, spec, lambda: float(next(ticks)), rows, np.array([0, 2]), batches)
    names = [name for name, _ in trace.marks]
    assert names[:5] == ["began", "asked", "given", "asked", "given"] and names[-1] == "ended"
    steps = names[names.index("went on") :]
    assert steps[:5] == ["went on", "loss", "went on", "loss", "went on"] and steps[5] == "scored"
    before = trace.times("scored", before=trace.times("went on")[0])
    assert len(before) == 7  # six penalties of the head start, and the validation before the first step
    assert trace.began == 0 and trace.ended == len(names) - 1
    assert trace.last("went on", otherwise=-1) == trace.times("went on")[-1]
    assert trace.last("never", otherwise=-1) == -1
    assert fitted.facts["steps"] == 3
    assert session.backbone and not session.frozen.holds(
        session.backbone, session.dataset.digest, session.dataset.train, None
    )
