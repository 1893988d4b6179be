"""Opens what the runs of one process share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graftwork.config import Prices
from graftwork.core.backbone import Backbone
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.opening import open_backbone
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.files import noting_digests, require_writable
from graftwork.run.data_report import as_read_by, require_reads
from graftwork.run.environment import arithmetic, numerics
from graftwork.run.execute import Shop
from graftwork.run.methods import Named
from graftwork.run.setup import OpenedBy, Setup
from graftwork.run.store import RunStore
from graftwork.train.cache_folder import CacheFolder, cache_folder
from graftwork.train.frozen import FrozenStore
from graftwork.train.prefix_store import PrefixStore
from graftwork.units import parse_bytes


@dataclass(frozen=True)
class Opened:
    """What shops over several tasks share: the open backbone and its frozen passes."""

    backbone: Backbone | None  # None where no method uses one
    load: Phase  # what opening it took: every run is charged for it
    frozen: FrozenStore
    files: Mapping[str, str] = field(default_factory=dict)  # path -> sha256 of all that the backbone was read from


def open_shared(methods: Sequence[Named], setup: Setup) -> Opened:
    """Open the backbone if any of `methods` uses one, and the store of its passes."""
    computed_in = numerics(setup.precision, setup.device)
    frozen = FrozenStore(disk=_disk(setup, computed_in))
    loading = Stopwatch()
    uses = any(item.method.uses_backbone for item in methods)
    precision, device = computed_in["precision"], computed_in["device"]
    with noting_digests() as files:
        opened = open_backbone(setup.backbone, precision=precision, device=device) if uses else None
    return Opened(opened, loading.read(), frozen, files)


def settled(setup: Setup) -> tuple[Prices, dict[str, Any], int | None]:
    """Its price list, the arithmetic of its runs, and the bytes that training may take.

    Raises `GraftworkError` for a setting that makes no sense, whatever the data.
    """
    parse_bytes(setup.cache_size)
    max_memory = parse_bytes(setup.max_memory) if setup.max_memory is not None else None
    return Prices.from_file(setup.prices), numerics(setup.precision, setup.device), max_memory


def open_shop(
    task: Task, methods: Sequence[Named], setup: Setup, shared: Opened | None = None, checked: bool = True
) -> Shop:
    """Read the data, then open the backbone if any of `methods` uses one; only then is anything written.

    `shared` is what `open_shared` opened for the same methods and settings, for the shops of several tasks; without
    `checked` the data are not reported on.
    """
    listed, computed_in, max_memory = settled(setup)
    dataset = load(task, checked)
    found = {name: getattr(dataset.task, name) for name in ("data", "validation", "test")}  # also those of a folder
    if shared is None:
        shared = open_shared(methods, setup)
    opened = shared.backbone
    require_reads(opened, dataset.task)
    require_writable(Path(setup.runs))
    store = RunStore(Path(setup.runs))
    store.sweep()
    return Shop(
        dataset=replace(dataset, report=as_read_by(dataset, opened, shared.frozen)) if opened else dataset,
        backbone=opened,
        backbone_seed=0,
        load=shared.load,
        store=store,
        frozen=shared.frozen,
        numerics=computed_in,
        prices=listed,
        max_memory=max_memory,
        opened_by=OpenedBy(task.resolved(**found), tuple(item.config for item in methods), setup),
        model_files=shared.files,
    )


def _disk(setup: Setup, computed_in: Mapping[str, Any]) -> PrefixStore | None:
    """Where passes are kept between processes; None when the user wants none kept."""
    cap = parse_bytes(setup.cache_size)
    return PrefixStore(CacheFolder(cache_folder(setup.cache), cap), arithmetic(computed_in)) if cap else None
