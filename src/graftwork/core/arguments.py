"""Checks of the arguments of public functions: unknown names, missing arguments and wrong types raise `ConfigError`.

Its message tells a caller in a notebook the known names and the likely one, which Python's `TypeError` does not.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from graftwork.core.kind_settings import kind_settings
from graftwork.errors import ConfigError, UnknownName

F = TypeVar("F", bound=Callable[..., Any])
WORDS: Mapping[Any, str] = {
    int: "a whole number", float: "a number", bool: "True or False", str: "a string", Path: "a path",
    Sequence: "a list", Mapping: "a dictionary", types.NoneType: "None",
}  # fmt: skip
LONGEST = 80  # characters of a value in a message
NEEDED = {  # argument without a default -> how to give it
    "task": "the data first: a file, a data frame, (texts, labels) or a Task",
    "method": 'name one: method="linear_probe" is fast, "lora" and "adapter" are small, "full" trains all;'
    " gw.compare tries what fits",
    "module": "give run.module, board.chosen.module, or the folder of one",
    "source": "give folders: board.folder, run.folder or module.folder",
    "predictions": "say how many there will be in all: predictions=1e6",
    "sizes": 'sizes are shares of the rows, or rows of each class: sizes=["10%", "8/class"]',
    "budget": 'say what may be spent: budget="5min", "3Wh" or "1EUR"',
}

OF_TASKS = (  # settings that every task has; a test compares them with `Task`
    "name", "data", "validation", "test", "kind", "text", "text_a", "text_b", "image", "sound", "label", "labels",
    "metrics", "drop_leaks", "rejects", "split_seed", "settings",
)  # fmt: skip
ELSEWHERE = {"threads": "runs use the cores that this process may: set OMP_NUM_THREADS=1 before Python starts"}


def told_arguments(function: F) -> F:
    """Decorate a public function so that wrong arguments raise `ConfigError` before anything is read.

    Values are checked against annotations of plain types; NumPy numbers are converted to Python numbers.
    """

    @functools.wraps(function)
    def call(*places: Any, **named: Any) -> Any:
        signature = _signature(call)
        _require_known(function.__name__, signature, places, named)
        given = signature.bind(*places, **named)
        for name, hint in _hints(call).items():
            if name in given.arguments:
                given.arguments[name] = fitting(name, given.arguments[name], hint)
        return function(*given.args, **given.kwargs)

    return cast(F, call)


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature, cached because `inspect` computes it anew at every call."""
    return inspect.signature(function)


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return argument -> type, for annotations that can be resolved and consist of classes and sequences of them."""
    inner, hints = inspect.unwrap(function), {}
    for name, one in inspect.signature(function).parameters.items():
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) or one.annotation is one.empty:
            continue
        try:
            told = types.SimpleNamespace(__annotations__={name: one.annotation})
            hint = get_type_hints(told, inner.__globals__)[name]
        except NameError:  # the type is imported for type checkers only
            continue
        if all(_is_plain(part) for part in _parts(hint)):
            hints[name] = hint
    return hints


def _parts(hint: Any) -> list[Any]:
    """Return the types that a hint allows: classes, `Mapping`, and lists with the types of their items."""
    if get_origin(hint) in (Union, types.UnionType):
        return [part for one in get_args(hint) for part in _parts(one)]
    if get_origin(hint) in (Sequence, tuple):
        return [tuple(part for part in _parts(get_args(hint)[0]))]
    return [Mapping if get_origin(hint) is Mapping else object if hint is Any else hint]


def _is_plain(part: Any) -> bool:
    """Return whether a value can be compared with this type."""
    if isinstance(part, tuple):
        return all(_is_plain(item) for item in part)
    return isinstance(part, type) and get_origin(part) is None and not getattr(part, "_is_protocol", False)


def _require_known(
    function: str, signature: inspect.Signature, places: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise `ConfigError` for an unknown or missing argument, too many by place, or one given twice."""
    known = signature.parameters
    by_place = [name for name, one in known.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    for name in named if not any(one.kind is one.VAR_KEYWORD for one in known.values()) else ():
        if name not in known:
            raise _unknown(function, name, list(known))
    if len(places) > len(by_place):
        raise ConfigError(
            f"{function} takes {' and '.join(by_place) or 'nothing'} by place, and all else by name",
            got=_shown(places[len(by_place)]),
            expected=", ".join(f"{name}=…" for name in known if name not in by_place),
            do=f"write its name before it: {next((name for name in known if name not in by_place), '')}=…",
        )
    for name in by_place[: len(places)]:
        if name in named:
            raise ConfigError(f"{name} of {function} is given twice", got=_shown(named[name]), do="give it once")
    for name, one in known.items():
        required = one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        if required and name not in (*by_place[: len(places)], *named):
            raise ConfigError(f"{function} needs {name}", do=NEEDED.get(name, f"give it: {name}=…"))


def _unknown(function: str, name: str, known: Sequence[str]) -> ConfigError:
    """Return the error for an argument that the function does not have."""
    of_tasks = {*OF_TASKS, *kind_settings()}
    error = UnknownName(f"argument of {function}", name, known, else_do="leave it out")
    do = ELSEWHERE.get(name) or (
        f"it is a setting of the task: gw.Task.from_data(data, {name}=…)"
        if name in of_tasks and "task" in known
        else error.do
    )
    return ConfigError(error.what, got=f"{name}=…", expected=error.expected, do=do)


def fitting(name: str, value: Any, hint: Any) -> Any:
    """Return the value as one of the plain types of `hint`. Raises `ConfigError` where it is none of them."""
    parts = _parts(hint)
    for part in parts:
        fits, found = _as(part, value)
        if fits:
            return found
    expected = [_word(part) for part in parts]
    raise ConfigError(
        f"{name} is of another type",
        got=_shown(value),
        expected=" or ".join([", ".join(expected[:-1]), expected[-1]] if len(expected) > 1 else expected),
        do=NEEDED.get(name, f"give {name} as {expected[0]}"),
    )


def _as(part: Any, value: Any) -> tuple[bool, Any]:
    """Return whether a value is of this type, and the value, with a NumPy number as a Python number."""
    if isinstance(part, tuple):
        return _as_list(part, value)
    if part is bool:
        fits = type(value).__name__ in ("bool", "bool_")  # the second is numpy's
        return fits, bool(value) if fits else value
    if part not in (int, float):
        return isinstance(value, os.PathLike if part is Path else part), value
    fits = isinstance(value, numbers.Integral if part is int else numbers.Real) and type(value).__name__ != "bool"
    return fits, part(value) if fits and type(value) not in (int, float) else value


def _as_list(parts: tuple[Any, ...], value: Any) -> tuple[bool, Any]:
    """Return whether a value is a list, or an array, of items of these types."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return False, value
    items = value if isinstance(value, Sequence) else list(value)
    return all(any(_as(part, item)[0] for part in parts) for item in items), items


def _word(part: Any) -> str:
    if part == (object,):
        return "a list"
    if isinstance(part, tuple):
        return f"a list of {' or '.join({str: 'strings', Path: 'paths'}.get(one, f'{one.__name__}s') for one in part)}"
    return WORDS.get(part) or _article(part.__name__)


def _shown(value: Any) -> str:
    """Return a value of an unexpected type for a message."""
    if value is None or isinstance(value, bool):
        return str(value)
    kind = _article(type(value).__name__)
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    told = " ".join(repr(value).split())
    return f"{told if len(told) <= LONGEST else told[:LONGEST] + '…'}, {kind}"


def _article(word: str) -> str:
    return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"
