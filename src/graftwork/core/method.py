"""A method: an adaptation of a backbone to a task, or a baseline without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Backbone, BackboneCard, Encoded
from graftwork.core.checkpoint import Keeper, NothingKept
from graftwork.core.class_weights import ClassWeights, class_weights_of
from graftwork.core.example import Example
from graftwork.core.kind import Kind, OwnOutputs, TrainingLoss
from graftwork.core.meter import Phase
from graftwork.core.metric import score
from graftwork.core.profile import Profile
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import Numbers
from graftwork.core.tally import Tally
from graftwork.core.task import Split, Task
from graftwork.core.writing import Tell
from graftwork.machine.memory import Memory
from graftwork.registry import kinds, metrics

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graftwork.core.hidden_states import BatchPart, BatchStates
    from graftwork.core.model import Model

LATER: Mapping[str, Any] = {"later": True}
# metadata of a hyper-parameter added later: in a run's identity only if not the default, so that earlier ids stay
SIZELESS: Mapping[str, Any] = {"sizeless": True}
# metadata of an integer that is not the size of a tensor, such as steps; any other integer is assumed to be a size
Entries = tuple[Mapping[str, Any], ...]  # settings of a method, one mapping per entry on a board, ladder or curve
AS_IT_COMES: Entries = ({},)
THRESHOLDS_FACT = "shift"  # key in the facts of a `Fitted`, if the kind chose thresholds
Logits = Numbers  # float64 (N, C), or (W, C) per word; for a kind with `OwnOutputs` its arrays
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """The context in which a method is fitted and restored."""

    task: Task
    kind: Kind
    backbone: Backbone | None  # None for a method that uses none


class FrozenPass(Protocol):
    """The stored results of one pass of a frozen backbone over a split."""

    encoded: Encoded

    @property
    def of_sample(self) -> bool:
        """True if only the sampled examples were computed: in other batches, so their last bits may differ."""

    def pooled(self, block: int) -> Tensor:
        """Return (N, P) fp32: features pooled after `block` blocks, towers joined; block L is the network's output.

        For examples with words (W, P): the seen words of the examples `encoded.sampled`. The tensor is a copy that
        the caller may change in place.
        """

    def entering(self, sequences: Sequence[int], mask: Tensor) -> Tensor:
        """Return (S, T, D): the hidden states that enter the first trained block, padded like `mask` (S, T)."""


class FrozenPasses(Protocol):
    """The passes of one frozen backbone over the splits of one data set."""

    def get(self, split: Split, depth: int | None, bench: Workbench) -> FrozenPass:
        """Return the pass over a split, with the states entering block `depth` if given; charge `bench` in full."""


class Once(Protocol):
    """Seed-independent work, done once for all runs that share it."""

    def get(self, bench: Workbench, name: str, work: Callable[[Tally], T]) -> T:
        """Return the result of `work` for this name, computed or cached; charge `bench` in full either way."""


@dataclass(frozen=True)
class Training:
    """A finished training: its weights and facts, as in `Fitted`, its time, its FLOP and the lines of its log."""

    delta: Mapping[str, Tensor | NDArray[Any]]
    facts: Mapping[str, Any]
    time: Phase
    tally: Tally
    log: Sequence[Mapping[str, Any]]


FindTraining = Callable[[str, int], Training | None]
# (method, number) -> the training of the stored run of that method on the same rows whose seed is higher by `number`


@dataclass(frozen=True)
class Scorer:
    """The score of outputs for a split by one metric of the task."""

    metric: str
    setting: Setting
    split: Split

    def __call__(self, logits: Logits, examples: NDArray[np.int64] | None = None) -> float:
        """Return the score of the outputs for all examples of the split, or for some; higher is better."""
        predictions = self.setting.kind.predictions(logits, self.setting.task)
        targets = self.split.targets if examples is None else self.split.targets[examples]
        return score(metrics.get(self.metric), targets, predictions, self.setting.task)


@dataclass
class Workbench:
    """Everything that a method may use while it fits. It never holds the test split."""

    setting: Setting
    train: Split
    validation: Split
    seed: int
    recipe: Mapping[str, Any]  # resolved: epochs, batch_size, learning_rate (None: the method's default), …
    order: Callable[[NDArray[np.int64], int], list[NDArray[np.int64]]]  # (lengths, epoch) -> batches of example numbers
    passes: FrozenPasses | None  # None without a backbone
    score: Callable[..., float]  # (logits[, some examples]) -> headline metric on validation, higher is better
    log: Callable[[Mapping[str, Any]], None] = lambda line: None  # one JSON line per step or epoch
    progress: Progress = silent  # (fraction of the fit, current activity)
    tally: Tally = field(default_factory=Tally)
    charged: Phase = field(default_factory=Phase)  # shared work already computed by an earlier run
    tokenised: set[tuple[str, str, str]] = field(default_factory=set)  # splits whose tokenisation is already charged
    profile: Profile = field(default_factory=Profile)
    shared: Once | None = None  # None: nothing is shared with other runs
    memory: Memory = field(default_factory=Memory)  # memory limit and the cuts of batches
    held: tuple[str, ...] = ()  # sources of variation drawn with seed 0, whatever `seed` is
    training: int = 0  # its number among trainings from the same weights; added to every seed but that of "init"
    earlier: FindTraining | None = None  # None: no run is looked up
    keeper: Keeper = field(default_factory=NothingKept)  # stores checkpoints, for a fit that may take minutes
    teacher_loss: TrainingLoss | None = None  # the loss for the targets of `train`, if they are a teacher's
    heeded: dict[str, Any] = field(default_factory=dict)  # facts on optional settings that this fit has used

    @property
    def training_loss(self) -> TrainingLoss:
        """The training loss: that of a teacher's targets, else with the task's class weights, else the kind's."""
        return self.teacher_loss or self.class_weights or self.setting.kind

    @cached_property
    def class_weights(self) -> ClassWeights | None:
        """The class weights of the loss, None without; reading them records in `heeded` that the fit uses them."""
        found = class_weights_of(self.setting.task, self.setting.kind, self.train.targets)
        if found is not None:
            self.heeded["class_weights"] = found.as_json(self.setting.task)
        return found

    def seed_of(self, source: str) -> int:
        """Return the base seed of a source of variation ("init", "order", …): `seed`, or 0 if it is held."""
        return (0 if source in self.held else self.seed) + (0 if source == "init" else self.training)

    def frozen(self, split: Split, depth: int | None) -> FrozenPass:
        """Return the pass of the frozen backbone over a split: computed once, shared with other runs."""
        assert self.passes is not None, "the method uses no backbone"
        return self.passes.get(split, depth, self)

    def once(self, name: str, work: Callable[[Tally], T]) -> T:
        """Return the result of `work`, which depends only on task and backbone, once for all runs that share them."""
        if self.shared is not None:
            return self.shared.get(self, name, work)
        return work(self.tally)


class Fitted(Protocol):
    """The result of a fit: it predicts, and it can be stored."""

    facts: Mapping[str, Any]  # JSON: choices made, and what `restore` needs besides the delta
    trained_parameters: int

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return (N, C), a row per example, or (W, C), a row per word; arrays (N, …) of a kind with `OwnOutputs`."""

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the weights to store; with `facts` they restore the predictions exactly. Arrays if without torch."""

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Return the FLOP of predicting these examples, and the grade of that number."""


class LooksUp:
    """A `Fitted` without trained parameters, whose predictions only count or compare and take no FLOP."""

    trained_parameters: int = 0

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Return 0: nothing is multiplied."""
        return 0.0, "counter"


@runtime_checkable
class ReadsBack(Protocol):
    """A `Fitted` that writes texts and returns the log-probabilities of given ones, which its self-test compares.

    The most probable token may depend on the last bit, which differs between processors; a log-probability hardly does.
    """

    def read_back(self, examples: Sequence[Example], outputs: Logits) -> NDArray[np.float64]:
        """Return (N,): the log-probabilities of the texts of `outputs`, tokenised anew, as outputs for `examples`."""


@runtime_checkable
class WritesAloud(Protocol):
    """A `Fitted` that can stream its texts while it generates them."""

    def written_aloud(self, examples: Sequence[Example], tell: Tell) -> Logits:
        """Return the same as `logits`; call `tell` at every token. An exception in it ends the generation."""


@runtime_checkable
class CountsCut(Protocol):
    """A `Fitted` that truncates texts itself, instead of a backbone that its task module has."""

    def cut(self, examples: Sequence[Example]) -> int:
        """Return how many of these examples are truncated."""


@runtime_checkable
class ReadsStates(Protocol):
    """A `Fitted` that reads the states of a frozen backbone, so that many of them can share one forward pass."""

    facts: Mapping[str, Any]  # with "blind" (C,), if there are words: the logits of unseen words;
    # and with THRESHOLDS_FACT (C,), if the kind chose thresholds: the shift `added` to the logits

    @property
    def depth(self) -> int | None:
        """The deepest state read, at most L; None: no states, its own blocks start at the embeddings."""

    def read(self, seen: BatchStates | BatchPart) -> Tensor:
        """Return the logits (B, C) of one batch with at least `depth + 1` states computed; for words (W, C)."""


@runtime_checkable
class AdapterFitted(Protocol):
    """A `Fitted` made of adapters on a frozen backbone and a head: its rows can share a batch with those of others."""

    @property
    def adapters(self) -> Mapping[str, nn.Module]:
        """Site -> adapter; empty if it has its own weights in place of the backbone's."""

    @property
    def head(self) -> nn.Module:
        """The head, `Features -> logits`."""


class Baseline:
    """A baseline without backbone, by default in every board (comparison), ladder (budgeted search) and curve."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False
    LADDER: ClassVar[Entries] = AS_IT_COMES
    CURVE: ClassVar[Entries] = AS_IT_COMES


class Method(Protocol):
    """A method, a frozen dataclass whose fields are the hyper-parameters."""

    @property
    def VERSION(self) -> int:
        """Incremented when the same hyper-parameters would give another result; a wrapper's includes its method's."""

    @property
    def uses_backbone(self) -> bool:
        """True if the method needs a backbone."""

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return the reason that this method can't be used here, or an empty string."""

    def fit(self, bench: Workbench) -> Fitted:
        """Fit the task on `bench.train`, with model selection on `bench.validation`."""

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Fitted:
        """Restore the fitted method from the stored delta and facts."""


@runtime_checkable
class OfKinds(Protocol):
    """A method that declares which kinds with `OwnOutputs` it fits (default: none)."""

    KINDS: ClassVar[tuple[str, ...]]


def unfit(method: Method, task: Task, card: BackboneCard | None) -> str:
    """Return the reason that a method can't be used for a task here, or an empty string."""
    named = method.KINDS if isinstance(method, OfKinds) else ()
    own = isinstance(kinds.get(task.kind), OwnOutputs)
    if own and task.kind not in named:
        return f"it gives logits, and the answers of kind {task.kind} are made of something else"
    if own and isinstance(method, NetworkMethod) and card is not None and not card.writes:
        return f"{card.id} writes no texts, as the decoders of T5 and BART do"
    return method.unfit(task, card)


@runtime_checkable
class NetworkMethod(Protocol):
    """A method that changes the network by adapters or trained blocks."""

    def attach(self, model: Model) -> None:
        """Insert adapters or unfreeze blocks; afterwards `model.delta()` is final."""


@runtime_checkable
class Decays(Protocol):
    """A method with layer-wise learning-rate decay."""

    @property
    def decay(self) -> float:
        """Learning rate of a block as a fraction of that of the block above it."""


@runtime_checkable
class HasRate(Protocol):
    """A method trained with a learning rate for the number of epochs in a recipe."""

    @property
    def learning_rate(self) -> float:
        """The peak learning rate of the schedule."""


@runtime_checkable
class IdentityAtStart(Protocol):
    """A method that declares whether attaching it changes no output until it is trained (default: yes)."""

    IDENTITY_AT_START: ClassVar[bool]


@runtime_checkable
class HeadStart(Protocol):
    """A method that declares whether its head is fitted on frozen features before training (default: yes)."""

    HEAD_START: ClassVar[bool]


@runtime_checkable
class SameStart(Protocol):
    """A method that declares whether its runs start from the same weights for every seed (default: no)."""

    SAME_START: ClassVar[bool]


@runtime_checkable
class FreshWeights(Protocol):
    """A method that declares whether it re-initialises the backbone's weights (default: no)."""

    FRESH_WEIGHTS: ClassVar[bool]


@runtime_checkable
class CutsWords(Protocol):
    """A method that declares whether it splits texts into words with `targets.words` (default: no)."""

    CUTS_WORDS: ClassVar[bool]


@runtime_checkable
class Draws(Protocol):
    """A method that declares which sources of variation it draws besides those of every run (default: none)."""

    DRAWS: ClassVar[tuple[str, ...]]


@runtime_checkable
class TrainsToWrite(Protocol):
    """A method that declares whether it trains the backbone to write, whatever the kind of the task (default: no)."""

    WRITES: ClassVar[bool]


@runtime_checkable
class Over(Protocol):
    """A method that wraps another one."""

    @property
    def by(self) -> str:
        """The wrapped method, in the notation of the command line."""


CONTENT = "sha256-"  # prefix of the value that represents a file in an identity


@runtime_checkable
class KnownBy(Protocol):
    """A method with hyper-parameters whose values alone do not determine its result, such as file paths."""

    def identity(self) -> Mapping[str, Any]:
        """Return these hyper-parameters as part of a run's identity: files by content, a wrapped method in full.

        The method made from them restores what was stored. Raises `StorageError` for a missing file.
        """
