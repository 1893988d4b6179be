"""The common content of the files of results/: question, environment, bar, measurements and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FORMAT = 1
BRIEF = ("graftwork", "commit", "processor", "distributions", "time")  # of the environment, if no time is measured


def result_of(
    question: str,
    bar: Mapping[str, Any],
    measured: Mapping[str, Any],
    status: str,
    of_environment: Sequence[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the content of a file. `of_environment` lists the fields of the environment to keep; None keeps all."""
    from graftwork.machine.environment import environment  # local: fuzz.py must import Graftwork itself

    here = environment()
    kept = here if of_environment is None else {key: here[key] for key in of_environment if key in here}
    about = {"format": FORMAT, "question": question, "commit": here["commit"], "environment": kept}
    return {**about, "bar": bar, "measured": dict(measured), "status": status, **more}
