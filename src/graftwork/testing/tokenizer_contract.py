"""The contract of a tokeniser."""

from __future__ import annotations

from pathlib import Path

from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import tokenizers
from graftwork.testing.require import require

SENTENCE = "the film was warm and good but its end is cold sad or so long that naïve people's hearts fail"
TEXTS = [SENTENCE[place % 40 : place % 40 + 50] + f", {place}." for place in range(400)] * 2


def check_tokenizer(name: str, empty: Path) -> None:
    """Check what every tokeniser must do; `empty` is an empty folder. Raises `AssertionError` with the violated rule.

    Equal texts give equal vocabularies, no larger than requested. Ids are below the size of the vocabulary. No text is
    encoded to a special token other than the unknown one, and an empty text to no token. A saved tokeniser gives the
    same ids when it is opened here and by transformers.
    """
    from transformers import AutoTokenizer

    kind = tokenizers.get(name)
    small = kind.train(TEXTS, 300, kind.lowercase)
    require(small.size <= 300, f"{name} learns {small.size} tokens where 300 are asked for")
    again = kind.train(TEXTS, 300, kind.lowercase)
    require(small.revision == again.revision, f"{name} learns something else from the same texts")
    special = small.special_ids
    require(small.end not in (small.pad, small.unk), f"{name} ends texts with a token that means something else")
    literal = " ".join([*small.specials.listed, *TEXTS[0].split()])
    [ids, of_literal, nothing] = small.encode([TEXTS[0], literal, ""])
    require(bool(ids) and max(ids) < small.size, f"{name} gives ids that are not below its size")
    require(set(of_literal) & set(special) <= {small.unk}, f"{name} takes the text [MASK] for its token")
    require(nothing == [], f"{name} makes tokens of an empty text")
    require(small.inside.shape == (small.size,), f"`inside` of {name} is not one answer per token")
    small.save(empty)
    require(Vocabulary.open(empty).revision == small.revision, f"{name} is another one when it is opened")
    outer = AutoTokenizer.from_pretrained(empty, local_files_only=True, trust_remote_code=False)
    theirs = outer(TEXTS[0], TEXTS[1])["input_ids"]
    ours = [small.start, *ids, small.end, *small.encode(TEXTS[1:2])[0], small.end]
    require(theirs == ours, f"transformers reads a pair of texts by {name} as other tokens")
