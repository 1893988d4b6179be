"""ELMo's network: a character CNN, and above it a language model in each direction (Peters et al. 2018,
arXiv:1802.05365)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graftwork.errors import ConfigError
from graftwork.nn.activation import ACTIVATIONS
from graftwork.nn.bilstm import BiLSTM, LSTMShape, LstmState, Places
from graftwork.nn.character_cnn import CharacterCNN, CharacterShape
from graftwork.nn.character_ids import SYMBOLS, WORD_LENGTH


@dataclass(frozen=True)
class BiLMShape:
    """The sizes of a bidirectional language model."""

    characters: CharacterShape
    lstm: LSTMShape
    layers: int  # L
    skip: bool  # every layer but the first adds its input to its output

    @classmethod
    def of(cls, options: Mapping[str, Any], where: str) -> BiLMShape:
        """Read the parts "char_cnn" and "lstm" of AllenNLP's options.json, or of our config.json.

        Raises `ConfigError` for options that are missing, or that no published network has.
        """
        try:
            spelling, lstm = options["char_cnn"], options["lstm"]
            shape = cls(
                CharacterShape(
                    width=int(spelling["embedding"]["dim"]),
                    filters=tuple((int(span), int(count)) for span, count in spelling["filters"]),
                    highways=int(spelling["n_highway"]),
                    activation=str(spelling["activation"]),
                ),
                LSTMShape(
                    projected=int(lstm["projection_dim"]),
                    cells=int(lstm["dim"]),
                    cell_clip=float(lstm.get("cell_clip") or 0.0),
                    projection_clip=float(lstm.get("proj_clip") or 0.0),
                ),
                layers=int(lstm["n_layers"]),
                skip=bool(lstm.get("use_skip_connections", False)),
            )
            symbols, longest = int(spelling.get("n_characters", SYMBOLS)), int(spelling["max_characters_per_token"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ConfigError(
                "these are not the sizes of an ELMo network",
                where=where,
                got=f"{type(error).__name__}: {error}",
                expected="char_cnn (embedding.dim, filters, n_highway, activation, max_characters_per_token) and lstm "
                "(projection_dim, dim, n_layers)",
            ) from None
        shape._check(symbols, longest, where)
        return shape

    def _check(self, symbols: int, longest: int, where: str) -> None:
        spans = [span for span, _ in self.characters.filters]
        activation = self.characters.activation
        wrong = {
            f"n_characters {symbols}": symbols not in (SYMBOLS, SYMBOLS - 1),  # one less if padding has no row
            f"max_characters_per_token {longest}": longest != WORD_LENGTH,
            f"filters of spans {spans}": not spans or not 0 < min(spans) <= max(spans) <= WORD_LENGTH,
            f"activation {activation!r}": activation not in ACTIVATIONS,
            f"n_layers {self.layers}": self.layers < 1,
        }
        for got, is_wrong in wrong.items():
            if is_wrong:
                raise ConfigError(
                    "no ELMo network has such sizes",
                    where=where,
                    got=got,
                    do="take options.json and weights of one published network",
                )

    @property
    def options(self) -> dict[str, Any]:
        """The options in AllenNLP's format."""
        letters, lstm = self.characters, self.lstm
        return {
            "char_cnn": {
                "embedding": {"dim": letters.width},
                "filters": [list(one) for one in letters.filters],
                "n_highway": letters.highways,
                "n_characters": SYMBOLS,
                "max_characters_per_token": WORD_LENGTH,
                "activation": letters.activation,
            },
            "lstm": {
                "projection_dim": lstm.projected,
                "dim": lstm.cells,
                "n_layers": self.layers,
                "cell_clip": lstm.cell_clip,
                "proj_clip": lstm.projection_clip,
                "use_skip_connections": self.skip,
            },
        }


class BiLM(nn.Module):
    """ELMo's network: the character CNN's output, duplicated, and L layers of two directions each."""

    def __init__(self, shape: BiLMShape):
        super().__init__()
        self.shape = shape
        self.words = CharacterCNN(shape.characters, shape.lstm.projected)
        self.layers = nn.ModuleList(BiLSTM(shape.lstm, shape.skip and place > 0) for place in range(shape.layers))

    def embed(self, characters: Tensor) -> Tensor:
        """Compute the first layer's input, the same for both directions: (S, T, symbols) -> (S, T, 2P)."""
        words: Tensor = self.words(characters)
        return torch.cat([words, words], dim=-1)

    def forward(self, characters: Tensor, mask: Tensor) -> list[Tensor]:
        """Map (S, T, symbols), mask (S, T) True at a real token, to L + 1 states (S, T, 2P); stateless."""
        return self._run(characters, mask, None)[0]

    def resume(
        self, characters: Tensor, mask: Tensor, states: Sequence[LstmState] | None
    ) -> tuple[list[Tensor], list[LstmState]]:
        """Like `forward`, but from each layer's state after the last batch, as AllenNLP does; None at first.

        Row i continues where the last row i stopped, in both directions, the second from the end.
        """
        return self._run(characters, mask, [] if states is None else states)

    def _run(
        self, characters: Tensor, mask: Tensor, states: Sequence[LstmState] | None
    ) -> tuple[list[Tensor], list[LstmState]]:
        places, left, after = Places.of(mask), [self.embed(characters)], []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, BiLSTM)
            if states is None:
                left.append(layer(left[-1], places))
                continue
            sequence, state = layer.resume(left[-1], places, states[place] if states else layer.zero(left[-1]))
            left.append(sequence)
            after.append(state)
        return left, after


def fresh_bilm(shape: BiLMShape, seed: int) -> BiLM:
    """Build a network with weights drawn from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BiLM(shape)
