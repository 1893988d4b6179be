"""An objective: what a network learns from text alone. `objectives/NAME.py` registers one, with its options as fields.

Most are trained by gradient in the one loop of `loop.py` (`ByGradient`). What another library trains (word vectors)
does it itself (`AtOnce`) and shares the corpus, the folder, the receipt and the price tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from graftwork.pretrain.corpus_tokens import SplitTokens
    from graftwork.pretrain.vocabulary import Vocabulary

IGNORED = -100  # the label of a position that is not predicted


@dataclass(frozen=True)
class PretrainingRecipe:
    """How fast to train; how long is asked for apart. Every objective has its own, and flags replace its fields."""

    learning_rate: float  # the peak of the schedule
    batch: int = 32  # rows a step, over all processes
    rows_at_once: int = 0  # rows of one pass; 0: all of the batch. A step's passes add up to the batch's gradient
    length: int = 128  # T, positions of a row, special tokens included
    short_length: int = 0  # T of the first `short_share` of the steps; 0: all steps are of `length`
    short_share: float = 0.9
    warm_up: float = 0.06  # share of the steps
    beta: float = 0.999  # AdamW's second
    schedule: str = "linear"  # "linear" or "cosine", both down to 0; "constant"; "slanted", ULMFiT's triangle
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of a gradient
    head_steps: int = 200  # that train what a backbone lacked and nothing else, before the first step of all


@dataclass(frozen=True)
class Batch:
    """What a network sees of one step: tensors with a row each, and what the mean is taken over.

    A part has some of the rows and the counts of the whole batch, so that the losses of the parts add up to its.
    """

    tensors: Mapping[str, Tensor]  # each (B, …)
    predicted: int  # predictions in the whole batch
    rows: int  # B of the whole batch

    def part(self, start: int, stop: int) -> Batch:
        """Rows `start … stop - 1`."""
        return replace(self, tensors={name: tensor[start:stop] for name, tensor in self.tensors.items()})

    def beside(self, state: Mapping[str, Tensor]) -> Batch:
        """With what the step before left for the same rows."""
        return replace(self, tensors={**self.tensors, **state}) if state else self

    def to(self, device: str) -> Batch:
        """The same on another device."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})


@dataclass(frozen=True)
class Loss:
    """Of one pass."""

    total: Tensor  # () what is minimised: this part's share of the batch's mean, every term included; parts add up
    nats: Tensor  # () detached: the sum of -log p(token) over what this part predicts, nothing else
    predicted: int  # how many tokens that is
    terms: Mapping[str, Tensor] = field(default_factory=dict)  # () detached: shares of other means, for the log
    state: Mapping[str, Tensor] = field(default_factory=dict)  # (B, …) detached: enters the next step, where one does


@dataclass(frozen=True)
class ContinuedNetwork:
    """A network to go on from."""

    network: nn.Module
    vocabulary: Vocabulary
    longest: int = 0  # T of its longest rows; 0: any
    added: Sequence[str] = ()  # what it did not bring and is drawn afresh, in words: "a masked-LM head"
    fresh: Sequence[str] = ()  # the same as the names of parameters


class Rows(Protocol):
    """A split cut into rows; `packing.Packed` is one."""

    def __len__(self) -> int:
        """Rows of an epoch."""

    @property
    def content(self) -> int:
        """Ids of a row that come from the corpus; the rest of its positions frame them."""

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """(B, T) int64, a pure function of its arguments: the whole batch of a step."""


@runtime_checkable
class InOrder(Rows, Protocol):
    """Rows that go on where those of the step before ended: the network's state enters the next step."""

    def begins(self, step: int, batch: int) -> bool:
        """Whether the rows of this step go on from nothing, so that the state is dropped before it."""


class Optimiser(Protocol):
    """Moves the weights; `FlatAdamW` unless the objective has its own (`OwnOptimiser`)."""

    def step(self, rate: float) -> float:
        """One update at `rate` x the learning rate from the gradients there are; returns their norm before clipping."""

    def tensors(self) -> dict[str, Tensor]:
        """All that its next step depends on beside the weights; what is a number is a tensor () too."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from there."""


@runtime_checkable
class Averages(Protocol):
    """An optimiser whose answer is not the weights that it moves (averaged SGD), or that hears of validation."""

    def validated(self, nats: float) -> None:
        """The mean validation loss per prediction, after every validation."""

    def answering(self) -> AbstractContextManager[None]:
        """Within it the network has the weights to be read, validated and saved."""


class ByGradient(Protocol):
    """A frozen dataclass: an objective trained by the loop.

    From torch's global generator it draws the dropout of a pass only, which the loop seeds by (seed, step, pass).
    """

    VERSION: ClassVar[int]  # raised when the same options would give another result
    recipe: ClassVar[PretrainingRecipe]
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]]  # "tiny", "small", "base": what `network` takes
    tokenizer: ClassVar[str]  # the registered tokenizer that is trained where none is named
    scores_of: ClassVar[str]  # what perplexity is taken over, where that is not every token of a text; or empty

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Fresh weights drawn from `seed`, for rows of up to `length` positions. Raises `ConfigError`."""

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """A pretrained network from its folder; what it lacks is drawn from `seed`. Raises `ConfigError`."""

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """A split as rows of which `prepare` makes `length` positions; `InOrder` for a network with a state."""

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """(B, T) ids -> what the network sees; masks are drawn from `draw`. Computed on the processor."""

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """One forward pass.

        The tensors of the `state` that it returns are in the batch of the next step, beside those of `prepare`, where
        the rows are `InOrder` and do not begin.
        """

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a backbone that a family opens by the "model_type" of its config.json; the head is kept with it."""


@runtime_checkable
class Continues(Protocol):
    """An objective with another recipe for a network that has learned already."""

    continuing: ClassVar[PretrainingRecipe]


@runtime_checkable
class Crosses(Protocol):
    """An objective that makes questions out of several rows of a pass."""

    @property
    def fewest(self) -> int:
        """Rows that it needs for that."""


@runtime_checkable
class OwnOptimiser(Protocol):
    """An objective that is not trained by AdamW with decay on matrices."""

    def optimiser(self, network: nn.Module, recipe: PretrainingRecipe) -> Optimiser:
        """The optimiser of this network."""


@runtime_checkable
class Writes(Protocol):
    """An objective whose network can write text."""

    def sample(self, network: nn.Module, vocabulary: Vocabulary, prompt: str, length: int, seed: int) -> str:
        """`prompt` and up to `length` tokens after it."""


@runtime_checkable
class Remarks(Protocol):
    """An objective whose scores leave something of the text out."""

    def remarks(self, held: SplitTokens, vocabulary: Vocabulary) -> Sequence[str]:
        """What a reader of the scores on `held` must know, a sentence each."""


@dataclass(frozen=True)
class Learned:
    """What `AtOnce` leaves beside the backbone in its folder."""

    facts: Mapping[str, Any]  # JSON, for the receipt
    scores: Mapping[str, float]  # on the validation split; may be empty
    trained_parameters: int
    flops: float | None = None  # None: nobody knows


@runtime_checkable
class AtOnce(Protocol):
    """An objective that another library trains in one go."""

    VERSION: ClassVar[int]
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]]
    tokenizer: ClassVar[str]

    def learn(self, bench: Bench) -> Learned:
        """Train, and write the backbone into `bench.folder`."""


@dataclass(frozen=True)
class Bench:
    """What an `AtOnce` objective works with."""

    train: SplitTokens
    validation: SplitTokens
    vocabulary: Vocabulary
    size: Mapping[str, Any]
    seed: int
    threads: int
    folder: Path  # exists and is empty
    progress: Callable[[float, str], None]  # share done, and words
    log: Callable[[Mapping[str, Any]], None]  # a line of log.jsonl
    tokens: Callable[[int, float, Callable[[], float]], int]
    # how many tokens to see: from the passes that are usual, FLOP per token, and what finds out tokens per second
    resume: Callable[[Callable[[Mapping[str, Tensor]], None]], int]
    # steps that an interrupted attempt did; what it kept is given back first
    keep: Callable[[int, int, Callable[[], dict[str, Tensor]]], None]
    # steps done, of how many, and all that the next one depends on, asked for when it is time to keep it
    is_spent: Callable[[], bool]  # whether a further step would exceed the budget


Objective = ByGradient | AtOnce
