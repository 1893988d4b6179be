"""AWD-LSTM: the next token by a regularised LSTM, text read in streams and the state carried from step to step (Merity
et al. 2017, arXiv:1708.02182), the first two stages of ULMFiT (Howard & Ruder 2018, arXiv:1801.06146)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from graftwork.backbones.awd_lstm import MODEL_TYPE, OF_DECODER, load_network, read_shape
from graftwork.errors import ConfigError, UnknownName
from graftwork.io.files import write_json, write_tensors
from graftwork.nn.lstm_stack import AwdLstm, AwdLstmShape, LstmLayer, State
from graftwork.nn.token_loss import token_loss
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.nt_asgd import NtAsgd
from graftwork.pretrain.objective import Batch, ContinuedNetwork, InOrder, Loss, Optimiser, PretrainingRecipe
from graftwork.pretrain.packing import Streams
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives
from graftwork.train.optimiser import BETAS, FlatAdamW
from graftwork.train.seeds import derive

BIAS = f"{OF_DECODER}bias"
SPREAD = 5.0  # tokens: standard deviation of where a step of varied length ends
WORDS = {"bptt": ("fixed", "varied"), "updates": ("adamw", "nt_asgd")}  # that an option may be
MOST_LIKELY = 40  # tokens that a sample draws from


@dataclass(frozen=True)
class Drops:
    """Shares that are dropped while it trains, each with one mask for all positions of a step but `weight`."""

    embedding: float  # of the words, everywhere in a pass
    input: float  # of the numbers that enter the first layer
    hidden: float  # of those between two layers
    output: float  # of those that the decoder reads
    weight: float  # of the weights from state to state


class LanguageModel(nn.Module):
    """The network, and a decoder tied to its embedding: all it has of its own is a bias."""

    def __init__(self, shape: AwdLstmShape, learned: bool):
        super().__init__()
        self.learned = learned  # on other text, before it came here
        self.network = AwdLstm(shape)
        self.decoder_bias = nn.Parameter(torch.zeros(shape.vocab_size))

    def states(self, ids: Tensor, carried: list[State], drops: Drops) -> tuple[Tensor, list[State]]:
        """(B, T) ids and what each layer carries, if it does -> the last layer's output (B, T, D), and what is left.

        Dropout is the training mode's.
        """
        learning = self.training
        kept = dropout(torch.ones_like(self.decoder_bias), drops.embedding, learning)  # (V,)
        sequence = self.network.embedding(ids) * kept[ids][:, :, None]
        left = []
        for number, layer in enumerate(self.network.layers):
            assert isinstance(layer, LstmLayer)
            sequence = locked(sequence, drops.hidden if number else drops.input, learning)
            weight_hh = dropout(layer.weight_hh, drops.weight, learning)
            sequence, state = layer.run(sequence, carried[number] if carried else layer.start(sequence), weight_hh)
            left.append(state)
        return sequence, left

    def logits(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        return linear(states, self.network.embedding.weight, self.decoder_bias)


@objectives.register("awd_lstm")
@dataclass(frozen=True)
class AwdLstmObjective:
    """Every token is predicted from those before it, as far back as the state remembers.

    The five shares of dropout are fastai's; ULMFiT multiplies them by one number, larger where there is less text.
    """

    dropout: float = 1.0  # factor on the five shares below
    drop_embedding: float = 0.02  # share of the words that a pass does not see
    drop_input: float = 0.25  # of the numbers that enter the first layer, the same at every position
    drop_hidden: float = 0.15  # of those between two layers, likewise
    drop_output: float = 0.1  # of those that the decoder reads, likewise
    drop_weight: float = 0.2  # of the weights from state to state, the same for a whole step
    activation: float = 2.0  # penalty on the size of the last states that the decoder reads
    slowness: float = 1.0  # penalty on how much the last layer's states change from position to position
    bptt: str = "fixed"  # or "varied": steps differ in length, and end elsewhere in every epoch
    updates: str = "adamw"  # or "nt_asgd", averaged SGD: it wants a rate near 30
    divisor: float = 2.6  # of a network that has learned before: a layer's rate is that of the one above, by this

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "bpe"
    scores_of: ClassVar[str] = ""
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(
        learning_rate=3e-3, batch=64, length=70, warm_up=0.1, beta=0.99, clip=0.25
    )
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, schedule="slanted")
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"embedding_size": 96, "hidden_size": 192, "layers": 3},
        "small": {"embedding_size": 256, "hidden_size": 640, "layers": 3},
        "base": {"embedding_size": 400, "hidden_size": 1152, "layers": 3},
    }

    def __post_init__(self) -> None:
        for name, words in WORDS.items():
            if getattr(self, name) not in words:
                raise UnknownName(name, getattr(self, name), words)
        for name, share in asdict(self.drops).items():
            if not 0 <= share < 1:
                raise ConfigError(
                    f"this much of the {name} can't be dropped", got=f"{share:g}", expected="0 to below 1"
                )
        if min(self.activation, self.slowness) < 0 or self.divisor <= 0:
            raise ConfigError(
                "penalties are 0 or more, and the divisor is above 0",
                got=f"activation {self.activation}, slowness {self.slowness}, divisor {self.divisor}",
            )

    @property
    def drops(self) -> Drops:
        """The five shares."""
        return Drops(**{one.name: self.dropout * getattr(self, f"drop_{one.name}") for one in fields(Drops)})

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Fresh weights; `size` has `AwdLstmShape`'s fields but the vocabulary's."""
        known = [one.name for one in fields(AwdLstmShape) if one.name != "vocab_size"]
        for name, value in size.items():
            if name not in known:
                raise UnknownName("size of an AWD-LSTM", name, known)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} makes no network", got=repr(value), expected="a number from 1 on")
        model = LanguageModel(AwdLstmShape(vocabulary.size, **size), learned=False)
        model.network.draw(derive(seed, "network"))
        return model

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """A folder that this objective wrote."""
        model = LanguageModel(read_shape(folder), learned=True)
        bias = load_network(model.network, folder).get(BIAS)
        if bias is None:
            return ContinuedNetwork(
                model, Vocabulary.open(folder), added=["a bias of the decoder"], fresh=["decoder_bias"]
            )
        with torch.no_grad():
            model.decoder_bias.copy_(bias)
        return ContinuedNetwork(model, Vocabulary.open(folder))

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> InOrder:
        """Streams side by side, the ends of texts marked by the end token."""
        streams = Streams(tokens, length)
        return Varied(streams) if self.bptt == "varied" else streams

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """(B, T + 1) "ids": all but the first are predicted, the last is only that."""
        return Batch({"ids": rows}, predicted=rows.shape[0] * (rows.shape[1] - 1), rows=len(rows))

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Over every token but the first; in training with the penalties on the last layer's states."""
        assert isinstance(network, LanguageModel)
        ids = batch.tensors["ids"]
        carried = _carried(batch.tensors, len(network.network.layers))
        states, left = network.states(ids[:, :-1], carried, self.drops)  # (B, T, D)
        read = locked(states, self.drops.output, network.training)
        decoder = network.network.embedding.weight
        nats = token_loss(read.flatten(0, 1), decoder, network.decoder_bias, ids[:, 1:].flatten())
        numbers = batch.predicted * states.shape[-1]  # of all states of the whole batch
        changes = (states[:, 1:] - states[:, :-1]).float()
        penalties = {
            "activation": self.activation * read.float().square().sum() / numbers,
            "slowness": self.slowness * changes.square().sum() / max(1, numbers - batch.rows * states.shape[-1]),
        }
        return Loss(
            total=nats / batch.predicted + sum(penalties.values()),
            nats=nats.detach(),
            predicted=ids[:, 1:].numel(),
            terms={name: penalty.detach() for name, penalty in penalties.items()},
            state={
                f"{part}.{number}": tensor.detach()
                for number, state in enumerate(left)
                for part, tensor in zip(("hidden", "cell"), state, strict=True)
            },
        )

    def optimiser(self, network: nn.Module, recipe: PretrainingRecipe) -> Optimiser:
        """AdamW or NT-ASGD on whatever learns, each layer at its own rate."""
        assert isinstance(network, LanguageModel)
        parameters = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        rates = discriminative(network, self.divisor) if network.learned else {}
        settings = (recipe.learning_rate, recipe.weight_decay, recipe.clip)
        if self.updates == "nt_asgd":
            return NtAsgd(parameters, *settings, rates=rates)
        return FlatAdamW(parameters, *settings, rates=rates, betas=(BETAS[0], recipe.beta))

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """A text is read behind an end token, as in the streams, and the second of a pair behind another."""
        assert isinstance(network, LanguageModel)
        tokenizer, end = Tokenizer.from_str(vocabulary.tokenizer.to_str()), vocabulary.specials.end
        tokenizer.post_processor = TemplateProcessing(
            single=f"{end} $A", pair=f"{end} $A {end} $B:1", special_tokens=[(end, vocabulary.end)]
        )
        shape = network.network.shape
        Vocabulary(tokenizer, vocabulary.specials).save(folder, max_length=shape.max_length)
        write_tensors(folder / "model.safetensors", {**network.network.state_dict(), BIAS: network.decoder_bias})
        write_json(folder / "config.json", {"model_type": MODEL_TYPE, **asdict(shape)})

    @torch.no_grad()
    def sample(self, network: nn.Module, vocabulary: Vocabulary, prompt: str, length: int, seed: int) -> str:
        """Drawn token by token from the most likely ones; ends where the network ends the text."""
        assert isinstance(network, LanguageModel)
        training, device = network.training, network.decoder_bias.device
        network.eval()
        draw = torch.Generator().manual_seed(seed)
        ids = [vocabulary.end, *vocabulary.encode([prompt])[0]]
        states, carried = network.states(torch.tensor([ids], device=device), [], self.drops)
        for _ in range(length):
            values, tokens = network.logits(states[0, -1]).float().cpu().topk(min(MOST_LIKELY, vocabulary.size))
            ids.append(int(tokens[torch.multinomial(values.softmax(dim=0), 1, generator=draw)]))
            if ids[-1] == vocabulary.end:
                break
            states, carried = network.states(torch.tensor([ids[-1:]], device=device), carried, self.drops)
        network.train(training)
        return vocabulary.decode(ids)


def locked(sequence: Tensor, share: float, learning: bool) -> Tensor:
    """(B, T, D) with the same numbers dropped at every position of a row (Gal & Ghahramani 2016, arXiv:1512.05287)."""
    if not learning or not share:
        return sequence
    return sequence * dropout(torch.ones_like(sequence[:, :1]), share)


def discriminative(network: LanguageModel, divisor: float) -> dict[str, float]:
    """Parameter -> share of the rate: 1 for the decoder, which the embedding is, and less with every layer below it."""
    layers = len(network.network.layers)
    shares = {f"network.layers.{number}.": divisor ** (number - layers) for number in range(layers)}
    return {
        name: next((share for prefix, share in shares.items() if name.startswith(prefix)), 1.0)
        for name, _ in network.named_parameters()
    }


def _carried(tensors: Mapping[str, Tensor], layers: int) -> list[State]:
    """What the step before left to each layer; nothing where there was none."""
    if "hidden.0" not in tensors:
        return []
    return [(tensors[f"hidden.{number}"], tensors[f"cell.{number}"]) for number in range(layers)]


@dataclass(frozen=True)
class Varied:
    """Streams whose steps end within a few tokens of a multiple of T, and begin elsewhere in every epoch.

    A gradient reaches back to the beginning of its step only: were that always the same token, tokens behind it would
    never learn from what is before it (Merity et al. 2017, section 5).
    """

    streams: Streams

    @property
    def content(self) -> int:
        """Ids of a row that are predicted, about."""
        return self.streams.content

    def __len__(self) -> int:
        """Rows of an epoch, about."""
        return len(self.streams)

    def steps(self, batch: int) -> int:
        """Steps of an epoch: where there are several, one less than of even streams, for room to begin elsewhere."""
        even = self.streams.steps(batch)
        return max(even - 1, min(even, 1))

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """(B, T' + 1) int64, T' near T. Raises `DataError` for a corpus too small for a step."""
        steps = self.steps(batch)
        if self.streams.steps(batch) <= 1:
            return self.streams.rows(seed, step, batch)
        epoch, number = divmod(step, steps)
        begin, end = (self._cut(seed, epoch, cut, steps) for cut in (number, number + 1))
        return self.streams.window(begin, end - begin, batch)

    def begins(self, step: int, batch: int) -> bool:
        """Whether this step begins an epoch."""
        return step % max(1, self.steps(batch)) == 0

    def _cut(self, seed: int, epoch: int, number: int, steps: int) -> int:
        """Where step `number` of an epoch begins; the last ends where it would in even streams."""
        length = self.streams.length
        even = derive(seed, f"beginning of epoch {epoch}") % length + number * length
        if number in (0, steps):
            return even
        moved = np.random.default_rng([derive(seed, f"cuts of epoch {epoch}"), number]).normal(0, SPREAD)
        return even + round(float(np.clip(moved, -length / 4, length / 4)))
