"""Conversion of the inputs of predict, from Python, a client or the command line, to examples."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.media import MEDIA
from graftwork.errors import ConfigError, clip
from graftwork.module.input_format import Form, GivenInputs, require_texts
from graftwork.module.input_formats import CHOICES, IMAGE, PAIR, QUESTIONS, SOUND, TEXT, WORDS

Text = Path | GivenInputs  # a Path is a file
FORMS: tuple[Form, ...] = (TEXT, PAIR, WORDS, QUESTIONS, CHOICES, IMAGE, SOUND)
OF_ROLES: Mapping[tuple[str, ...], Form] = {form.roles: form for form in FORMS}
# Names in a client's request -> roles of the modules that accept them. Local files are never accepted.
TAKEN_BY: Mapping[frozenset[str], tuple[tuple[str, ...], ...]] = {
    names: tuple(form.roles for form in FORMS if names in form.names)
    for names in dict.fromkeys(names for form in FORMS for names in form.names)
    if not names & set(MEDIA)
}


def example_of_given(roles: tuple[str, ...], number: int, given: Text) -> Example:
    """Convert an input to the `number`th example (1 is the first) with these roles.

    Raises `ConfigError` for inputs that don't match the roles or are no texts, `DataError` or `StorageError` for a bad
    or missing file.
    """
    given = str(given) if isinstance(given, Path) else given
    if isinstance(given, Mapping) or not isinstance(given, Sized):
        require_texts(number, given if isinstance(given, Mapping) else [given])  # names, or no input
    return OF_ROLES[roles].example(number, given)


def require_list(texts: Any) -> None:
    """Raise `ConfigError` for a single text, and for a table, which would be iterated by its column names."""
    if not hasattr(texts, "__iter__"):
        raise ConfigError("this is no list of texts", got=clip(repr(texts)), do='write predict(["…"])')
    if isinstance(texts, str | Mapping):
        what = "one text" if isinstance(texts, str) else "a dictionary"
        raise ConfigError(f"{what} where a list of texts is expected", do='write predict(["…"])')
    if hasattr(texts, "columns"):
        raise ConfigError(
            "a table where its texts are expected",
            got=f"the columns {', '.join(map(str, texts.columns))}",
            expected="one column, or a list of texts",
            do=f"give the column: predict(frame[{next(iter(texts.columns), 'text')!r}])",
        )


def asking(roles: Sequence[str], *module: str | Path) -> str:
    """Return the command for a module with these roles, or a bank and a task: `graft predict FOLDER "a text"`."""
    return " ".join(["graft predict", *(shlex.quote(str(word)) for word in module), OF_ROLES[tuple(roles)].sample])


def takes(roles: tuple[str, ...], given: GivenInputs) -> bool:
    """Return whether a module with these roles accepts this input: by name, or a text, a pair, or a list of words.

    Here a tuple is a pair and a list is words, and a text is never interpreted as a path.
    """
    form = OF_ROLES[roles]
    return frozenset(given) in form.names if isinstance(given, Mapping) else form.takes(given)
