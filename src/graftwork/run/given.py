"""What predict is given, from Python or the command line, as examples: by the inputs that a module wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.decoding import identify
from graftwork.core.example import Example
from graftwork.core.media import MEDIA
from graftwork.core.passages import Passage, question_of
from graftwork.core.words import example_of
from graftwork.errors import ConfigError, clip

Given = str | Sequence[str] | Mapping[str, Any]  # a text, a pair or the words of one, or role -> input
Text = Path | Given  # or a file


def example_of_given(roles: tuple[str, ...], number: int, given: Text) -> Example:
    """The example with these roles that is meant, the `number`th (1 is the first).

    Raises `ConfigError` for other inputs than the roles want, `DataError` or `StorageError` for a file that is bad or
    not there.
    """
    given = str(given) if isinstance(given, Path) else given
    return OF_ROLES[roles](number, given) if roles in OF_ROLES else _of_texts(roles, number, given)


def takes(roles: tuple[str, ...], given: Given) -> bool:
    """Whether a module that wants these roles can be asked this: inputs by name, or a text, a pair, or a list of words.

    Here a tuple is a pair and a list is words, and a text is never taken for the path of a file.
    """
    if isinstance(given, str):
        return roles in (("text",), ("words",))
    if isinstance(given, Mapping):
        named = {("words",): ({"words"}, {"text"}), ("question", "words"): ({"question", "context"},)}
        return set(given) in named.get(roles, (set(roles),))
    if isinstance(given, list):
        return roles == ("words",)
    if len(given) != 2 or not isinstance(given[0], str):
        return False
    if roles == ("text", "choices"):
        return isinstance(given[1], list | tuple)
    return roles in (("text_a", "text_b"), ("question", "words")) and isinstance(given[1], str)


def _of_texts(roles: tuple[str, ...], number: int, given: Given) -> Example:
    """A text, a pair of them, or either by name."""
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Mapping):
        if len(given) != len(roles):
            expected = f"{len(roles)} ({', '.join(roles)})"
            raise ConfigError("wrong number of texts", got=str(len(given)), expected=expected)
        given = dict(zip(roles, given, strict=True))
    if set(given) != set(roles):
        raise ConfigError("wrong inputs", got=", ".join(given), expected=", ".join(roles))
    if not all(value.strip() for value in given.values()):
        raise ConfigError(f"text {number} is empty")
    return Example(f"input/{number}", given)


def _of_file(role: str) -> Callable[[int, Given], Example]:
    """The file of an image or a sound, or that by name."""

    def read(number: int, given: Given) -> Example:
        named = _of_texts((role,), number, given)
        return Example(named.id, {role: identify(Path(named.inputs[role]), role)})

    return read


def _of_words(number: int, given: Given) -> Example:
    """A text, its words, or either by name. Raises `ConfigError`."""
    if isinstance(given, Mapping):
        if len(given) != 1 or not given.keys() <= {"text", "words"}:
            raise ConfigError("wrong inputs", got=", ".join(given), expected="words, or text")
        given = next(iter(given.values()))
    example = example_of(f"input/{number}", given if isinstance(given, str) else tuple(given))
    words = example.inputs["words"]
    if not words or not all(word.strip() for word in words):
        raise ConfigError(f"text {number} {'has an empty word' if words else 'is empty'}")
    return example


def _of_question(number: int, given: Given) -> Example:
    """A question and its passage, as a pair or by name. Raises `ConfigError`."""
    if isinstance(given, Mapping):
        if set(given) != {"question", "context"}:
            raise ConfigError("wrong inputs", got=", ".join(given), expected="question, context")
        given = (given["question"], given["context"])
    if isinstance(given, str) or len(given) != 2:
        raise ConfigError(
            "a question and its passage are needed",
            got="one text" if isinstance(given, str) else f"{len(given)} texts",
            do='write predict([("the question?", "the passage")])',
        )
    question, context = given
    if not (question.strip() and context.strip()):
        raise ConfigError(f"text {number} is empty")
    return question_of(f"input/{number}", question, Passage.of(context))


def _of_choices(number: int, given: Given) -> Example:
    """A text and its choices, by name or as a pair. Raises `ConfigError`."""
    inputs = dict(given) if isinstance(given, Mapping) else dict(zip(("text", "choices"), given, strict=False))
    text, choices = inputs.get("text"), inputs.get("choices")
    if len(given) != 2 or not isinstance(text, str) or not isinstance(choices, list | tuple):
        expected = 'a text and its choices: {"text": "…", "choices": ["…", "…"]}'
        raise ConfigError("wrong inputs", got=clip(str(given)), expected=expected)
    if len(choices) < 2 or not all(isinstance(item, str) and item.strip() for item in (text, *choices)):
        what = "has an empty text or choice" if len(choices) > 1 else "has fewer than two choices"
        raise ConfigError(f"text {number} {what}")
    return Example(f"input/{number}", {"text": text, "choices": tuple(choices)})


OF_ROLES: Mapping[tuple[str, ...], Callable[[int, Given], Example]] = {
    ("words",): _of_words,
    ("question", "words"): _of_question,
    ("text", "choices"): _of_choices,
    **{(role,): _of_file(role) for role in MEDIA},
}
