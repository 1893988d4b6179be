"""A session: data, backbone and store shared by the runs of one process, and its opening."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.config import Prices
from graftwork.core.backbone import Augments, Backbone, default_rates, learns_like
from graftwork.core.configured_methods import ConfiguredMethod, configured_from
from graftwork.core.kind import WritesTexts
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import CutsWords, Decays, HasRate, TrainsToWrite
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe, RunSpec
from graftwork.core.task import FILES, Dataset, Task, texts_of
from graftwork.core.writing import Instruction, TextWriter, reading_part, with_instruction
from graftwork.data.load import load
from graftwork.data.splits.split_folder import require_outside
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.io.files import noting_digests, require_writable
from graftwork.machine.environment import arithmetic, numerics, numerics_without_network
from graftwork.machine.memory import Cut
from graftwork.pretrained.open_backbone import open_backbone, whole_name
from graftwork.registry import kinds
from graftwork.run.data_report import as_read_by, require_reads
from graftwork.run.settings import OpenedBy, RunSettings
from graftwork.run.store import RunStore
from graftwork.targets.words import FIRST_RULE, rule_of
from graftwork.train.memo import MemoEntry
from graftwork.train.recipe import EQUAL_RATES, OF_TEXTS, RATES_BY_DEPTH, resolve
from graftwork.train.seeds import held_of
from graftwork.train.stages import schedule_of
from graftwork.train.wrapper_method import beginning, drawn_by, innermost, innermost_settings, takes_a_recipe
from graftwork.units import parse_bytes

if TYPE_CHECKING:
    from graftwork.train.frozen_pass import FrozenStore
    from graftwork.train.prefix_store import PrefixStore
    from graftwork.train.shared_features import PooledOnce


@dataclass
class Session:
    """State shared by the runs of one process: data, open backbone, frozen passes, store and prices."""

    dataset: Dataset
    backbone: Backbone | None
    backbone_seed: int
    load: Phase  # time to open the backbone
    store: RunStore
    frozen: FrozenStore | None  # None, like the backbone, if no method uses one
    numerics: Mapping[str, Any]
    prices: Prices
    opened_by: OpenedBy | None = None
    max_memory: int | None = None  # memory limit of training, in bytes
    cuts: Sequence[Cut] = ()  # cuts of batches that the run to be repeated has recorded
    runs_at_once: int = 1  # number of concurrent runs
    done: MemoEntry = field(default_factory=MemoEntry)  # seed-independent results
    tested: PooledOnce | None = None  # pooled test features, for runs over several data sets with one test split
    model_files: Mapping[str, str] = field(default_factory=dict)  # path -> sha256 of the backbone's files
    recorded: dict[str, Any] = field(default_factory=dict)  # cached parts of receipts about data and backbone

    def spec(self, method: ConfiguredMethod, recipe: Recipe, seed: int) -> RunSpec:
        """Return the identity of a run of this session."""
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
            held=() if recipe.varied is None else held_of(recipe.varied, seed, drawn_by(method.method)),
            words=self.word_rule(method),
        )

    def word_rule(self, method: ConfiguredMethod) -> int:
        """Return the word-splitting rule of a method on these texts: the first rule if it gives the same words."""
        below = innermost(method.method)
        if not (isinstance(below, CutsWords) and below.CUTS_WORDS):
            return FIRST_RULE
        known = f"words of {self.dataset.digest}"
        if known not in self.recorded:
            self.recorded[known] = rule_of(texts_of(self.dataset))
        rule: int = self.recorded[known]
        return rule

    def resolved(self, method: ConfiguredMethod, recipe: Recipe) -> dict[str, Any]:
        """Resolve `recipe` for these data, even if `method` takes none. Raises `ConfigError`."""
        task, train = self.dataset.task, self.dataset.train
        rows, outputs = len(train.examples), kinds.get(task.kind).outputs(task)
        schedule, answers = schedule_of(innermost(method.method)), len(flat(train.targets))
        begun = beginning(method.method, self.backbone.card if self.backbone else None)
        writes = self._learns_to_write(method)
        begun |= {"head_start": False} if writes else {}
        resolved = resolve(recipe, rows, outputs, schedule, answers, **begun) | self._augmented(recipe)
        if recipe.learning_rate is None:
            resolved["learning_rate"] = self._own_rate(method)
        return {**resolved, **(OF_TEXTS if writes else {})}

    def learning_rate(self, method: ConfiguredMethod) -> float | None:
        """Return the rate that a run of `method` has unless its recipe states one; None for a method without a rate."""
        below = innermost(method.method)
        return self._own_rate(method) or (below.learning_rate if isinstance(below, HasRate) else None)

    def _own_rate(self, method: ConfiguredMethod) -> float | None:
        """Return the backbone's own default rate of a method; None if the method's default or given rate is used."""
        name, given = innermost_settings(method)
        return None if self.backbone is None or "learning_rate" in given else default_rates(self.backbone).get(name)

    def shorter_reading(self) -> str:
        """Return advice to read fewer tokens of long texts, for where training takes long; else an empty string."""
        from graftwork.pretrained.reading_length import shorter

        if self.backbone is None or self.frozen is None or self.backbone.card.modality != "text":
            return ""
        reading = reading_part(self.backbone)
        encoded = self.frozen.encoded(reading, self.dataset.digest, self.dataset.train)
        return shorter(reading, whole_name(reading.card.id), encoded)

    def _rates(self, method: ConfiguredMethod) -> dict[str, Any]:
        """Return the recipe entry of a method with layer-wise decay where its rates are not those of its blocks alone.

        A network that learns to write has equal ones unless the decay is given (docs/log.md). With a backbone of
        `learns_like`, parts outside the blocks have the rate of their depth. Else it is empty.
        """
        below = innermost(method.method)
        if self.backbone is None or not isinstance(below, Decays) or below.decay == 1:
            return {}
        if self._learns_to_write(method) and "decay" not in innermost_settings(method)[1]:
            return {"rates": EQUAL_RATES}
        return {"rates": RATES_BY_DEPTH} if learns_like(self.backbone) else {}

    def _learns_to_write(self, method: ConfiguredMethod) -> bool:
        trains = isinstance(method.method, TrainsToWrite) and method.method.WRITES
        return trains or isinstance(self.backbone, TextWriter)

    def _augmented(self, recipe: Recipe) -> dict[str, Any]:
        """Return the recipe entry for augmentation, if the backbone can augment."""
        backbone = self.backbone
        known = backbone.augmentation if isinstance(backbone, Augments) else ""
        return {"augmentation": known if recipe.augment else "none"} if known else {}


@dataclass(frozen=True)
class OpenBackbone:
    """The open backbone and its frozen passes, shared by sessions over several tasks."""

    backbone: Backbone | None  # None if no method uses one
    load: Phase  # time to open it: charged to every run
    frozen: FrozenStore | None
    files: Mapping[str, str] = field(default_factory=dict)  # path -> sha256 of all files of the backbone


def writes_texts(kind: str) -> bool:
    """Return whether the answers of tasks of this kind are texts."""
    return isinstance(kinds.get(kind), WritesTexts)


def open_shared(methods: Sequence[ConfiguredMethod], setup: RunSettings, writes: bool = False) -> OpenBackbone:
    """Open the backbone if any of `methods` uses one, with its decoder if one `writes`, and the store of passes."""
    if not _use_backbone(methods):
        return OpenBackbone(None, Phase(), None)
    from graftwork.train.frozen_pass import FrozenStore

    computed_in = numerics(setup.precision, setup.device)
    frozen = FrozenStore(disk=_disk(setup, computed_in))
    loading = Stopwatch()
    precision, device = computed_in["precision"], computed_in["device"]
    with noting_digests() as files:
        opened = open_backbone(setup.backbone, precision=precision, device=device, writes=writes)
    return OpenBackbone(opened, loading.read(), frozen, files)


def settle_numerics(
    setup: RunSettings, methods: Sequence[ConfiguredMethod]
) -> tuple[Prices, dict[str, Any], int | None]:
    """Return the price list, the numerics of runs of `methods`, and the memory limit of training in bytes.

    Raises `GraftworkError` for an invalid setting, independent of the data.
    """
    parse_bytes(setup.cache_size)
    max_memory = parse_bytes(setup.max_memory) if setup.max_memory is not None else None
    computed_in = (numerics if _use_backbone(methods) else numerics_without_network)(setup.precision, setup.device)
    return Prices.from_file(setup.prices), computed_in, max_memory


def open_session(
    task: Task,
    methods: Sequence[ConfiguredMethod],
    setup: RunSettings,
    shared: OpenBackbone | None = None,
    checked: bool = True,
    out: Path | None = None,
) -> Session:
    """Read the data, then open the backbone if any of `methods` uses one; nothing is written before that.

    `shared` is the result of `open_shared` for the same methods and settings, for sessions over several tasks; without
    `checked` the data report is omitted. `out` is a further folder that will be written to.
    """
    listed, computed_in, max_memory = settle_numerics(setup, methods)
    require_outside(task, [setup.runs, *filter(None, [out])])
    dataset = load(task, checked)
    found = {name: getattr(dataset.task, name) for name in FILES}  # also those of a folder
    if shared is None:
        shared = open_shared(methods, setup, writes_texts(dataset.task.kind))
    opened = shared.backbone
    require_reads(opened, dataset.task)
    if opened is not None:
        opened = opened if writes_texts(dataset.task.kind) else reading_part(opened)
        opened = with_instruction(opened, Instruction.of(dataset.task))
    require_writable(Path(setup.runs))
    store = RunStore(Path(setup.runs))
    store.sweep()
    return Session(
        dataset=replace(dataset, report=as_read_by(dataset, reading_part(opened), shared.frozen))
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
            task.resolved(**found), tuple(item.config for item in methods), _as_resolved(setup, computed_in, methods)
        ),
        model_files=shared.files,
    )


def with_backbone(session: Session, by: OpenedBy) -> Session:
    """Return a session over the same data, with the backbone that `by` names."""
    methods = [configured_from(config) for config in by.methods]
    computed_in = numerics(by.setup.precision, by.setup.device, _use_backbone(methods))
    setup = _as_resolved(by.setup, computed_in, methods)
    shared = open_shared(methods, setup, writes_texts(session.dataset.task.kind))
    return replace(
        session,
        numerics={**session.numerics, "precision": computed_in["precision"]},
        backbone=shared.backbone and with_instruction(shared.backbone, Instruction.of(session.dataset.task)),
        load=shared.load,
        frozen=shared.frozen,
        model_files=shared.files,
        opened_by=replace(by, setup=setup),
    )


def _use_backbone(methods: Sequence[ConfiguredMethod]) -> bool:
    return any(item.method.uses_backbone for item in methods)


def _as_resolved(
    setup: RunSettings, computed_in: Mapping[str, Any], methods: Sequence[ConfiguredMethod]
) -> RunSettings:
    """Return the settings with "auto" precision resolved, so that another process uses the same."""
    return replace(setup, precision=computed_in["precision"]) if _use_backbone(methods) else setup


def _disk(setup: RunSettings, computed_in: Mapping[str, Any]) -> PrefixStore | None:
    """Return the on-disk store of frozen passes; None if the user disabled it."""
    cap = parse_bytes(setup.cache_size)
    if not cap:
        return None
    from graftwork.train.prefix_store import PrefixStore

    return PrefixStore(CacheFolder(cache_folder(setup.cache), cap), partial(arithmetic, computed_in))
