"""Columns inside a column: translations by language, the turns of a conversation, AI2's questions with choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.errors import DataError, clip

Row = Mapping[str, Any]
TRANSLATION = "translation"  # {"en": "…", "de": "…"}, as in WMT's sets on the hub
QUESTION = "question"  # {"stem": "…", "choices": […]}
TURNS = ("messages", "conversations", "prompt", "completion")  # columns that may hold turns of a conversation
SPEAKER = {"role": "content", "from": "value"}  # key of a turn's speaker -> key of what it says


def unnested(row: Row, where: str) -> dict[str, Any]:
    """Return the row with the columns inside a column as columns `COLUMN.KEY`, such as `translation.de`.

    A turn of a conversation becomes `COLUMN.SPEAKER`, such as `messages.assistant`.
    Raises `DataError` for a conversation in which someone speaks twice.
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        found.update({f"{name}.{key}": inside for key, inside in _inside(name, value, where).items()} or {name: value})
    return found


def stored_columns(header: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the columns of a file that hold `wanted`; `translation` holds `translation.de`, if that is no column."""
    return list(dict.fromkeys(name if name in header else name.partition(".")[0] for name in wanted))


def may_nest(name: str) -> bool:
    """Return whether a column of this name may hold columns."""
    return name in (TRANSLATION, QUESTION, *TURNS)


def _inside(name: str, value: Any, where: str) -> Row:
    """Return the columns inside a column; none in an ordinary one."""
    if name == TRANSLATION and isinstance(value, dict):
        return value
    if name == QUESTION and isinstance(value, dict) and {"stem", "choices"} <= value.keys():
        return {key: value[key] for key in ("stem", "choices")}
    if name in TURNS and isinstance(value, list):
        return _turns(name, value, where)
    return {}


def _turns(name: str, turns: list[Any], where: str) -> Row:
    """Return what each speaker says; nothing if these are no turns."""
    keys = next(
        ((who, says) for who, says in SPEAKER.items() if all(_is_turn(turn, who, says) for turn in turns)), None
    )
    if keys is None:
        return {}
    speakers = [turn[keys[0]] for turn in turns]
    if len(set(speakers)) < len(speakers):
        raise DataError(
            f"the conversation in {name!r} has more than one turn of a speaker",
            where=where,
            got=clip(", ".join(speakers)),
            expected="one turn of each, such as system, user, assistant",
            do="make a row of each answer: what was said before it in one column, the answer in another",
        )
    return {turn[keys[0]]: turn[keys[1]] for turn in turns}


def _is_turn(turn: Any, who: str, says: str) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get(who), str) and says in turn
