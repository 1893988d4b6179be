"""AWD-LSTM: next-token prediction by a regularised LSTM, on streams of text, the state carried between steps (Merity
et al. 2017, arXiv:1708.02182); the first two stages of ULMFiT (Howard & Ruder 2018, arXiv:1801.06146)."""

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
SPREAD = 5.0  # tokens: standard deviation of the end of a step of varied length
WORDS = {"bptt": ("fixed", "varied"), "updates": ("adamw", "nt_asgd")}  # allowed values of an option
MOST_LIKELY = 40  # top-k of sampling


@dataclass(frozen=True)
class Drops:
    """Dropout probabilities; activations are dropped with one mask for all positions of a row."""

    embedding: float  # of whole words, in a whole pass
    input: float  # of the first layer's inputs
    hidden: float  # of activations between layers
    output: float  # of the decoder's inputs
    weight: float  # of the hidden-to-hidden weights


class LanguageModel(nn.Module):
    """The network with a decoder tied to its embedding; the decoder's only own parameter is a bias."""

    def __init__(self, shape: AwdLstmShape, learned: bool):
        super().__init__()
        self.learned = learned  # True if pretrained on other text
        self.network = AwdLstm(shape)
        self.decoder_bias = nn.Parameter(torch.zeros(shape.vocab_size))

    def states(self, ids: Tensor, carried: list[State], drops: Drops) -> tuple[Tensor, list[State]]:
        """Ids (B, T) and each layer's carried state, if any -> the last layer's output (B, T, D), and the new states.

        Dropout is active in training mode.
        """
        learning = self.training
        kept = dropout(torch.ones_like(self.decoder_bias), drops.embedding, learning)  # (V,)
        sequence = self.network.embedding(ids) * kept[ids][:, :, None]
        left = []
        for number, layer in enumerate(self.network.layers):
            assert isinstance(layer, LstmLayer)
            sequence = locked_dropout(sequence, drops.hidden if number else drops.input, learning)
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
    """Next-token prediction by an AWD-LSTM with a carried state.

    The five dropout probabilities are fastai's; ULMFiT multiplies them by one factor, larger for less text.
    """

    dropout: float = 1.0  # factor on the five dropout probabilities below
    drop_embedding: float = 0.02  # of whole words, in a whole pass
    drop_input: float = 0.25  # of the first layer's inputs, one mask for all positions
    drop_hidden: float = 0.15  # of activations between layers, likewise
    drop_output: float = 0.1  # of the decoder's inputs, likewise
    drop_weight: float = 0.2  # of the hidden-to-hidden weights, one mask per pass
    activation: float = 2.0  # weight of the penalty on the size of the last layer's states, after dropout
    slowness: float = 1.0  # weight of the penalty on the change of the last layer's states between positions
    bptt: str = "fixed"  # or "varied": steps differ in length, and end at other positions in every epoch
    updates: str = "adamw"  # or "nt_asgd", averaged SGD, which needs a learning rate near 30
    divisor: float = 2.6  # for a pretrained network: learning rate of a layer divided by that of the layer below

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
                    f"drop_{name} is out of range", got=f"{share:g}, dropout included", expected="0 to below 1"
                )
        if min(self.activation, self.slowness) < 0 or self.divisor <= 0:
            raise ConfigError(
                "penalties are 0 or more, and the divisor is above 0",
                got=f"activation {self.activation}, slowness {self.slowness}, divisor {self.divisor}",
            )

    @property
    def drops(self) -> Drops:
        """The five probabilities, times the factor `dropout`."""
        return Drops(**{one.name: self.dropout * getattr(self, f"drop_{one.name}") for one in fields(Drops)})

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a network with fresh weights; `size` has the fields of `AwdLstmShape` except `vocab_size`."""
        known = [one.name for one in fields(AwdLstmShape) if one.name != "vocab_size"]
        for name, value in size.items():
            if name not in known:
                raise UnknownName("size of an AWD-LSTM", name, known)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1", got=repr(value))
        model = LanguageModel(AwdLstmShape(vocabulary.size, **size), learned=False)
        model.network.draw(derive(seed, "network"))
        return model

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a folder that this objective wrote."""
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
        """Cut the tokens into parallel streams; the end token marks the end of a text."""
        streams = Streams(tokens, length)
        return VariedStreams(streams) if self.bptt == "varied" else streams

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Return "ids" (B, T + 1): all but the first are predicted, and all but the last are inputs."""
        return Batch({"ids": rows}, predicted=rows.shape[0] * (rows.shape[1] - 1), rows=len(rows))

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over every token but the first, plus the penalties on the last layer's states."""
        assert isinstance(network, LanguageModel)
        ids = batch.tensors["ids"]
        carried = _carried_states(batch.tensors, len(network.network.layers))
        states, left = network.states(ids[:, :-1], carried, self.drops)  # (B, T, D)
        read = locked_dropout(states, self.drops.output, network.training)
        decoder = network.network.embedding.weight
        nats = token_loss(read.flatten(0, 1), decoder, network.decoder_bias, ids[:, 1:].flatten())
        numbers = batch.predicted * states.shape[-1]  # elements of all states of the whole batch
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
        """Return AdamW or NT-ASGD on the trainable parameters; layer-wise rates if the network is pretrained."""
        assert isinstance(network, LanguageModel)
        parameters = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        rates = discriminative(network, self.divisor) if network.learned else {}
        settings = (recipe.learning_rate, recipe.weight_decay, recipe.clip)
        if self.updates == "nt_asgd":
            return NtAsgd(parameters, *settings, rates=rates)
        return FlatAdamW(parameters, *settings, rates=rates, betas=(BETAS[0], recipe.beta))

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write the backbone; its tokenizer puts an end token before each text of an input, as in the streams."""
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
        """Sample token by token from the `MOST_LIKELY` ones, up to the end token."""
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


def locked_dropout(sequence: Tensor, share: float, learning: bool) -> Tensor:
    """Apply dropout to (B, T, D) with one mask for all positions of a row (Gal & Ghahramani 2016, arXiv:1512.05287)."""
    if not learning or not share:
        return sequence
    return sequence * dropout(torch.ones_like(sequence[:, :1]), share)


def discriminative(network: LanguageModel, divisor: float) -> dict[str, float]:
    """Return parameter -> learning-rate factor: 1 for the decoder and its tied embedding, less for each lower layer."""
    layers = len(network.network.layers)
    shares = {f"network.layers.{number}.": divisor ** (number - layers) for number in range(layers)}
    return {
        name: next((share for prefix, share in shares.items() if name.startswith(prefix)), 1.0)
        for name, _ in network.named_parameters()
    }


def _carried_states(tensors: Mapping[str, Tensor], layers: int) -> list[State]:
    """Return each layer's state from the previous step; empty if there was none."""
    if "hidden.0" not in tensors:
        return []
    return [(tensors[f"hidden.{number}"], tensors[f"cell.{number}"]) for number in range(layers)]


@dataclass(frozen=True)
class VariedStreams:
    """Streams whose steps end within a few tokens of a multiple of T, and begin at other positions in every epoch.

    A gradient reaches back to the beginning of its step only: with fixed cuts, the tokens after a cut would never be
    trained on the text before it (Merity et al. 2017, section 5).
    """

    streams: Streams

    @property
    def content(self) -> int:
        """The approximate number of ids of a row that are predicted."""
        return self.streams.content

    def __len__(self) -> int:
        """The approximate number of rows of an epoch."""
        return len(self.streams)

    def steps(self, batch: int) -> int:
        """Return the steps of an epoch: one less than with fixed cuts, as the beginning varies; a single one stays."""
        even = self.streams.steps(batch)
        return max(even - 1, min(even, 1))

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return (B, T' + 1) int64, T' near T. Raises `DataError` for a corpus too small for a step."""
        steps = self.steps(batch)
        if self.streams.steps(batch) <= 1:
            return self.streams.rows(seed, step, batch)
        epoch, number = divmod(step, steps)
        begin, end = (self._cut(seed, epoch, cut, steps) for cut in (number, number + 1))
        return self.streams.window(begin, end - begin, batch)

    def begins(self, step: int, batch: int) -> bool:
        """Return whether this step begins an epoch."""
        return step % max(1, self.steps(batch)) == 0

    def _cut(self, seed: int, epoch: int, number: int, steps: int) -> int:
        """Return the position at which step `number` of an epoch begins; the ends of the epoch are not varied."""
        length = self.streams.length
        even = derive(seed, f"beginning of epoch {epoch}") % length + number * length
        if number in (0, steps):
            return even
        moved = np.random.default_rng([derive(seed, f"cuts of epoch {epoch}"), number]).normal(0, SPREAD)
        return even + round(float(np.clip(moved, -length / 4, length / 4)))
