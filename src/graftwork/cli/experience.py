"""List, add or remove earlier boards, from which compare and train --budget predict scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import one_of, paths
from graftwork.cli.options import Command, json_option, print_facts
from graftwork.errors import ConfigError, DataError, UnknownName

if TYPE_CHECKING:
    from graftwork.decision.earlier_boards import TaskRecord

BOARD = "leaderboard.json"


@click.command("experience", cls=Command)
@click.argument("action", default="ls", shell_complete=one_of("ls", "add", "forget"))
@click.argument("names", nargs=-1, shell_complete=paths)
@json_option("the boards as JSON")
def command(action: str, names: tuple[str, ...], as_json: bool) -> None:
    """Manage earlier boards. ACTION is ls (the default), add or forget.

    Before a task is run, the expected score of each method is predicted from boards of earlier tasks. Some boards come
    with graft. `graft experience add boards` adds every leaderboard.json in and under that folder to your own boards,
    which are stored in one file on this machine. Nothing is added automatically.

    NAMES are folders of boards (add), or names of your own boards as shown by ls (forget).
    """
    from graftwork.decision.earlier_boards import keep, own, own_file, shipped_prior

    if action not in ("ls", "add", "forget"):
        raise UnknownName("action", action, ["ls", "add", "forget"], else_do="see graft experience --help")
    if (action == "ls") == bool(names):
        raise ConfigError(
            "ls takes no names" if names else f"{action} needs names",
            got=f"graft experience {' '.join([action, *names])}",
            do="graft experience add boards/tickets",
        )
    if action == "add":
        records = [record for name in names for record in _records(Path(name))]
        keep(records)
        content: Any = {"added": [record.content() for record in records]}
        lines = [f"added {record.name}: {_told(record)}" for record in records]
    elif action == "forget":
        kept = own()
        unknown = sorted(set(names) - {task.name for task in kept.tasks})
        if unknown:
            raise UnknownName("board of your own", unknown[0], [task.name for task in kept.tasks])
        keep((), without=names)
        content = {"forgotten": list(names)}
        lines = [f"forgot {name}" for name in names]
    else:
        ours, theirs = shipped_prior()[1].tasks, own().tasks
        content = {
            "shipped": [task.content() for task in ours],
            "own": [task.content() for task in theirs],
            "own_file": str(own_file()),
        }
        lines = [f"{task.name:<50} {_told(task)}" for task in (*ours, *theirs)]
        lines.append(f"{len(ours)} come with graft; {len(theirs)} are your own, in {own_file()}")
    print_facts(content, lines, as_json)


def _records(folder: Path) -> Iterator[TaskRecord]:
    """Yield the record of every board in or under a folder. Raises `DataError` if there is none."""
    from graftwork.decision.earlier_boards import record_of
    from graftwork.io.files import read_json

    paths = [folder] if folder.is_file() else sorted(folder.rglob(BOARD))
    if not paths:
        raise DataError(
            "no board in this folder",
            where=str(folder),
            expected=f"a folder with {BOARD}",
            do="make one with graft compare",
        )
    for path in paths:
        board = _board(read_json(path), path)
        yield record_of(board, "-".join(filter(None, (board["task"]["name"], str(board["task"].get("data", ""))[:8]))))


def _board(content: Any, path: Path) -> dict[str, Any]:
    if not (isinstance(content, dict) and {"rows", "differences", "headline_metric", "task"} <= content.keys()):
        raise DataError("not the leaderboard of a comparison", where=str(path), expected=BOARD)
    return content


def _told(record: TaskRecord) -> str:
    rows = f"{record.traits.rows:,} rows"
    return (
        f"{rows:>12}, {record.traits.kind}, {len(record.scores)} methods, on {record.traits.backbone or 'no backbone'}"
    )
