"""Bidirectional language modelling, words read by their characters (ELMo: Peters et al. 2018, arXiv:1802.05365)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear

from graftwork.backbones.elmo import open_bilm, save_bilm
from graftwork.errors import ConfigError
from graftwork.nn.bilm import BiLM, BiLMShape, fresh_bilm
from graftwork.nn.bilstm import Places
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives

HEAD = "softmax"  # prefix of the head's weights in the folder
NEVER = -1e9  # logit of an excluded word
LOGITS_AT_ONCE = 1 << 24  # logits in memory at once, about


def bilm_size(projected: int, cells: int, filters: Sequence[tuple[int, int]], highways: int) -> dict[str, Any]:
    """Return the size of a two-layer network as in AllenNLP's options.json, clipped as in the published networks."""
    return {
        "char_cnn": {
            "embedding": {"dim": 16},
            "filters": [list(one) for one in filters],
            "n_highway": highways,
            "max_characters_per_token": 50,
            "activation": "relu",
        },
        "lstm": {
            "projection_dim": projected,
            "dim": cells,
            "n_layers": 2,
            "cell_clip": 3,
            "proj_clip": 3,
            "use_skip_connections": True,
        },
    }


@objectives.register("bidirectional")
@dataclass(frozen=True)
class Bidirectional:
    """Language models in both directions, with separate weights but one softmax over the vocabulary."""

    predicted: int = 30_000  # the most frequent words, which are predicted; 0: the whole vocabulary
    samples: int = 2048  # negative words of the sampled softmax in training; 0: the full softmax
    dropout: float = 0.1  # on the inputs of every layer and of the softmax

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "characters"
    scores_of: ClassVar[str] = ""
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(learning_rate=2e-3, batch=64, length=64, weight_decay=0.0)
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=2e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": bilm_size(64, 256, [(1, 16), (2, 16), (3, 32), (4, 64)], 1),
        "mini": bilm_size(128, 512, [(1, 32), (2, 32), (3, 64), (4, 128), (5, 128)], 1),
        "small": bilm_size(128, 1024, [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)], 1),
        "base": bilm_size(512, 4096, [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)], 2),
    }

    def __post_init__(self) -> None:
        if self.predicted < 0 or self.samples < 0 or not 0 <= self.dropout < 1:
            raise ConfigError(
                "these options of bidirectional are out of range",
                got=f"predicted {self.predicted}, samples {self.samples}, dropout {self.dropout}",
                expected="predicted and samples of at least 0, dropout from 0 to below 1",
            )

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a fresh network; `size` is in the format of AllenNLP's options.json."""
        bilm = fresh_bilm(BiLMShape.of(size, "size"), seed)
        return self._with_softmax(bilm, vocabulary, seed)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a network pre-trained here, with its vocabulary."""
        bilm, beside = open_bilm(folder)
        vocabulary = Vocabulary.open(folder)
        network = self._with_softmax(bilm, vocabulary, seed)
        head = {name: tensor for name, tensor in network.named_parameters() if name.startswith(HEAD)}
        if any(name not in beside or beside[name].shape != tensor.shape for name, tensor in head.items()):
            words = network.softmax.out_features
            return ContinuedNetwork(network, vocabulary, added=[f"a softmax over {words:,} words"], fresh=list(head))
        for name, tensor in head.items():
            tensor.data.copy_(beside[name])
        return ContinuedNetwork(network, vocabulary)

    def _with_softmax(self, bilm: BiLM, vocabulary: Vocabulary, seed: int) -> TrainedBiLM:
        words = min(self.predicted or vocabulary.size, vocabulary.size)
        return TrainedBiLM(bilm, torch.from_numpy(vocabulary.characters()), words, self.dropout, seed)

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut full rows across documents, between <S> and </S>, as the backbone reads a text; no state is carried."""
        return PackedRows(tokens, length, start=vocabulary.start, end=vocabulary.end)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Return "ids" and "labels" (B, T); input words that the softmax lacks have the label of the unknown word.

        With `samples`, also "drawn" (B, K): the negative words, the same for all rows, drawn roughly by frequency.
        """
        words = min(self.predicted or vocabulary.size, vocabulary.size)
        tensors = {"ids": rows, "labels": torch.where(rows < words, rows, vocabulary.unk)}
        if self.samples:
            tensors["drawn"] = log_uniform(self.samples, words, draw).expand(len(rows), -1)
        return Batch(tensors, predicted=2 * rows.shape[0] * (rows.shape[1] - 2), rows=len(rows))

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss of both directions over every word between the boundaries; sampled softmax in training."""
        assert isinstance(network, TrainedBiLM)
        forward, backward = network(batch.tensors["ids"])  # each (B, T, P)
        labels = batch.tensors["labels"][:, 1:-1].flatten()
        read = torch.stack([forward[:, :-2], backward[:, 2:]]).flatten(0, 2)  # (2 x B x (T - 2), P)
        labels = labels.repeat(2)
        drawn = batch.tensors.get("drawn") if network.training else None
        nats = network.nats(read, labels) if drawn is None else network.sampled_nats(read, labels, drawn[0])
        return Loss(nats / batch.predicted, nats.detach(), len(labels))

    def remarks(self, held: SplitTokens, vocabulary: Vocabulary) -> Sequence[str]:
        """Remark on the share of held-out words that the softmax lacks: the loss counts them as the unknown word."""
        words = min(self.predicted or vocabulary.size, vocabulary.size)
        others = float((held.ids >= words).mean())
        if not others:
            return []
        return [
            f"{100 * others:.2g} % of the held-out words are not among the {words:,} that are predicted; they count as "
            "one unknown word, so perplexity and bits per byte are lower than over all words"
        ]

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write an `elmo` folder; the softmax is stored with the network's weights."""
        assert isinstance(network, TrainedBiLM)
        head = {f"{HEAD}.{name}": tensor for name, tensor in network.softmax.state_dict().items()}
        save_bilm(network.bilm, folder, head)
        vocabulary.save(folder)


class TrainedBiLM(nn.Module):
    """A bidirectional language model with the softmax that both directions share."""

    def __init__(self, bilm: BiLM, letters: Tensor, words: int, share: float, seed: int):
        super().__init__()
        self.bilm, self.share = bilm, share
        self.letters = letters  # (V, characters) of every word; not a buffer: it need not be saved
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.softmax = nn.Linear(bilm.shape.lstm.projected, words)
        nn.init.constant_(self.softmax.bias, -math.log(words))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Ids (B, T) -> the states of both directions after reading each word: (B, T, P) twice."""
        words, places = torch.unique(ids, return_inverse=True)
        embedded = self.bilm.words(self.letters[words.cpu()].to(ids.device, torch.int64))[places]
        state = torch.cat([embedded, embedded], dim=-1)
        everywhere = Places.of(torch.ones_like(ids, dtype=torch.bool))
        for layer in self.bilm.layers:
            state = layer(dropout(state, self.share, self.training), everywhere)
        forward, backward = dropout(state, self.share, self.training).chunk(2, dim=-1)
        return forward, backward

    def nats(self, read: Tensor, labels: Tensor) -> Tensor:
        """(N, P), (N,) -> (): the sum of -log p(label), computed in chunks to limit memory without gradients."""
        at_once = max(1, LOGITS_AT_ONCE // self.softmax.out_features)
        parts = zip(torch.split(read, at_once), torch.split(labels, at_once), strict=True)
        total = [cross_entropy(self.softmax(rows).float(), own, reduction="sum") for rows, own in parts]
        return torch.stack(total).sum()

    def sampled_nats(self, read: Tensor, labels: Tensor, drawn: Tensor) -> Tensor:
        """Estimate `nats` with `drawn` words (K,) in place of all wrong ones (Bengio & Senécal 2003; Jean et al. 2015).

        The logit of a drawn word is lowered by the log of its expected count among them, so that the expected sum over
        the drawn words is that over all wrong words.
        """
        weight, bias, count = self.softmax.weight, self.softmax.bias, self.softmax.out_features
        expected = len(drawn) * torch.log1p(1 / (drawn + 1.0)) / math.log(count + 1)  # (K,)
        right = (read * weight[labels]).sum(dim=1) + bias[labels]  # (N,)
        wrong = linear(read, weight[drawn], bias[drawn] - expected.log())  # (N, K)
        wrong = wrong.masked_fill(labels[:, None] == drawn, NEVER)
        logits = torch.cat([right[:, None], wrong], dim=1).float()
        return cross_entropy(logits, torch.zeros_like(labels), reduction="sum")


def log_uniform(count: int, words: int, draw: torch.Generator) -> Tensor:
    """Draw (K,) words below `words`, word k with probability log((k + 2) / (k + 1)) / log(words + 1).

    That is about the frequency of the k-th most frequent word of a language.
    """
    drawn = torch.rand(count, generator=draw, dtype=torch.float64).mul(math.log(words + 1)).exp().sub(1).floor()
    return drawn.long().clamp(0, words - 1)
