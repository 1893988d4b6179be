"""Loading of a frozen Whisper with its decoder, which transcribes or translates recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from torch import nn
from transformers import AutoModelForSpeechSeq2Seq
from transformers.models.whisper.tokenization_whisper import TO_LANGUAGE_CODE

from graftwork.core.writing import Instruction, no_tags
from graftwork.errors import ConfigError
from graftwork.pretrained.chained_network import ChainedBackbone
from graftwork.pretrained.language_tags import language_missing, unknown_language
from graftwork.pretrained.load_folder import tokenizer_of
from graftwork.pretrained.load_media import WHISPER, ReadNetwork, of_whisper
from graftwork.pretrained.load_seq2seq import (
    modest_configuration,
    special_tokens,
    stated_of,
    whole_network,
    writing_backbone,
)
from graftwork.pretrained.model_folder import GENERATION, locate
from graftwork.pretrained.seq2seq import Seq2SeqBackbone, Seq2SeqLayout, SpecialTokens
from graftwork.pretrained.transformers_errors import transformers_errors
from graftwork.pretrained.whisper_encoder import WHISPER_ENCODER

LEAD = " "  # Whisper writes a space before the first word
ENGLISH = "en"  # the language that it translates into


class WhisperFamily:
    """A `BackboneFamily` and `WritingFamily` for Whisper."""

    writes: Literal[True] = True
    model_types = (WHISPER,)

    def __init__(self, layout: Seq2SeqLayout):
        self.layout = layout

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> Seq2SeqBackbone:
        """Load a folder or hub name.

        Raises `StorageError` for weights that are missing, pickled or corrupt, `IncompatibleModule` for incomplete
        ones, `ConfigError` where the folder does not say how sounds are read or texts begin.
        """
        folder = locate(source)
        with transformers_errors(folder):
            config = modest_configuration(folder)
            tokenizer, pad, _ = tokenizer_of(folder, self.layout.writing)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            speaks = Speaks(special_tokens(folder, config, tokenizer, pad), folder, config.vocab_size)
            module = whole_network(AutoModelForSpeechSeq2Seq, folder, config, random_seed, bf16)
        module.eval().requires_grad_(False)
        part: Any = module.get_submodule(self.layout.encoder)
        encoder = of_whisper(ReadNetwork(folder, f"hf:{source}", part, WHISPER_ENCODER, random_seed))
        read_by = partial(_as_encoder, encoder)
        return writing_backbone(
            encoder, read_by, module, tokenizer, self.layout, speaks.special_tokens(), speaks.instructed
        )


def _as_encoder(opened: ChainedBackbone, module: nn.Module) -> ChainedBackbone:
    """Return a backbone like `opened` with the encoder `module`."""
    return ChainedBackbone(opened.card, module, opened.reader, opened.architecture)


@dataclass(frozen=True)
class Speaks:
    """The tokens that set the language of a recording for Whisper, and whether to transcribe or translate it."""

    special: SpecialTokens  # without those tokens
    folder: Path
    vocabulary: int

    def special_tokens(self, language: str | None = None, task: str | None = None) -> SpecialTokens:
        """Return the special tokens for this language and task, by default for those that the folder states."""
        return spoken_tokens(self.special, self.folder, self.vocabulary, language, task)

    def instructed(self, backbone: Seq2SeqBackbone, given: Instruction) -> Seq2SeqBackbone:
        """Return the backbone set to the spoken language; it translates if the target is English and the source is not.

        Raises `ConfigError` for a source prefix, an unknown language, or a target language that Whisper can't write.
        """
        name = backbone.card.id
        if given.source_prefix:
            raise ConfigError(
                "this backbone reads sounds, before which no text can be",
                where=name,
                got=f"source_prefix {given.source_prefix!r}",
                do="leave source_prefix out",
            )
        if not given.languages:
            return backbone
        stated = stated_of(self.folder)
        known = [tag.removeprefix("<|").removesuffix("|>") for tag in stated.get("lang_to_id") or {}]
        if not known:
            raise no_tags(name, given)
        if given.source_language is None:
            raise language_missing(given, "that of the sound and that of the text", "de", name)
        source, target = _code(given.source_language), _code(given.target_language or given.source_language)
        if source not in known:
            raise unknown_language("source_language", given.source_language, known, name)
        if target not in (source, ENGLISH):
            raise ConfigError(
                "Whisper writes the language that it hears, or English",
                where=name,
                got=given.languages,
                expected=f"target_language {source}" + (f" or {ENGLISH}" if source != ENGLISH else ""),
                do="leave target_language out",
            )
        special = self.special_tokens(source, "transcribe" if target == source else "translate")
        before = backbone.special
        longer = len(special.start) - len(before.start) - bool(before.languages)
        return replace(backbone, special=special, most=backbone.most and backbone.most - longer, untold=backbone)


def spoken_tokens(
    special: SpecialTokens, folder: Path, vocabulary: int, language: str | None = None, task: str | None = None
) -> SpecialTokens:
    """Return `special` with start tokens that set language and task, and turn timestamps off.

    The order of precedence is that of transformers' `generate`: the given language and task, `language` and `task` of
    generation_config.json, its `forced_decoder_ids`, and last the likeliest language of each recording. Raises
    `ConfigError` for values that are not token ids.
    """
    stated = stated_of(folder)

    def numbers(name: str) -> dict[str, int]:
        table = stated.get(name)
        told = table if isinstance(table, Mapping) else {}
        return {key: _token(one, folder, name, vocabulary) for key, one in told.items()}

    known, tasks = numbers("lang_to_id"), numbers("task_to_id")
    language, task = language or stated.get("language"), task or stated.get("task")
    forced: list[int | None] = []
    if language is None and task is None:
        pairs = stated.get("forced_decoder_ids") or []
        if not all(isinstance(pair, list) and len(pair) == 2 and pair[0] == n for n, pair in enumerate(pairs, 1)):
            raise _not_understood(folder, "forced_decoder_ids", pairs, "[[1, token], [2, token], …]")
        forced = [None if one is None else _token(one, folder, "forced_decoder_ids", vocabulary) for _, one in pairs]
    begun: list[int] = []
    if language is not None:
        begun = [_named(known, f"<|{_code(language)}|>", folder, "language")]
    elif forced[:1] not in ([], [None]):
        begun = [token for token in forced[:1] if token is not None]
    begun += [token for token in forced[1:] if token is not None]
    if task is not None or (language is not None and tasks):
        begun.append(_named(tasks, task or "transcribe", folder, "task"))
    times = stated.get("no_timestamps_token_id")
    if times is not None and times not in begun[-1:]:
        begun.append(_token(times, folder, "no_timestamps_token_id", vocabulary))
    detected = tuple(known.values()) if language is None and forced[:1] in ([], [None]) else ()
    return replace(special, start=(*special.start, *begun), languages=detected, lead=LEAD)


def _code(language: object) -> str:
    """Return the code of a language: `en` for `English`, `en` and `<|en|>`."""
    name = str(language).lower().removeprefix("<|").removesuffix("|>")
    return str(TO_LANGUAGE_CODE.get(name, name))


def _named(known: Mapping[str, int], name: object, folder: Path, what: str) -> int:
    if name not in known:
        raise _not_understood(folder, what, name, f"one of {', '.join(known) or 'none'}")
    return known[str(name)]


def _token(number: object, folder: Path, name: str, vocabulary: int) -> int:
    if type(number) is not int or not 0 <= number < vocabulary:
        raise _not_understood(folder, name, number, f"numbers of tokens, below {vocabulary:,}")
    return number


def _not_understood(folder: Path, name: str, got: Any, expected: str) -> ConfigError:
    return ConfigError(
        f"{GENERATION} says by {name} how speech is written down, and this is not understood",
        where=str(folder),
        got=repr(got),
        expected=expected,
        do="use the file that belongs to the weights",
    )
