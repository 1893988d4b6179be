"""Opens what the runs of one process share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from graftwork.config import Prices
from graftwork.core.meter import Phase
from graftwork.core.opening import open_backbone
from graftwork.core.task import Task
from graftwork.data.buckets import by_length
from graftwork.data.load import load
from graftwork.run.environment import numerics
from graftwork.run.execute import Shop
from graftwork.run.methods import Named
from graftwork.run.store import RunStore
from graftwork.train.frozen import FrozenStore


def open_shop(
    task: Task, backbone: str, methods: Sequence[Named], runs: str | Path, precision: str, prices: str | Path | None
) -> Shop:
    """Read the data, then open the backbone if any of `methods` uses one. Nothing is written before the data is good."""
    listed = Prices.from_file(Path(prices) if prices is not None else None)
    computed_in = numerics(precision)
    dataset = load(task)
    began = Phase(time.perf_counter(), time.process_time())
    uses = any(item.method.uses_backbone for item in methods)
    opened = open_backbone(backbone, precision=computed_in["precision"]) if uses else None
    loading = Phase(time.perf_counter() - began.wall_seconds, time.process_time() - began.cpu_seconds)
    return Shop(
        dataset=dataset,
        backbone=opened,
        backbone_seed=0,
        load=loading,
        store=RunStore(Path(runs)),
        frozen=FrozenStore(by_length),
        numerics=computed_in,
        prices=listed,
    )
