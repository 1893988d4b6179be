"""Tokenisation of prompts and of the answers after them, for a left-to-right language model.

The rule is that of lm-evaluation-harness (Gao et al. 2024, doi:10.5281/zenodo.12608602): the tokens of an answer are
those of prompt + answer without those of the prompt, and its score is the sum of their log-probabilities; spaces at the
end of the prompt belong to the answer. An answer whose tokens are a prefix of another one's would never score lower
than that one; in this case the text after the answer is scored too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graftwork.core.language_model import NextTokenModel
from graftwork.errors import ConfigError, clip
from graftwork.train.prompt_tokens import PromptTokens, begins_another, refuse_no_token


def prompt_tokens_of(
    model: NextTokenModel, contexts: Sequence[str], continuations: Sequence[Sequence[str]], end: str = ""
) -> list[PromptTokens]:
    """Tokenise contexts, each with its continuations.

    If one continuation is a prefix of another, each gets the text `end` or, if they still are, the model's end token.
    Raises `ConfigError` for a continuation without a token, and if an end is needed and there is none.
    """
    heads = [context.rstrip() for context in contexts]
    read = model.tokens(heads)
    spaces = [context[len(head) :] for context, head in zip(contexts, heads, strict=True)]
    ways = [[blanks + way for way in listed] for blanks, listed in zip(spaces, continuations, strict=True)]
    found = _asked(model, heads, read, ways)
    unclear = [row for row, one in enumerate(found) if begins_another(one.continuations)]
    if not unclear:
        return found
    ended = [[way + end for way in ways[row]] for row in unclear]
    followed = _asked(model, [heads[row] for row in unclear], [read[row] for row in unclear], ended)
    for row, one in zip(unclear, followed, strict=True):
        found[row] = _ended(model, found[row], continuations[row]) if begins_another(one.continuations) else one
    return found


def _ended(model: NextTokenModel, asked: PromptTokens, ways: Sequence[str]) -> PromptTokens:
    if not model.ends:
        raise ConfigError(
            "an answer begins another one, and nothing tells where it ends",
            got=", ".join(map(clip, ways[:3])),
            expected="a text after every answer",
            do="give the template a separator, or end its answer in a full stop",
        )
    return PromptTokens(asked.context, [[*way, model.ends[0]] for way in asked.continuations])


def _asked(
    model: NextTokenModel, heads: Sequence[str], read: Sequence[list[int]], ways: Sequence[Sequence[str]]
) -> list[PromptTokens]:
    found = tokens_after(model, heads, read, ways)
    for head, listed, tokens in zip(read, ways, found, strict=True):
        if not head or not all(tokens):
            refuse_no_token("" if not head else listed[tokens.index([])], prompt=not head)
    return [PromptTokens(head, tokens) for head, tokens in zip(read, found, strict=True)]


def tokens_after(
    model: NextTokenModel, heads: Sequence[str], read: Sequence[list[int]], ways: Sequence[Sequence[str]]
) -> list[list[list[int]]]:
    """Return the tokens of each text head + way after the first n, where n is the number of tokens `read` of the head.

    To save time, a way is tokenised behind the last word of its head only, once for all heads with that last word. The
    whole head is used if this changes the tokens of the head or of the word, or gives other tokens for the first such
    head and its first way; and always if the model's tokens depend on the whole text (not `is_local`).
    """
    told = dict(zip(heads, read, strict=True))

    def tell(texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in told]
        told.update(zip(new, model.tokens(new), strict=True) if new else {})

    tails = [_last_word(head) if model.is_local else head for head in heads]
    tell([*tails, *(tail + way for tail, own in zip(tails, ways, strict=True) for way in own)])
    front = len(model.tokens([""])[0])

    def near(row: int, way: str) -> list[int] | None:
        alone, joined = told[tails[row]], told[tails[row] + way]
        kept = alone[front + 1 :] or alone[front:]  # a text's first token may differ from the same word's within a text
        met = bool(kept) and read[row][-len(kept) :] == kept and joined[: len(alone)] == alone
        return joined[len(alone) :] if met else None

    firsts = {tails[row]: row for row in reversed(range(len(heads))) if ways[row]}
    tell(heads[row] + ways[row][0] for row in firsts.values())
    sound = {
        tail for tail, row in firsts.items()
        if told[heads[row] + ways[row][0]] == read[row] + (near(row, ways[row][0]) or [])
    }  # fmt: skip
    found = [[near(row, way) if tails[row] in sound else None for way in own] for row, own in enumerate(ways)]
    pairs = [list(zip(own, tokens, strict=True)) for own, tokens in zip(ways, found, strict=True)]
    tell(heads[row] + way for row, own in enumerate(pairs) for way, known in own if known is None)
    return [
        [told[heads[row] + way][len(read[row]) :] if known is None else known for way, known in own]
        for row, own in enumerate(pairs)
    ]


def _last_word(head: str) -> str:
    """Return the last word of a text with the blanks in front of it; the whole text if it is one word."""
    parts = head.rsplit(maxsplit=1)
    return head[len(parts[0]) :] if len(parts) > 1 else head
