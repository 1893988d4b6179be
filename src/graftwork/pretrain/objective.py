"""The interfaces of a pre-training objective. `objectives/NAME.py` registers one, with its options as fields.

Most objectives are trained by gradient in the loop of `pretrain_loop.py` (`ByGradient`). One that another library
trains (word vectors, `AtOnce`) runs its own training and shares the corpus, the folder, the receipt and the price tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from graftwork.pretrain.corpus_tokens import SplitTokens
    from graftwork.pretrain.vocabulary import Vocabulary

IGNORED = -100  # the label of a position that is not predicted


@dataclass(frozen=True)
class PretrainingRecipe:
    """Training hyperparameters without the duration. Every objective has defaults, and flags replace its fields."""

    learning_rate: float  # the peak of the schedule
    batch: int = 32  # rows per step, over all processes
    rows_at_once: int = 0  # rows per pass, 0: the whole batch; gradients accumulate over the passes of a step
    length: int = 128  # T, positions of a row, special tokens included
    short_length: int = 0  # T of the first `short_share` of the steps; 0: all steps are of `length`
    short_share: float = 0.9
    warm_up: float = 0.06  # share of the steps
    beta: float = 0.999  # AdamW's beta2
    schedule: str = "linear"  # or "cosine", both down to 0; "constant"; "inverse_sqrt"; "slanted" (ULMFiT)
    weight_decay: float = 0.01
    clip: float = 1.0  # largest gradient norm
    head_steps: int = 200  # steps, before the first one, on only the heads that the backbone lacked


@dataclass(frozen=True)
class Batch:
    """The network inputs of one step, and the counts that the mean loss is taken over.

    A part has some of the rows but the counts of the whole batch, so that the losses of the parts add up to its loss.
    """

    tensors: Mapping[str, Tensor]  # each (B, …)
    predicted: int  # predictions in the whole batch
    rows: int  # B of the whole batch

    def part(self, start: int, stop: int) -> Batch:
        """Return the part with rows `start … stop - 1`."""
        return replace(self, tensors={name: tensor[start:stop] for name, tensor in self.tensors.items()})

    def beside(self, state: Mapping[str, Tensor]) -> Batch:
        """Return the batch with the state that the previous step returned for the same rows."""
        return replace(self, tensors={**self.tensors, **state}) if state else self

    def to(self, device: str) -> Batch:
        """Move the tensors to a device."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})


@dataclass(frozen=True)
class Loss:
    """The loss of one pass."""

    total: Tensor  # () minimised: this part's share of the batch's mean with all terms; the parts' totals add up
    nats: Tensor  # () detached: the sum of -log p(token) over this part's predictions, without other terms
    predicted: int  # number of predicted tokens
    terms: Mapping[str, Tensor] = field(default_factory=dict)  # () detached: shares of other mean losses, for the log
    state: Mapping[str, Tensor] = field(default_factory=dict)  # (B, …) detached: input of the next step (`InOrder`)


@dataclass(frozen=True)
class ContinuedNetwork:
    """A pretrained network to continue training."""

    network: nn.Module
    vocabulary: Vocabulary
    longest: int = 0  # T of its longest rows; 0: no limit
    added: Sequence[str] = ()  # missing parts that were freshly drawn, in words: "a masked-LM head"
    fresh: Sequence[str] = ()  # the names of their parameters


class Rows(Protocol):
    """A split cut into rows, such as `packing.PackedRows`."""

    def __len__(self) -> int:
        """The number of rows of an epoch."""

    @property
    def content(self) -> int:
        """The number of ids of a row that come from the corpus; its other positions are special tokens."""

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return the whole batch of a step, (B, …) int64, usually (B, T); a pure function of its arguments."""


@runtime_checkable
class InOrder(Rows, Protocol):
    """Rows that continue where those of the previous step ended: the network's state enters the next step."""

    def begins(self, step: int, batch: int) -> bool:
        """Return whether the rows of this step begin anew, so that the state is reset before it."""


@runtime_checkable
class VariedRows(Rows, Protocol):
    """Rows of varied lengths: a step has as many of them as fit into the positions of `batch` rows of full length."""

    @property
    def left_out(self) -> int:
        """The number of examples that are too long for a row."""

    def steps(self, batch: int) -> int:
        """Return the number of steps of an epoch."""

    def ids(self, batch: int) -> float:
        """Return the mean number of corpus ids per step."""

    def typical(self, seed: int, batch: int) -> Sequence[int]:
        """Return the numbers of a few steps whose mean cost is about the mean cost of all steps."""


class Optimiser(Protocol):
    """An optimiser of the weights; `FlatAdamW` unless the objective has its own (`OwnOptimiser`)."""

    def step(self, rate: float) -> float:
        """Update at `rate` x the learning rate from the current gradients; return their norm before clipping."""

    def tensors(self) -> dict[str, Tensor]:
        """Return all state that its next step depends on, other than the weights; scalars are tensors () too."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Resume from the state returned by `tensors`."""


@runtime_checkable
class Averages(Protocol):
    """An optimiser whose result is not the weights that it updates (averaged SGD), or that needs validation losses."""

    def validated(self, nats: float) -> None:
        """Record the mean validation loss per prediction; called after every validation."""

    def answering(self) -> AbstractContextManager[None]:
        """Put the resulting weights into the network within the block, for validation, sampling or saving."""


class ByGradient(Protocol):
    """An objective trained by the pre-training loop; a frozen dataclass.

    It may use torch's global generator for dropout only; the loop seeds that generator by (seed, step, pass).
    """

    VERSION: ClassVar[int]  # incremented when the same options would give another result
    recipe: ClassVar[PretrainingRecipe]
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]]  # "tiny", "small", "base" -> the `size` of `network`
    tokenizer: ClassVar[str]  # default registered tokenizer
    scores_of: ClassVar[str]  # description of the tokens that perplexity is taken over; empty: all tokens

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a network, weights drawn from `seed`, for rows of up to `length` positions. Raises `ConfigError`."""

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a pretrained network from its folder; missing parts are drawn from `seed`. Raises `ConfigError`."""

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut a split into rows that `prepare` makes into `length` positions; `InOrder` for a stateful network."""

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, T) into the network's inputs, on the CPU; masks are drawn from `draw`."""

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Run one forward pass and return its loss.

        If the rows are `InOrder` and do not begin anew, the next step's batch has the tensors of the returned `state`
        beside those of `prepare`.
        """

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write a backbone that a family opens by the "model_type" of its config.json, its head included."""


@runtime_checkable
class Continues(Protocol):
    """An objective with another recipe for pretrained networks."""

    continuing: ClassVar[PretrainingRecipe]


@runtime_checkable
class OwnVocabulary(Protocol):
    """An objective with special tokens of its own, or with other tokens around a text than the tokenizer adds."""

    def extended(self, learned: Vocabulary) -> Vocabulary:
        """Return the vocabulary to train with, derived from the one that the tokenizer learned."""


@runtime_checkable
class ReadsPairs(Protocol):
    """An objective that learns from parallel text: the documents of its corpus are source and target in turn."""

    reads_pairs: ClassVar[Literal[True]]


@runtime_checkable
class ValidatesOften(Protocol):
    """An objective whose result depends on how often a run is validated, and which sets that number itself."""

    validations: ClassVar[int]  # most validations of a run, unless an interval is given


@runtime_checkable
class Crosses(Protocol):
    """An objective that combines several rows of a pass into one example."""

    @property
    def fewest(self) -> int:
        """The smallest number of rows that a pass may have."""


@runtime_checkable
class OwnOptimiser(Protocol):
    """An objective with its own optimiser, instead of AdamW with decay on matrices."""

    def optimiser(self, network: nn.Module, recipe: PretrainingRecipe) -> Optimiser:
        """Return the optimiser of this network."""


@runtime_checkable
class Writes(Protocol):
    """An objective whose network can generate text."""

    def sample(self, network: nn.Module, vocabulary: Vocabulary, prompt: str, length: int, seed: int) -> str:
        """Return `prompt` followed by up to `length` generated tokens."""


@runtime_checkable
class Remarks(Protocol):
    """An objective whose scores do not cover all of the text."""

    def remarks(self, held: SplitTokens, vocabulary: Vocabulary) -> Sequence[str]:
        """Return remarks for a reader of the scores on `held`, a sentence each."""


@dataclass(frozen=True)
class LearnedBackbone:
    """The result of an `AtOnce` objective, beside the backbone in its folder."""

    facts: Mapping[str, Any]  # JSON, for the receipt
    scores: Mapping[str, float]  # on the validation split; may be empty
    trained_parameters: int
    flops: float | None = None  # None: unknown


@runtime_checkable
class AtOnce(Protocol):
    """An objective trained by another library in a single call."""

    VERSION: ClassVar[int]
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]]
    tokenizer: ClassVar[str]

    def learn(self, bench: Bench) -> LearnedBackbone:
        """Train and write the backbone into `bench.folder`."""


@dataclass(frozen=True)
class Bench:
    """The inputs and callbacks of an `AtOnce` objective."""

    train: SplitTokens
    validation: SplitTokens
    vocabulary: Vocabulary
    size: Mapping[str, Any]
    seed: int
    threads: int
    folder: Path  # exists and is empty
    progress: Callable[[float, str], None]  # emits progress: share done, and text
    log: Callable[[Mapping[str, Any]], None]  # appends a line to log.jsonl
    tokens: Callable[[int, float, Callable[[], float]], int]
    # returns the number of tokens to train on; arguments: default passes, FLOP per token, function measuring tokens/s
    resume: Callable[[Callable[[Mapping[str, Tensor]], None]], int]
    # calls its argument with the tensors of the last checkpoint, if any; returns the steps done
    keep: Callable[[int, int, Callable[[], dict[str, Tensor]]], None]
    # writes a checkpoint if one is due; arguments: steps done, total steps, function that returns the state's tensors
    is_spent: Callable[[], bool]  # True if the budget is spent


Objective = ByGradient | AtOnce
