"""The settings of a kind: a frozen dataclass, from which task files, flags and records take its settings."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from graftwork.core.part_settings import comments_of, split_words
from graftwork.errors import ConfigError, UnknownName, clip
from graftwork.registry import kinds

IN_QUESTION: Mapping[str, Any] = {"in_question": True}
# metadata of a setting that changes results for the same rows: part of a task's question. Others change how rows are
# read: part of a run's identity through the digest of the data
DERIVED: Mapping[str, Any] = {"in_question": True, "derived": True}
# metadata of a setting that `Kind.resolve` fills in from the training targets: it can't be given
HEEDED = ("class_weights",)  # optional settings of kinds: the facts of a run name those that it used


def table_from(read: Callable[[Any], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the metadata of a table that changes results; `read` parses the table, or a file that holds it."""
    return {"in_question": True, "read": read}


@dataclass(frozen=True)
class KindSetting:
    """A setting of some kinds that a task file, a flag or a caller may give."""

    name: str
    users: tuple[str, ...]  # names of the kinds
    type: type  # str, int, float, bool; list for a tuple of texts; dict for a table, which may be given as a file
    choices: tuple[str, ...]  # the allowed values; empty: any
    default: Any
    meaning: str  # the comment after the field; "columns of the choices; empty: found by name" has two parts:
    unset: str  # what holds where it is not given, here "found by name"; without such a part the default
    in_question: bool  # False: it decides how rows are read


def kind_settings() -> dict[str, KindSetting]:
    """Return name -> setting over all kinds, which are imported. A name means the same in every kind that has it."""
    found: dict[str, KindSetting] = {}
    for kind in kinds.names():
        for name, one in settings_of(kind).items():
            found[name] = replace(found[name], users=(*found[name].users, kind)) if name in found else one
    return found


def settings_of(kind: str) -> dict[str, KindSetting]:
    """Return name -> setting that can be given to tasks of this kind. Raises `UnknownName`."""
    part = kinds.get(kind).settings
    comments, sorts, found = comments_of(part), _sorts(part), {}
    for item in fields(part):
        if "derived" not in item.metadata:
            meaning, *unset = re.split("; (?:None|empty): ", comments.get(item.name, ""))
            told = meaning, unset[0] if unset else str(item.default)
            in_question = "in_question" in item.metadata
            found[item.name] = KindSetting(item.name, (kind,), *sorts[item.name], item.default, *told, in_question)
    return found


def parse_kind_settings(kind: str, given: Mapping[str, Any]) -> Any:
    """Return the settings of a kind, an instance of its dataclass, with these values; a list may be comma-separated.

    Raises `UnknownName` for a name that no kind has and for a value that is not allowed, `ConfigError` for a setting of
    other kinds unless it has their default.
    """
    part = kinds.get(kind).settings
    sorts = _sorts(part)
    read = {item.name: item.metadata["read"] for item in fields(part) if "read" in item.metadata}
    values = {}
    for name, value in given.items():
        if name not in sorts:
            _refuse_foreign(kind, name, value)
            continue
        sort, choices = sorts[name]
        values[name] = tuple(split_words(value)) if sort is list else value
        if sort is dict:
            values[name] = value if value is None or value in choices else read[name](value)
        elif choices and value is not None and value not in choices:
            raise UnknownName(f"value of {name}", str(value), choices)
    return part(**values)


def no_use(kind: str, name: str, value: Any, users: Sequence[str]) -> ConfigError:
    """Return the error for a setting that only other kinds, `users`, have."""
    return ConfigError(
        f"a task of kind {kind} has no use for {name}",
        got=clip(str(value)),
        expected=f"{name} for a task of kind {' or '.join(users)} only",
        do="leave it out, or choose another --kind",
    )


def _refuse_foreign(kind: str, name: str, value: Any) -> None:
    """Raise `UnknownName` or `ConfigError` unless `value` is the default of another kind's setting `name`."""
    known = kind_settings()
    if name not in known:
        raise UnknownName("task setting", name, known)
    users = known[name].users
    if getattr(parse_kind_settings(users[0], {name: value}), name) != known[name].default:
        raise no_use(kind, name, value, users)


def _sorts(part: type) -> dict[str, tuple[type, tuple[str, ...]]]:
    """Return field -> its type without None (list for a tuple), and its allowed values."""
    found: dict[str, tuple[type, tuple[str, ...]]] = {}
    for name, hint in get_type_hints(part).items():
        union = get_origin(hint) in (Union, types.UnionType)
        hints = [one for one in get_args(hint) if one is not types.NoneType] if union else [hint]
        choices = tuple(word for one in hints if get_origin(one) is Literal for word in get_args(one))
        (sort,) = [one for one in hints if get_origin(one) is not Literal] or [str]
        found[name] = ({tuple: list, Mapping: dict}.get(get_origin(sort), sort), choices)
    return found
