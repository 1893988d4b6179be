"""Repeat a run, or all runs of a board, and compare the results with the recorded ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import runs_kept
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.errors import GraftworkError, StorageError, printable
from graftwork.units import metric_title, percent, show

if TYPE_CHECKING:
    from graftwork.receipts.differences import Difference
    from graftwork.receipts.verify import Verification, Verifier

GROUPS = {  # group of differences -> its name, and the text where there are none
    "record": ("record", "unchanged"),
    "input": ("inputs", "equal: data, backbone, method, recipe, seed"),
    "surroundings": ("environment", "equal: code, libraries, processor, threads"),
    "outcome": ("outcome", "bitwise equal"),
}


@click.command("verify", cls=Command)
@click.argument("what", shell_complete=runs_kept)
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of runs.")
@option("--data", metavar="FILE", help="New place of the data, if it was moved.")
@option("--validation", metavar="FILE", help="New place of the validation file.")
@option("--test", metavar="FILE", help="New place of the test file.")
@option("--backbone", metavar="BACKBONE", help="New name of the backbone, if it was moved.")
@option("--record", is_flag=True, help="Append the verdict to verified.jsonl in the run's folder.")
@json_option("the verdict as JSON")
def command(
    what: str,
    runs: str,
    data: str | None,
    validation: str | None,
    test: str | None,
    backbone: str | None,
    record: bool,
    as_json: bool,
) -> int:
    """Repeat a run and compare it with its receipt. WHAT is a run (its id, a prefix of it, or its folder), or the
    folder of a board: then all its runs are repeated.

    First the inputs are compared with the receipt: files of the run, data rows and their order, files of the backbone,
    method and recipe. Then the run is executed again in a temporary folder with the same threads and precision, and
    predictions, weights and scores are compared.

    Exit code 0: bitwise equal, or within the range of other seeds if libraries, processor or code differ. 1: different.
    2: something is missing.
    """
    from graftwork.receipts.verify import MovedInputs, keep, runs_of_board, verifier

    board = (Path(what) / "leaderboard.json").is_file()
    folders = [Path(runs) / run for run in runs_of_board(Path(what))] if board else [run_folder(what, runs)]
    found: list[tuple[Path, Verification | GraftworkError]] = []
    with verifier(MovedInputs(data, validation, test, backbone)) as executing:
        for folder in folders:
            verdict = _verified(executing, folder, board)
            if record and not isinstance(verdict, GraftworkError):
                keep(folder, verdict)
            found.append((folder, verdict))
            if board and not as_json:
                click.echo(printable(_row(folder, verdict)))
    if as_json:
        content = [_as_json(folder, verdict) for folder, verdict in found]
        print_json(content if board else content[0])
    elif board:
        click.echo(_summary([verdict for _, verdict in found]))
    else:
        verdict = found[0][1]
        assert not isinstance(verdict, GraftworkError)  # only a board continues after an error
        click.echo(printable("\n".join(verdict_lines(verdict))))
    return _code([verdict for _, verdict in found])


def run_folder(what: str, runs: str) -> Path:
    """Return the folder of a run, given that folder, the run's id or a prefix of it.

    Raises `StorageError` if there is none.
    """
    folder = named_folder(what, runs, "run")
    if not (folder / "result.json").is_file():
        raise StorageError(
            "not a run", where=str(folder), expected="a folder with result.json, or the folder of a board"
        )
    return folder


def named_folder(what: str, runs: str, sort: str) -> Path:
    """Return `what` if it is a folder, else the folder of the run whose id is `what` or begins with it.

    Raises `StorageError` or `UnknownName` ("no such <sort>") if there is none.
    """
    if Path(what).is_dir():
        return Path(what)
    if not Path(runs).is_dir() or Path(what).name != what:
        raise StorageError(f"no such {sort}", where=what, do="graft ls lists all runs")
    from graftwork.run.store import RunStore

    return RunStore(Path(runs)).folder(what)


def _verified(executing: Verifier, folder: Path, board: bool) -> Verification | GraftworkError:
    """Verify a run. An error is returned for a run of a board, to be shown in its line, and raised for a single run."""
    from graftwork.core.progress_bar import progress_bar

    try:
        with progress_bar() as progress:
            return executing.verify(folder, progress)
    except GraftworkError as error:
        if not board:
            raise
        return error


def verdict_lines(found: Verification) -> list[str]:
    """Format a verdict for the terminal."""
    lines = [f"run          {found.run}  ({found.method}, seed {found.seed})"]
    for group, (name, good) in GROUPS.items():
        differences = [one for one in found.differences if one.group == group]
        if group == "outcome" and not found.executed:
            lines.append(f"{name:<13}not compared: the inputs differ")
        elif group == "input" and not found.executed and not differences:
            lines.append(f"{name:<13}not compared: the record is damaged")
        elif group != "surroundings" or found.executed:
            lines += [f"{name:<13}{one.line()}" for one in differences] or [f"{name:<13}{good}"]
    return [*lines, *_compared(found), f"verdict      {found.verdict}{_because(found)}"]


def _compared(found: Verification) -> list[str]:
    lines = []
    if found.predictions:
        told = found.predictions
        apart = told["largest_logit_difference"]
        gap, number = "of other examples", told.get("numbers", "logit")
        if apart is not None:
            gap = f"{number}s differ by up to {apart:.3g}" if apart else f"no {number} differs"
        lines.append(f"predictions  {told['equal']:,} of {told['rows']:,} the same, {gap}")
    if found.score and found.executed:
        score = found.score
        here = "none" if score["found"] is None else percent(score["found"], 2)
        lines.append(
            f"score        {metric_title(score['metric'], score['positive'])} on {score['split']}: "
            f"recorded {percent(score['recorded'], 2)}, now {here}"
        )
    if found.executed:
        lines.append(f"executed     in {show(found.seconds, 's')}")
    return lines


def _because(found: Verification) -> str:
    """Return the band that the score was compared with, or what differs from the record."""
    if found.failed_alike:
        return ": it failed again in the same way"
    if found.band is None:
        return f": {_named(found.differences)}" if not found.holds else ""
    told = f"{percent(found.band.low, 2)} and {percent(found.band.high, 2)}"
    if found.band.runs:
        return f": another run of this method is expected between {told} (95 %, from its {found.band.runs} runs)"
    why = "the runs of this method are too few, or score the same"
    return f": the spread is not known ({why}); within 1 point of the score would be between {told}"


def _named(differences: Sequence[Difference]) -> str:
    grave = [one for one in differences if one.group in ("input", "record")] or list(differences)
    return ", ".join(dict.fromkeys(one.about for one in grave))


def _row(folder: Path, found: Verification | GraftworkError) -> str:
    if isinstance(found, GraftworkError):
        return f"{folder.name}  can't be verified: {found.what}"
    named = f": {_named(found.differences)}" if found.differences else ""
    return f"{found.run}  {found.method:<16} seed {found.seed:<3} {found.verdict}{named}"


def _summary(found: Sequence[Verification | GraftworkError]) -> str:
    counts = Counter("can't be verified" if isinstance(one, GraftworkError) else one.verdict for one in found)
    return f"{len(found)} runs: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}"


def _as_json(folder: Path, found: Verification | GraftworkError) -> dict[str, Any]:
    if isinstance(found, GraftworkError):
        return {"run": folder.name, "error": found.message}
    return found.as_json()


def _code(found: Sequence[Verification | GraftworkError]) -> int:
    if any(not isinstance(one, GraftworkError) and not one.holds for one in found):
        return 1
    return 2 if any(isinstance(one, GraftworkError) for one in found) else 0
