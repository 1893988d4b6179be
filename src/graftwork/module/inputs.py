"""What predict is given, from Python, a client or the command line, as examples: by the inputs that a module wants."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from graftwork.core.example import Example
from graftwork.core.media import MEDIA
from graftwork.module.input_format import Form, GivenInputs
from graftwork.module.input_formats.choice_format import CHOICES
from graftwork.module.input_formats.media_format import IMAGE, SOUND
from graftwork.module.input_formats.question_format import QUESTIONS
from graftwork.module.input_formats.text_format import PAIR, TEXT
from graftwork.module.input_formats.word_format import WORDS

Text = Path | GivenInputs  # or a file
FORMS: tuple[Form, ...] = (TEXT, PAIR, WORDS, QUESTIONS, CHOICES, IMAGE, SOUND)
OF_ROLES: Mapping[tuple[str, ...], Form] = {form.roles: form for form in FORMS}
# What a client sends -> roles of the modules that take it. A file on this machine is never among them.
TAKEN_BY: Mapping[frozenset[str], tuple[tuple[str, ...], ...]] = {
    names: tuple(form.roles for form in FORMS if names in form.names)
    for names in dict.fromkeys(names for form in FORMS for names in form.names)
    if not names & set(MEDIA)
}


def example_of_given(roles: tuple[str, ...], number: int, given: Text) -> Example:
    """The example with these roles that is meant, the `number`th (1 is the first).

    Raises `ConfigError` for other inputs than the roles want, `DataError` or `StorageError` for a file that is bad or
    not there.
    """
    return OF_ROLES[roles].example(number, str(given) if isinstance(given, Path) else given)


def asking(roles: Sequence[str], *module: str | Path) -> str:
    """The command that asks a module with these roles, or a bank and a task: `graft predict FOLDER "a text"`."""
    return " ".join(["graft predict", *(shlex.quote(str(word)) for word in module), OF_ROLES[tuple(roles)].sample])


def takes(roles: tuple[str, ...], given: GivenInputs) -> bool:
    """Whether a module that wants these roles can be asked this: inputs by name, or a text, a pair, or a list of words.

    Here a tuple is a pair and a list is words, and a text is never taken for the path of a file.
    """
    form = OF_ROLES[roles]
    return frozenset(given) in form.names if isinstance(given, Mapping) else form.takes(given)
