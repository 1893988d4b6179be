"""A method: how a backbone is adapted to a task, or a baseline that uses none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Backbone, BackboneCard, Encoded
from graftwork.core.checkpoint import Keeper, NothingKept
from graftwork.core.example import Example
from graftwork.core.kind import Kind
from graftwork.core.meter import Phase
from graftwork.core.profile import Profile
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import Numbers
from graftwork.core.task import Split, Task
from graftwork.machine.memory import Memory

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graftwork.core.hidden_states import BatchPart, Seen

LATER: Mapping[str, Any] = {"later": True}
# metadata of a hyper-parameter that came after the method: of a run's identity only where it is not the default, so
# that the runs there were before keep theirs
SIZELESS: Mapping[str, Any] = {"sizeless": True}
# metadata of a whole number by which nothing is built, such as steps; any other is held to be the size of a tensor
Entries = tuple[Mapping[str, Any], ...]  # the settings of a method, once for every time that it is listed
AS_IT_COMES: Entries = ({},)
THRESHOLDS_FACT = "shift"  # among the facts of what was fitted, where the kind chose thresholds
Logits = Numbers  # float64 (N, C), or (W, C) per word
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What a method is fitted in and restored to."""

    task: Task
    kind: Kind
    backbone: Backbone | None  # None for a method that uses none


@dataclass
class Tally:
    """Arithmetic spent so far, 2 FLOP per multiply-add."""

    flops: float = 0.0
    padding_flops: float = 0.0
    grade: str = "counter"  # "model" once a part of it was computed from a formula

    def add(self, flops: float, padding_share: float = 0.0) -> None:
        """Count work of which `padding_share` (0 … 1) was on padding."""
        self.flops += flops
        self.padding_flops += flops * padding_share

    def add_model(self, flops: float, padding_share: float = 0.0) -> None:
        """Count work known from a formula rather than from the operators that ran."""
        self.add(flops, padding_share)
        self.grade = "model"

    def include(self, other: Tally) -> None:
        """Count what was counted apart."""
        self.flops += other.flops
        self.padding_flops += other.padding_flops
        if other.grade == "model":
            self.grade = "model"


class FrozenPass(Protocol):
    """What one pass of a frozen backbone over a split left behind."""

    encoded: Encoded

    @property
    def of_sample(self) -> bool:
        """Whether only the sampled examples went through: in batches of their own, and so with other last bits."""

    def pooled(self, block: int) -> Tensor:
        """(N, P) fp32: examples pooled after `block` blocks, towers joined; block L is the network's output.

        Of examples with words (W, P), the words that are seen of the examples `encoded.sampled`. The tensor is the
        caller's own, to change in place.
        """

    def entering(self, sequences: Sequence[int], mask: Tensor) -> Tensor:
        """(S, T, D): the hidden states that enter the first trained block, laid out as `mask` (S, T)."""


class Once(Protocol):
    """Computes what no seed decides once for all runs that share it."""

    def __call__(self, name: str, work: Callable[[Tally], T]) -> T:
        """What `work` returned for this name, now or earlier. A run is charged for it in full either way."""


@dataclass
class Workbench:
    """All that a method may use while it fits. It never holds the test split."""

    setting: Setting
    train: Split
    validation: Split
    seed: int
    recipe: Mapping[str, Any]  # resolved: epochs, batch_size, learning_rate (None: the method's own), …
    order: Callable[[NDArray[np.int64], int], list[NDArray[np.int64]]]  # (lengths, epoch) -> batches of example numbers
    frozen: Callable[[Split, int | None], FrozenPass]  # (split, depth wanted or None): computed once, shared
    score: Callable[..., float]  # (logits) -> headline metric on validation, higher is better; (logits, some examples)
    log: Callable[[Mapping[str, Any]], None] = lambda line: None  # one JSON line per step or epoch
    progress: Progress = silent  # fraction of the fit, what goes on
    tally: Tally = field(default_factory=Tally)
    charged: Phase = field(default_factory=Phase)  # shared work that an earlier run had paid for
    tokenised: set[tuple[str, str, str]] = field(default_factory=set)  # splits whose tokens are in the price
    profile: Profile = field(default_factory=Profile)
    shared: Once | None = None  # None: nothing is kept for other runs
    memory: Memory = field(default_factory=Memory)  # how batches are cut
    held: tuple[str, ...] = ()  # sources of variation that are drawn as by seed 0, whatever `seed` is
    keeper: Keeper = field(default_factory=NothingKept)  # of checkpoints, for a fit that may take minutes

    def seed_of(self, source: str) -> int:
        """What to derive the seed of a source of variation from ("init", "order", …): `seed`, or 0 where it is held."""
        return 0 if source in self.held else self.seed

    def once(self, name: str, work: Callable[[Tally], T]) -> T:
        """`work`, which depends on the task and the backbone alone, done once for all runs that share them."""
        if self.shared is not None:
            return self.shared(name, work)
        return work(self.tally)


class Fitted(Protocol):
    """What a fit leaves: it answers, and it can be stored."""

    facts: Mapping[str, Any]  # JSON: what was chosen, and what `restore` needs beside the delta
    trained_parameters: int

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C), a row per example, or (W, C) for each of their words."""

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """What is stored: with `facts` it restores the answers exactly. Arrays need no torch to be written."""

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Arithmetic of answering these, and its grade."""


@runtime_checkable
class ReadsStates(Protocol):
    """A `Fitted` that starts from the states of a frozen backbone, so that many of them can share one pass."""

    facts: Mapping[str, Any]  # with "blind" (C,), where there are words: the answer to those that are not seen;
    # and with THRESHOLDS_FACT (C,), where the kind chose thresholds: what is `added` to the logits

    @property
    def depth(self) -> int | None:
        """The states 0 … depth are read, depth at most L; None: no states, its own blocks begin at the bottom."""

    def read(self, seen: Seen | BatchPart) -> Tensor:
        """(B, C) logits of one batch, of which at least `depth + 1` states were computed; of words (W, C)."""


@runtime_checkable
class Hangs(Protocol):
    """A `Fitted` that is adapters hung on a frozen backbone, and a head: its rows can run beside those of others."""

    @property
    def adapters(self) -> Mapping[str, nn.Module]:
        """Site -> adapter; nothing where weights of its own stand in for the backbone's."""

    @property
    def head(self) -> nn.Module:
        """`Features -> logits`."""


class Method(Protocol):
    """A frozen dataclass; its fields are the hyper-parameters."""

    @property
    def VERSION(self) -> int:
        """Raised when the same hyper-parameters would give another result; over another method, with that one's."""

    @property
    def uses_backbone(self) -> bool:
        """Whether it needs one."""

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Why this method can't be used here, or an empty string."""

    def fit(self, bench: Workbench) -> Fitted:
        """Learn the task from `bench.train`, choosing on `bench.validation`."""

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Fitted:
        """The fitted method from what was stored."""


@runtime_checkable
class Decays(Protocol):
    """What a method is too whose lower blocks learn more slowly."""

    @property
    def decay(self) -> float:
        """Rate of a block as a share of the rate of the one above it."""


@runtime_checkable
class HasRate(Protocol):
    """What a method is too that is trained at a learning rate, for as long as a recipe says."""

    @property
    def learning_rate(self) -> float:
        """The peak rate of the schedule."""


@runtime_checkable
class HeadStart(Protocol):
    """What a method is too that says whether its head is fitted on frozen features before training; others' are."""

    HEAD_START: ClassVar[bool]


@runtime_checkable
class FreshWeights(Protocol):
    """What a method is too that says whether it draws the backbone's weights anew; others keep them."""

    FRESH_WEIGHTS: ClassVar[bool]


@runtime_checkable
class CutsWords(Protocol):
    """What a method is too that says whether it cuts texts into words by `targets.words`; others leave them whole."""

    CUTS_WORDS: ClassVar[bool]


@runtime_checkable
class Over(Protocol):
    """What a method is too that is over another one."""

    @property
    def by(self) -> str:
        """The other one, as a person names it."""


CONTENT = "sha256-"  # begins what stands in an identity for a file


@runtime_checkable
class KnownBy(Protocol):
    """What a method is too of whose hyper-parameters some don't say by themselves what decides its result."""

    def identity(self) -> Mapping[str, Any]:
        """These hyper-parameters as a run is known by them: a file by its content, another method with all its own.

        The method made from them restores what was stored. Raises `StorageError` for a file that is not there.
        """
