"""Deep averaging network: a few layers on the mean of a text's word vectors (Iyyer et al. 2015,
doi:10.3115/v1/P15-1162). A baseline without word order or backbone that trains in seconds."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from graftwork.core.backbone import BackboneCard
from graftwork.core.checkpoint import Checkpoint
from graftwork.core.example import Example, texts_apart
from graftwork.core.kind import OfChoices
from graftwork.core.method import CONTENT, Logits, Setting, Workbench
from graftwork.core.task import Task
from graftwork.data.readers.word_vector_folder import open_word_vectors
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import digest, file_digest
from graftwork.pretrained.known_words import KnownWords
from graftwork.pretrained.open_backbone import backbone_folder
from graftwork.registry import kinds, methods
from graftwork.targets.words import UNSPACED_APART, cut_words
from graftwork.train.loop import Diverged
from graftwork.train.seeds import derive

RANDOM = "random"  # randomly initialised vectors
SEEN = 2  # occurrences in train that a word needs to have a vector, when no file is given
SPREAD = 0.3  # standard deviation of randomly initialised vectors
LAYER_RATE, DRAWN_RATE, GIVEN_RATE = 2e-3, 3e-3, 1e-3  # of Adam: layers, random vectors, vectors of a file
PATIENCE = 4  # epochs without improvement on validation that end the fit (early stopping)
STEPS_AT_LEAST, LARGEST_BATCH = 40, 64  # steps of an epoch if there are enough rows; rows of a batch

Table = tuple[tuple[str, ...], Tensor]  # words, and their vectors (V, D)
Bags = list[list[int]]  # per text, the table rows of its known words


class Network(nn.Module):
    """A network from rows of words to logits. The last row of the table is a padding row for texts without words."""

    def __init__(self, table: Tensor, texts: int, outputs: int, width: int, depth: int):
        super().__init__()
        self.table = nn.Parameter(torch.cat([table, table.new_zeros(1, table.shape[1])]))  # (V + 1, D)
        self.texts = texts
        widths = [table.shape[1] * (1 if texts == 1 else 4), *[width] * depth]
        parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(*parts, nn.Linear(widths[-1], outputs))

    def forward(self, bags: Bags, sparse: bool = False) -> Tensor:
        """B x `texts` bags -> (B, C); for a pair u, v the layers read [u, v, |u - v|, u * v]."""
        empty = len(self.table) - 1
        filled = [rows or [empty] for rows in bags]
        counts = np.fromiter(map(len, filled), np.int64, len(filled))
        rows = np.fromiter(chain.from_iterable(filled), np.int64, int(counts.sum()))
        starts = torch.from_numpy(np.cumsum(counts) - counts)
        means = embedding_bag(
            torch.from_numpy(rows), self.table, starts, mode="mean", sparse=sparse, padding_idx=empty
        )  # (B x texts, D)
        if self.texts == 2:
            u, v = means[0::2], means[1::2]  # (B, D)
            means = torch.cat([u, v, (u - v).abs(), u * v], dim=1)
        logits: Tensor = self.layers(means)
        return logits


@dataclass
class Averaging:
    """A trained network and its vocabulary. Implements `Fitted`."""

    network: Network
    facts: Mapping[str, Any]  # "vocabulary": the words of the table's rows, in order; "unspaced_apart"

    def __post_init__(self) -> None:
        rows = {word: row for row, word in enumerate(self.facts["vocabulary"])}
        self._known = KnownWords(rows, unspaced_apart=bool(self.facts.get(UNSPACED_APART)))

    @property
    def trained_parameters(self) -> int:
        """The parameters of the layers and of the vectors of words in train."""
        layers = sum(parameter.numel() for parameter in self.network.layers.parameters())
        return layers + int(self.facts["words_trained"]) * self.network.table.shape[1]

    def bags(self, examples: Sequence[Example]) -> Bags:
        """Return one bag per text, in order."""
        return [self._known.read(text).rows for example in examples for text in texts_apart(example)]

    @torch.no_grad()
    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C) of examples."""
        return self.of_bags(self.bags(examples))

    @torch.no_grad()
    def of_bags(self, bags: Bags) -> Logits:
        """Return the logits (N, C) of bags."""
        logits: Tensor = self.network(bags)  # (N, C)
        return logits.double().numpy()

    def delta(self) -> dict[str, Tensor]:
        """Return the vectors and layers; the words are in the facts."""
        return {name: tensor.detach() for name, tensor in self.network.state_dict().items()}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count one FLOP per word and dimension of its vector, and two per weight of the layers."""
        return _flops(self.network, self.bags(examples)), "model"


class _Learning:
    """The training state of a network: everything that its next epoch depends on."""

    def __init__(self, network: Network, rate: float, l2: float, random: np.random.Generator):
        self.network, self.random = network, random
        self.layers = torch.optim.AdamW(network.layers.parameters(), lr=LAYER_RATE, weight_decay=l2)
        self.vectors = torch.optim.SparseAdam([network.table], lr=rate)
        self.best, self.at = (-math.inf, -math.inf), 0  # (score, -loss) of the best epoch, and its number
        self.scores: list[float] = []
        self.kept: dict[str, Tensor] = {}  # the weights after the best epoch

    def step(self, loss: Tensor) -> None:
        """Update layers and vectors once."""
        self.layers.zero_grad()
        self.vectors.zero_grad()
        loss.backward()
        self.layers.step()
        self.vectors.step()

    def reached(self, score: float, other: float) -> None:
        """Record the end of an epoch and keep its weights if it is the best; `other` breaks ties of the score."""
        self.scores.append(score)
        if (score, other) > self.best:
            self.best, self.at = (score, other), len(self.scores)
            self.kept = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint of the state after an epoch."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"kept.{name}": tensor for name, tensor in self.kept.items()}
        for prefix, optimiser in (("layers", self.layers), ("vectors", self.vectors)):
            for number, state in optimiser.state_dict()["state"].items():
                tensors |= {f"{prefix}.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
        tensors["scores"] = torch.tensor([*self.best, *self.scores], dtype=torch.float64)
        return Checkpoint({"at": self.at, "random": self.random.bit_generator.state}, tensors)

    def restore(self, found: Checkpoint) -> None:
        """Restore the state from a checkpoint."""
        parts: dict[str, dict[str, Tensor]] = {}
        for path, tensor in found.tensors.items():
            prefix, _, name = path.partition(".")
            parts.setdefault(prefix, {})[name] = tensor.clone()
        self.network.load_state_dict(parts["network"])
        self.kept = parts.get("kept", {})
        for prefix, optimiser in (("layers", self.layers), ("vectors", self.vectors)):
            states: dict[int, dict[str, Any]] = {}
            for path, tensor in parts[prefix].items():
                number, _, name = path.partition(".")
                counts = name == "step" and optimiser is self.vectors  # SparseAdam's step is an int, AdamW's a tensor
                states.setdefault(int(number), {})[name] = int(tensor) if counts else tensor
            optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
        first, second, *self.scores = parts["scores"][""].tolist()
        self.best, self.at = (first, second), found.numbers["at"]
        self.random.bit_generator.state = found.numbers["random"]


@methods.register("dan")
@dataclass(frozen=True)
class Dan:
    """A deep averaging network with word dropout; vectors and layers are trained, the best epoch is kept."""

    vectors: str = RANDOM  # "random": initialised randomly, learned on the task (DAN-RAND); or a file of word vectors
    size: int = 100  # dimensions of random vectors; those of a file have their own
    width: int = 100  # of a layer
    depth: int = 2  # layers before the last
    drop: float = 0.3  # share of words dropped from a text in training, drawn anew each time
    l2: float = 1e-4  # weight decay of the layers
    words: int = 20_000  # first words of a file that are kept, besides all words of train
    epochs: int = 40  # passes over train, at most

    VERSION: ClassVar[int] = 2
    uses_backbone: ClassVar[bool] = False
    CUTS_WORDS: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task gives one answer to each text or pair of texts."""
        kind = kinds.get(task.kind)
        if task.reads != "text":
            return f"it reads texts, and this task reads {task.reads}s"
        if kind.per_word or isinstance(kind, OfChoices):
            return "it predicts one answer per text, and this task has one per word or choice"
        whole = min(self.size, self.width, self.epochs) > 0 and self.depth >= 0 and self.words >= 0
        if not (whole and 0 <= self.drop < 1 and self.l2 >= 0):
            return f"size, width and epochs must be above 0, drop between 0 and 1, no other below 0: {self}"
        return ""

    def identity(self) -> dict[str, Any]:
        """Return the content hash of the vector file for a run's identity."""
        named = self.vectors != RANDOM and not self.vectors.startswith(CONTENT)
        return {"vectors": CONTENT + _content(_place(self.vectors))} if named else {}

    def fit(self, bench: Workbench) -> Averaging:
        """Train with Adam; a batch updates only the vectors of its own words."""
        examples = bench.train.examples
        vocabulary, table = self._table(bench)
        texts, outputs = len(examples[0].inputs), bench.setting.kind.outputs(bench.setting.task)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(bench.seed_of("init"), "init"))
            network = Network(table, texts, outputs, self.width, self.depth)
        fitted = Averaging(network, {"vocabulary": list(vocabulary), "words_trained": 0, UNSPACED_APART: True})
        train, checked = fitted.bags(examples), fitted.bags(bench.validation.examples)
        found = self._learn(bench, fitted, train, checked)
        facts = {"words": len(vocabulary), "words_trained": len(set(chain.from_iterable(train)))} | found
        return Averaging(network, {**fitted.facts, "texts": texts} | facts)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Averaging:
        """Rebuild from stored vectors and layers, without the file. Raises `IncompatibleModule` if shapes differ."""
        outputs, depth = setting.kind.outputs(setting.task), min(self.depth, len(delta))
        with torch.device("meta"):  # allocates no memory before the shapes are checked
            network = Network(delta["table"][:-1].to("meta"), facts["texts"], outputs, self.width, depth)
        described = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        if depth != self.depth or described != {name: tuple(tensor.shape) for name, tensor in delta.items()}:
            raise IncompatibleModule(
                "it describes another network than the weights belong to",
                where="module.json",
                got=f"{outputs:,} outputs, width {self.width:,}, depth {self.depth:,}",
                do="restore it from a copy, or train it again",
            )
        network.load_state_dict(delta, assign=True)
        return Averaging(network, facts)

    def _table(self, bench: Workbench) -> Table:
        """Return the words that have a vector, and their vectors before training."""
        if self.vectors != RANDOM:
            table: Table = bench.once(f"word vectors of {self}", lambda tally: self._table_of_file(bench))
            return table
        texts = (text for example in bench.train.examples for text in example.inputs.values())
        counts = Counter(word for text in texts for word in cut_words(unicodedata.normalize("NFC", text).lower()))
        words = tuple(sorted(word for word, count in counts.items() if count >= SEEN))
        draw = torch.Generator().manual_seed(derive(bench.seed_of("init"), "vectors"))
        return words, SPREAD * torch.randn(len(words), self.size, generator=draw)

    def _table_of_file(self, bench: Workbench) -> Table:
        """Return the file's words that occur in train and its first (most frequent) words, with their vectors."""
        if self.vectors.startswith(CONTENT):
            raise ConfigError("the file of word vectors is not named", got=self.vectors, expected="dan:vectors=FILE")
        vectors = open_word_vectors(_place(self.vectors))
        known = KnownWords(vectors.rows)
        texts = (text for example in bench.train.examples for text in example.inputs.values())
        rows = sorted({row for text in texts for row in known.read(text).rows} | set(range(self.words)))
        kept = rows[: np.searchsorted(rows, len(vectors.words))]
        return tuple(vectors.words[row] for row in kept), torch.from_numpy(vectors.table[kept])

    def _learn(self, bench: Workbench, fitted: Averaging, train: Bags, checked: Bags) -> dict[str, Any]:
        """Train the network of `fitted` in place and load the weights of its best epoch; return the training facts."""
        network, kind = fitted.network, bench.setting.kind
        held = torch.from_numpy(bench.validation.targets)
        rate = DRAWN_RATE if self.vectors == RANDOM else GIVEN_RATE
        random = np.random.default_rng(derive(bench.seed_of("order"), "order"))
        learning = _Learning(network, rate, self.l2, random)
        found = bench.keeper.found()
        if found is not None:
            learning.restore(found)
        with bench.keeper.steps() as keep:
            while len(learning.scores) < self.epochs and len(learning.scores) - learning.at < PATIENCE:
                loss = self._epoch(bench, network, learning, train)
                logits, epoch = fitted.of_bags(checked), len(learning.scores) + 1
                score = bench.score(logits)
                learning.reached(score, -float(kind.loss(torch.from_numpy(logits).float(), held)))
                bench.log({"epoch": epoch, "validation": score, "loss": loss})
                bench.progress(epoch / self.epochs, f"epoch {epoch}/{self.epochs}")
                keep(learning.checkpoint)
        if not learning.kept:
            raise Diverged(
                "training diverged: no epoch has a validation score that is a number",
                got=f"validation scores {', '.join(map(str, learning.scores))}",
                do="check the numbers of the word vectors, or use another method",
            )
        network.load_state_dict(learning.kept)
        bench.tally.add_model(3 * len(learning.scores) * _flops(network, train))  # backward is twice forward
        return {"epochs": len(learning.scores), "best_epoch": learning.at, "validation_by_epoch": learning.scores}

    def _epoch(self, bench: Workbench, network: Network, learning: _Learning, train: Bags) -> float:
        """Train for one epoch; return its mean loss."""
        objective, targets = bench.training_loss, torch.from_numpy(bench.train.targets)
        random, losses = learning.random, []
        size = min(LARGEST_BATCH, max(2, len(targets) // STEPS_AT_LEAST))
        for rows in np.array_split(random.permutation(len(targets)), max(1, len(targets) // size)):
            bags = [
                _dropped(train[row * network.texts + part], self.drop, random)
                for row in rows.tolist()
                for part in range(network.texts)
            ]
            loss = objective.loss(network(bags, sparse=True), targets[rows])
            learning.step(loss)
            losses.append(float(loss.detach()))
        return sum(losses) / len(losses)


def _dropped(rows: list[int], share: float, random: np.random.Generator) -> list[int]:
    """Drop rows with probability `share`; if that would drop all, return `rows` unchanged."""
    stays = random.random(len(rows)) >= share
    return [row for row, stay in zip(rows, stays.tolist(), strict=True) if stay] or rows


def _flops(network: Network, bags: Bags) -> float:
    layers = sum(parameter.numel() for parameter in network.layers.parameters())
    words = sum(map(len, bags))
    return float(words * network.table.shape[1] + 2 * layers * len(bags) / network.texts)


def _place(vectors: str) -> Path:
    """Return the path of the vector file or folder; `vectors` may also name a backbone's folder."""
    return backbone_folder(vectors) or Path(vectors).expanduser()


def _content(path: Path) -> str:
    """Return the sha256 of a file, or of the files of a folder. Raises `StorageError`."""
    if path.is_dir():
        return digest({each.name: _content(each) for each in sorted(path.iterdir()) if each.is_file()})
    if not path.exists():
        return file_digest(path)
    state = path.stat()
    return _content_at(path.absolute(), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=16)
def _content_at(path: Path, size: int, changed: int) -> str:
    """Return the digest of a file; cached, so that a large file is read once while it is unchanged."""
    return file_digest(path)
