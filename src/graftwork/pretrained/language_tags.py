"""Language tags: the tokens that state the languages of a multilingual translator's source and target.

The tokenizer's template puts the tag of the source before the text (mBART-50, M2M100, NLLB) or after it (mBART). The
tag of the target is its first token or, if the decoder's start token is a tag (mBART), replaces that start token.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from graftwork.core.writing import Instruction, no_tags
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.pretrained.seq2seq import Seq2SeqBackbone, SpecialTokens
from graftwork.pretrained.transformer import TransformerBackbone, as_encoder

TAG = re.compile(r"[a-z]{2,3}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3}|__[a-z]{2,3}__")  # en_XX, eng_Latn, __en__
NEAREST = 3  # tags that a message suggests


@dataclass(frozen=True)
class LanguageTags:
    """The language tags of a tokenizer."""

    numbers: Mapping[str, int]  # tag -> token id
    source: str  # the source tag in the tokenizer's template

    def known(self, name: str, language: str, backbone: str) -> str:
        """Return the tag of a language: `language` itself, or `__en__` for `en`. Raises `ConfigError` if unknown."""
        found = language if language in self.numbers else f"__{language}__"
        if found not in self.numbers:
            raise unknown_language(name, language, self.numbers, backbone)
        return found


def tags_of(tokenizer: Tokenizer) -> LanguageTags | None:
    """Return the language tags of a tokenizer; None if its template has no tag, so that none can be replaced."""
    added = tokenizer.get_added_tokens_decoder()
    numbers = {one.content: number for number, one in sorted(added.items()) if TAG.fullmatch(one.content)}
    if not isinstance(tokenizer.post_processor, TemplateProcessing):
        return None
    used = _template(tokenizer)["special_tokens"]
    source = next((tag for tag in used if tag in numbers), None)
    return None if source is None else LanguageTags(numbers, source)


def read_in(tokenizer: Tokenizer, tags: LanguageTags, tag: str) -> Tokenizer:
    """Return a copy of a tokenizer whose template has `tag` in place of its own source tag."""
    template = _template(tokenizer)
    for form in ("single", "pair"):
        for piece in template[form]:
            if piece.get("SpecialToken", {}).get("id") == tags.source:
                piece["SpecialToken"]["id"] = tag
    del template["special_tokens"][tags.source]
    template["special_tokens"][tag] = {"id": tag, "ids": [tags.numbers[tag]], "tokens": [tag]}
    changed: Any = TemplateProcessing(single="$A", pair="$A $B")
    changed.__setstate__(json.dumps(template).encode())
    other = copy.deepcopy(tokenizer)
    other.post_processor = changed
    return other


def _template(tokenizer: Tokenizer) -> dict[str, Any]:
    stored: Any = tokenizer.post_processor
    template: dict[str, Any] = json.loads(stored.__getstate__())
    return template


def instructed_texts(backbone: Seq2SeqBackbone, given: Instruction) -> Seq2SeqBackbone:
    """Return a backbone of texts with the languages and source prefix of `given`, over the same modules.

    Raises `ConfigError` for a language without a tag, and if the backbone needs languages that are not given.
    """
    reading, tags = backbone.reading, tags_of(backbone.tokenizer)
    assert isinstance(reading, TransformerBackbone)
    if tags is None and given.languages:
        raise no_tags(backbone.card.id, given)
    special, source = backbone.special, None
    if tags is not None:
        source, target = _tags_of(tags, given, special, backbone.card.id)
        special = special if target is None else _written_in(special, tags, target)
    if source is None and special == backbone.special and not given.source_prefix:
        return backbone
    cutting, whole = reading.tokenizer, backbone.tokenizer
    if tags is not None and source not in (None, tags.source):
        if source not in backbone.by_language:
            backbone.by_language[source] = read_in(cutting, tags, source), read_in(whole, tags, source)
        cutting, whole = backbone.by_language[source]
    read_as = {"revision": reading.card.revision, "source": source, "before": given.source_prefix}
    told = replace(
        reading,
        card=replace(reading.card, revision=digest(read_as)),  # the cache key of states
        tokenizer=cutting,
        before=given.source_prefix or "",
    )
    return replace(backbone, read_by=partial(as_encoder, told), tokenizer=whole, special=special, untold=backbone)


def _tags_of(
    tags: LanguageTags, given: Instruction, special: SpecialTokens, backbone: str
) -> tuple[str | None, str | None]:
    """Return the tags of source and target; None where the folder's own tag is kept."""
    asked = {"source_language": given.source_language, "target_language": given.target_language}
    found = {name: one and tags.known(name, one, backbone) for name, one in asked.items()}
    source, target = found.values()
    if target is None and {*special.first, special.start[-1]} & {*tags.numbers.values()}:
        return source, None
    if source is None or target is None:
        raise language_missing(
            given, f"two of its {len(tags.numbers)} tags, such as {tags.source}", tags.source, backbone
        )
    return source, target


def _written_in(special: SpecialTokens, tags: LanguageTags, target: str) -> SpecialTokens:
    number = tags.numbers[target]
    if special.start[-1] in tags.numbers.values():
        return replace(special, start=(*special.start[:-1], number))
    return replace(special, first=(number,))


def language_missing(given: Instruction, expected: str, example: str, backbone: str) -> ConfigError:
    """Return the error for a backbone that needs the languages of source and target, and was not given both."""
    lacking = "target_language" if given.target_language is None else "source_language"
    return ConfigError(
        "this backbone needs the language tags of source and target",
        where=backbone,
        got=f"{given.languages or 'neither of them'}{f' without {lacking}' if given.languages else ''}",
        expected=f"source_language and target_language, {expected}",
        do=f"say both, such as --source-language {example} --target-language …",
    )


def unknown_language(name: str, language: str, known: Iterable[str], backbone: str) -> ConfigError:
    """Return the error for a language, given as the setting `name`, that has none of the `known` tags."""
    listed = list(known)
    begun = [tag for tag in listed if tag.strip("_").lower().startswith(language[:2].lower())]
    by_lower = {tag.lower(): tag for tag in listed}
    close = [by_lower[one] for one in get_close_matches(language.lower(), by_lower, n=NEAREST, cutoff=0.51)]
    near = list(dict.fromkeys([*close, *begun]))[:NEAREST]
    return ConfigError(
        "the backbone's tokenizer has no tag of this language",
        where=backbone,
        got=f"{name} {language!r}",
        expected=f"one of its {len(listed)} tags"
        + (f", the nearest of which are {', '.join(near)}" if near else f": {', '.join(listed)}"),
        do=f"write --{name.replace('_', '-')} {near[0]}" if near else "name one of them",
    )
