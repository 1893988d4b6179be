"""Sessions over all rows of the data, or over a draw (a part of the training rows), on one or several backbones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graftwork.core.task import Dataset
from graftwork.data.splits.draws import drawn_again
from graftwork.run.session import Session
from graftwork.train.memo import MemoEntry
from graftwork.train.shared_features import PooledOnce


class Sessions:
    """The first session and others over the same data. One draw is held at a time."""

    def __init__(self, first: Session, *others: Session):
        self.whole = [first, *others]
        self._once: dict[int, PooledOnce] = {}  # session -> pooled features of the test split, which all draws share
        self._drawn: dict[int, Session] = {}  # sessions over the last requested draw
        self._told: Mapping[str, Any] | None = None
        self._rows: Dataset | None = None

    def of(self, which: int, drawn: Dataset | None) -> Session:
        """Return session number `which`, over the rows of a draw if one is given; data of another draw are released."""
        whole = self.whole[which]
        if drawn is None:
            return whole
        if any(session.dataset is not drawn for session in self._drawn.values()):
            self._drawn = {}
            for session in self.whole:
                if session.frozen is not None:
                    session.frozen.forget_all_but(drawn.digest)
        if which not in self._drawn:
            if whole.backbone and which not in self._once:
                self._once[which] = PooledOnce(whole.backbone, whole.dataset.test.examples)
            self._drawn[which] = replace(whole, dataset=drawn, done=MemoEntry(), tested=self._once.get(which))
        return self._drawn[which]

    def drawn(self, told: Mapping[str, Any] | None) -> Dataset | None:
        """Return the draw that a report describes, redrawn unless it was the last one; None for None."""
        if told is not None and told != self._told:
            self._told, self._rows = told, drawn_again(self.whole[0].dataset, told)
        return self._rows if told is not None else None
