"""Copy: writes the text that it reads; what a translation or a summary must be better than."""

from __future__ import annotations

from dataclasses import dataclass

from graftwork.registry import methods
from graftwork.targets.written_texts import RuleBaseline


@methods.register("copy_source")
@dataclass(frozen=True)
class CopySource(RuleBaseline):
    """The source as it stands."""

    rule = staticmethod(str)
