"""A vocabulary: encoding of text as ids, the special ids, and the files for transformers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from graftwork.errors import ConfigError
from graftwork.io.files import digest, write_bytes, write_json
from graftwork.nn.character_ids import character_ids, sentence_end_ids, sentence_start_ids
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_json import checked_json
from graftwork.pretrained.tokenizer_file import read_tokenizer

TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"
CLASS = "PreTrainedTokenizerFast"  # of transformers
NAMES = {"pad": "pad_token", "unk": "unk_token", "start": "cls_token", "end": "sep_token", "mask": "mask_token"}
DEFAULT_SIZE = 16_000  # tokens


@dataclass(frozen=True)
class Specials:
    """The special tokens as strings; they represent no text."""

    pad: str
    unk: str
    start: str
    end: str
    mask: str | None
    extra: tuple[str, ...] = ()  # an objective's own: T5's sentinels

    @property
    def listed(self) -> list[str]:
        """The distinct special tokens."""
        named = (self.pad, self.unk, self.start, self.end, self.mask, *self.extra)
        return list(dict.fromkeys(token for token in named if token is not None))


BERT = Specials("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = Specials("<pad>", "<unk>", "<s>", "</s>", "<mask>")
ELMO = Specials("<pad>", "<UNK>", "<S>", "</S>", None)


@dataclass(frozen=True)
class TokenizerKind:
    """A registered tokenizer: its training function and defaults.

    `train(texts, size, lowercase)` returns a vocabulary of at most `size` tokens, special ones included, and fewer if
    the texts support no more. Equal texts in equal order give an identical vocabulary. It may iterate over the texts
    several times.
    """

    train: Callable[[Iterable[str], int, bool], Vocabulary]
    lowercase: bool  # default
    size: int = DEFAULT_SIZE  # default, in tokens


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer of the `tokenizers` library and the roles of its special tokens. Ids are below `size`."""

    tokenizer: Tokenizer
    specials: Specials

    def __post_init__(self) -> None:
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True  # "[MASK]" in a text is encoded as text

    @cached_property
    def size(self) -> int:
        """The number of tokens, special ones included: rows of the embedding."""
        return int(self.tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, without special tokens."""
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids, without special tokens."""
        return str(self.tokenizer.decode(list(ids))).strip()

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of the ids as written in the vocabulary."""
        return [self.tokenizer.id_to_token(int(one)) or "" for one in ids]

    def id_of(self, token: str) -> int:
        """Return the id of a token. Raises `ConfigError` if the vocabulary lacks it."""
        found = self.tokenizer.token_to_id(token)
        if found is None:
            raise ConfigError(
                f"the vocabulary has no token {token!r}",
                got=f"{self.size:,} tokens",
                do="take a tokenizer that was trained for this objective",
            )
        return int(found)

    @property
    def pad(self) -> int:
        """The id of the padding token; never predicted."""
        return self.id_of(self.specials.pad)

    @property
    def unk(self) -> int:
        """The id of the unknown token."""
        return self.id_of(self.specials.unk)

    @property
    def start(self) -> int:
        """The id of [CLS] or <s>, which begins a row."""
        return self.id_of(self.specials.start)

    @property
    def end(self) -> int:
        """The id of [SEP] or </s>, which ends a document, in a row and in the tokenised corpus."""
        return self.id_of(self.specials.end)

    @property
    def mask(self) -> int | None:
        """The id of [MASK]; None if the vocabulary has none."""
        return None if self.specials.mask is None else self.id_of(self.specials.mask)

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the special tokens, in order."""
        return tuple(sorted(self.id_of(token) for token in self.specials.listed))

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """(size,) bool, True if a token continues the word of the token before it; used for whole-word masking."""
        decoder = json.loads(self.tokenizer.to_str()).get("decoder") or {"type": "none"}
        tokens = self.tokens(range(self.size))
        match decoder["type"]:
            case "WordPiece":
                inside = np.array([token.startswith(decoder["prefix"]) for token in tokens])
            case "ByteLevel":
                inside = np.array([not token.startswith("Ġ") for token in tokens])
            case "Metaspace":
                inside = np.array([not token.startswith(decoder["replacement"]) for token in tokens])
            case _:
                inside = np.zeros(self.size, bool)
        inside[list(self.special_ids)] = False
        return inside

    def characters(self) -> NDArray[np.int16]:
        """Return (size, 50): every token's character ids for ELMo; start and end have special ids, padding zeros."""
        table = np.array([character_ids(token) for token in self.tokens(range(self.size))], np.int16)
        table[self.pad] = 0
        table[self.start], table[self.end] = sentence_start_ids(), sentence_end_ids()
        return table

    @cached_property
    def revision(self) -> str:
        """sha256 of everything that determines the ids."""
        return digest([json.loads(self.tokenizer.to_str()), self.specials.listed])

    def save(self, folder: Path, max_length: int | None = None) -> None:
        """Write tokenizer.json and tokenizer_config.json for transformers; `max_length` in tokens."""
        own = self.specials
        config: dict[str, Any] = {
            "tokenizer_class": CLASS,
            "clean_up_tokenization_spaces": False,
            "bos_token": own.start,
            "eos_token": own.end,
        }
        config |= {name: token for part, name in NAMES.items() if (token := getattr(own, part)) is not None}
        if own.extra:
            config["additional_special_tokens"] = list(own.extra)
        if max_length is not None:
            config["model_max_length"] = max_length
        write_bytes(folder / TOKENIZER, self.tokenizer.to_str(pretty=True).encode())
        write_json(folder / CONFIG, config)

    @classmethod
    def open(cls, folder: Path) -> Vocabulary:
        """Open the vocabulary of a folder, ours or transformers'. Raises `StorageError` or `ConfigError`."""
        path = model_file(folder, CONFIG)
        config = checked_json(path) if path.is_file() else {}
        if config.get("tokenizer_class") == CLASS and all(config.get(NAMES[part]) for part in ("pad", "start", "end")):
            tokenizer = read_tokenizer(model_file(folder, TOKENIZER))
            own: dict[str, Any] = {part: config.get(name) for part, name in NAMES.items()}
            own["extra"] = tuple(config.get("additional_special_tokens", ()))
            return cls(tokenizer, Specials(**(own | {"unk": own["unk"] or own["end"]})))
        return _of_transformers(folder)


def _of_transformers(folder: Path) -> Vocabulary:
    from graftwork.pretrained.tokenizer_folder import open_tokenizer
    from graftwork.pretrained.transformers_errors import transformers_errors

    with transformers_errors(folder):
        outer = open_tokenizer(folder)
    tokenizer, end = Tokenizer.from_str(outer.backend_tokenizer.to_str()), outer.sep_token or outer.eos_token
    if end is not None:
        start = outer.cls_token or outer.bos_token or end
        return Vocabulary(
            tokenizer, Specials(outer.pad_token or end, outer.unk_token or end, start, end, outer.mask_token)
        )
    for own in (BERT, ROBERTA):  # a folder without tokenizer_config.json does not record the roles of its tokens
        if all(tokenizer.token_to_id(token) is not None for token in own.listed):
            return Vocabulary(tokenizer, own)
    raise ConfigError("the tokenizer has no end-of-text token", where=str(folder), do="choose another backbone")


def with_frame_tokens(tokenizer: Tokenizer, specials: Specials) -> Vocabulary:
    """Return a vocabulary whose tokenizer, on request, adds start and end to a text and an end between two texts."""
    tokenizer.add_special_tokens(specials.listed)
    start, end = specials.start, specials.end
    tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B:1 {end}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (start, end)],
    )
    return Vocabulary(tokenizer, specials)


def with_end_token(learned: Vocabulary, extra: Sequence[str] = ()) -> Vocabulary:
    """Return a copy with the special tokens `extra`; its tokenizer, on request, adds the end token alone to a text.

    Encoder-decoders such as T5 and Marian have no start token; their configuration says which token starts the decoder.
    """
    tokenizer, own = Tokenizer.from_str(learned.tokenizer.to_str()), learned.specials
    tokenizer.add_special_tokens(list(extra))
    tokenizer.post_processor = TemplateProcessing(
        single=f"$A {own.end}",
        pair=f"$A {own.end} $B {own.end}",
        special_tokens=[(own.end, tokenizer.token_to_id(own.end))],
    )
    return Vocabulary(tokenizer, Specials(own.pad, own.unk, own.end, own.end, own.mask, tuple(extra)))
