"""What the runs of one process share, and how it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.config import Prices
from graftwork.core.backbone import Augments, Backbone, learns_like
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import CutsWords, Decays
from graftwork.core.named_methods import Named, named_from_config
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe, RunSpec
from graftwork.core.task import Dataset, Task, texts_of
from graftwork.data.load import load
from graftwork.data.splits.split_folder import require_outside
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.io.files import noting_digests, require_writable
from graftwork.machine.environment import arithmetic, numerics, numerics_without_network
from graftwork.machine.memory import Cut
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.run.data_report import as_read_by, require_reads
from graftwork.run.memo import MemoEntry
from graftwork.run.settings import OpenedBy, RunSettings
from graftwork.run.store import RunStore
from graftwork.targets.words import FIRST_RULE, rule_of
from graftwork.train.recipe import resolve
from graftwork.train.seeds import held_of
from graftwork.train.stages import schedule_of
from graftwork.train.wrapper_method import beginning, innermost, takes_a_recipe
from graftwork.units import parse_bytes

if TYPE_CHECKING:
    from graftwork.train.frozen_pass import FrozenStore
    from graftwork.train.prefix_store import PrefixStore
    from graftwork.train.shared_features import PooledOnce


@dataclass
class Session:
    """What the runs of one process share: the data, the open backbone, frozen passes, the store and the prices."""

    dataset: Dataset
    backbone: Backbone | None
    backbone_seed: int
    load: Phase  # what opening the backbone took
    store: RunStore
    frozen: FrozenStore | None  # None, like the backbone, where no method uses one
    numerics: Mapping[str, Any]
    prices: Prices
    opened_by: OpenedBy | None = None
    max_memory: int | None = None  # bytes that training may take
    cuts: Sequence[Cut] = ()  # of batches, of the run that is done again
    runs_at_once: int = 1  # how many runs go on side by side
    done: MemoEntry = field(default_factory=MemoEntry)  # what no seed decides
    tested: PooledOnce | None = None  # of test examples that runs over several data sets answer
    model_files: Mapping[str, str] = field(default_factory=dict)  # path -> sha256 of what the backbone was read from
    recorded: dict[str, Any] = field(default_factory=dict)  # what receipts say of data and backbone, once it is known

    def spec(self, method: Named, recipe: Recipe, seed: int) -> RunSpec:
        """The identity of a run of this session."""
        uses = method.method.uses_backbone
        assert self.backbone is not None or not uses
        resolved = self.resolved(method, recipe) if uses else {}
        return RunSpec(
            question=self.dataset.task.question(),
            data=self.dataset.digest,
            backbone=self.backbone.card.revision if uses and self.backbone else None,
            method=method.identity,
            recipe=(resolved if takes_a_recipe(method.method) else {}) | (self._rates(method) if uses else {}),
            seed=seed,
            numerics=self.numerics if uses else {"threads": self.numerics["threads"]},
            held=() if recipe.varied is None else held_of(recipe.varied, seed),
            words=self.word_rule(method),
        )

    def word_rule(self, method: Named) -> int:
        """The rule that a method cuts these texts by: the first one for what it cuts in the same way."""
        below = innermost(method.method)
        if not (isinstance(below, CutsWords) and below.CUTS_WORDS):
            return FIRST_RULE
        known = f"words of {self.dataset.digest}"
        if known not in self.recorded:
            self.recorded[known] = rule_of(texts_of(self.dataset))
        rule: int = self.recorded[known]
        return rule

    def resolved(self, method: Named, recipe: Recipe) -> dict[str, Any]:
        """What `recipe` comes to on these data, whether or not `method` takes one. Raises `ConfigError`."""
        task, train = self.dataset.task, self.dataset.train
        rows, outputs = len(train.examples), kinds.get(task.kind).outputs(task)
        schedule, answers = schedule_of(innermost(method.method)), len(flat(train.targets))
        begun = beginning(method.method, self.backbone.card if self.backbone else None)
        return resolve(recipe, rows, outputs, schedule, answers, **begun) | self._augmented(recipe)

    def _rates(self, method: Named) -> dict[str, Any]:
        """For a backbone with parts that are registered elsewhere than they work: their rates are of where they work.

        Nothing where no rate hangs on depth.
        """
        below = innermost(method.method)
        placed = self.backbone is not None and bool(learns_like(self.backbone))
        decay = below.decay if isinstance(below, Decays) else 1
        return {"rates": "of all parts by depth"} if placed and decay != 1 else {}

    def _augmented(self, recipe: Recipe) -> dict[str, Any]:
        """For a backbone that can augment, how it does."""
        backbone = self.backbone
        known = backbone.augmentation if isinstance(backbone, Augments) else ""
        return {"augmentation": known if recipe.augment else "none"} if known else {}


@dataclass(frozen=True)
class OpenBackbone:
    """What sessions over several tasks share: the open backbone and its frozen passes."""

    backbone: Backbone | None  # None where no method uses one
    load: Phase  # what opening it took: every run is charged for it
    frozen: FrozenStore | None
    files: Mapping[str, str] = field(default_factory=dict)  # path -> sha256 of all that the backbone was read from


def open_shared(methods: Sequence[Named], setup: RunSettings) -> OpenBackbone:
    """Open the backbone if any of `methods` uses one, and the store of its passes."""
    if not _use_backbone(methods):
        return OpenBackbone(None, Phase(), None)
    from graftwork.train.frozen_pass import FrozenStore

    computed_in = numerics(setup.precision, setup.device)
    frozen = FrozenStore(disk=_disk(setup, computed_in))
    loading = Stopwatch()
    precision, device = computed_in["precision"], computed_in["device"]
    with noting_digests() as files:
        opened = open_backbone(setup.backbone, precision=precision, device=device)
    return OpenBackbone(opened, loading.read(), frozen, files)


def settled(setup: RunSettings, methods: Sequence[Named]) -> tuple[Prices, dict[str, Any], int | None]:
    """Its price list, the arithmetic of runs of `methods`, and the bytes that training may take.

    Raises `GraftworkError` for a setting that makes no sense, whatever the data.
    """
    parse_bytes(setup.cache_size)
    max_memory = parse_bytes(setup.max_memory) if setup.max_memory is not None else None
    computed_in = (numerics if _use_backbone(methods) else numerics_without_network)(setup.precision, setup.device)
    return Prices.from_file(setup.prices), computed_in, max_memory


def open_session(
    task: Task,
    methods: Sequence[Named],
    setup: RunSettings,
    shared: OpenBackbone | None = None,
    checked: bool = True,
    out: Path | None = None,
) -> Session:
    """Read the data, then open the backbone if any of `methods` uses one; only then is anything written.

    `shared` is what `open_shared` opened for the same methods and settings, for the sessions of several tasks; without
    `checked` the data are not reported on. `out` is a further folder that will be written to.
    """
    listed, computed_in, max_memory = settled(setup, methods)
    require_outside(task, [setup.runs, *filter(None, [out])])
    dataset = load(task, checked)
    found = {name: getattr(dataset.task, name) for name in ("data", "validation", "test")}  # also those of a folder
    if shared is None:
        shared = open_shared(methods, setup)
    opened = shared.backbone
    require_reads(opened, dataset.task)
    require_writable(Path(setup.runs))
    store = RunStore(Path(setup.runs))
    store.sweep()
    return Session(
        dataset=replace(dataset, report=as_read_by(dataset, opened, shared.frozen))
        if opened and shared.frozen
        else dataset,
        backbone=opened,
        backbone_seed=0,
        load=shared.load,
        store=store,
        frozen=shared.frozen,
        numerics=computed_in,
        prices=listed,
        max_memory=max_memory,
        opened_by=OpenedBy(
            task.resolved(**found),
            tuple(item.config for item in methods),
            _as_resolved(setup, computed_in, methods),
        ),
        model_files=shared.files,
    )


def reopened(session: Session, by: OpenedBy) -> Session:
    """A session over the same data, on the backbone that `by` names in place of its own."""
    methods = [named_from_config(config) for config in by.methods]
    computed_in = numerics(by.setup.precision, by.setup.device, _use_backbone(methods))
    setup = _as_resolved(by.setup, computed_in, methods)
    shared = open_shared(methods, setup)
    return replace(
        session,
        numerics={**session.numerics, "precision": computed_in["precision"]},
        backbone=shared.backbone,
        load=shared.load,
        frozen=shared.frozen,
        model_files=shared.files,
        opened_by=replace(by, setup=setup),
    )


def _use_backbone(methods: Sequence[Named]) -> bool:
    return any(item.method.uses_backbone for item in methods)


def _as_resolved(setup: RunSettings, computed_in: Mapping[str, Any], methods: Sequence[Named]) -> RunSettings:
    """With the precision that "auto" came to: another process is to take the same, whatever it would measure."""
    return replace(setup, precision=computed_in["precision"]) if _use_backbone(methods) else setup


def _disk(setup: RunSettings, computed_in: Mapping[str, Any]) -> PrefixStore | None:
    """Where passes are kept between processes; None when the user wants none kept."""
    cap = parse_bytes(setup.cache_size)
    if not cap:
        return None
    from graftwork.train.prefix_store import PrefixStore

    return PrefixStore(CacheFolder(cache_folder(setup.cache), cap), partial(arithmetic, computed_in))
