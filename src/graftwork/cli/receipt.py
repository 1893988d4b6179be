"""Print the receipt of a run: inputs, settings, versions, results; or a checklist for papers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import runs_kept
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.cli.verify import run_folder
from graftwork.errors import ConfigError, GraftworkError, StorageError, printable
from graftwork.io.files import storage_errors
from graftwork.units import metric_title, named_scores, several, show

if TYPE_CHECKING:
    from graftwork.receipts.checklist import RunGroup


@click.command("receipt", cls=Command)
@click.argument("what", shell_complete=runs_kept)
@option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of runs.")
@option(
    "--checklist",
    is_flag=True,
    help="Print a reproducibility checklist and a methods paragraph over all seeds of the run.",
)
@json_option("receipt.json")
def command(what: str, runs: str, checklist: bool, as_json: bool) -> None:
    """Print the receipt of a run, which records its inputs, settings, versions and results. WHAT is the run's id, a
    prefix of it, or its folder.

    With --checklist: print answers to the questions of reproducibility checklists, and a paragraph for a methods
    section, in Markdown. They cover this run and all runs that differ from it only in the seed.
    """
    if checklist and as_json:
        raise ConfigError("--checklist and --json exclude each other", do="omit one of them")
    from graftwork.run.receipt import read_receipt
    from graftwork.run.receipt_fields import problems

    folder = run_folder(what, runs)
    receipt = read_receipt(folder)
    wrong = problems(receipt)
    if as_json:
        print_json(receipt)
    elif wrong:
        raise GraftworkError(
            "the receipt is incomplete",
            where=str(folder / "receipt.json"),
            got="; ".join(wrong[:5]),
            do="restore it from a copy, or remove the run's folder and run it again",
        )
    elif checklist:
        from graftwork.receipts.checklist import checklist as answered
        from graftwork.receipts.checklist import paragraph

        row = row_of_receipts(folder)
        click.echo(printable(f"## Checklist\n\n{answered(row)}\n\n## Methods\n\n{paragraph(row)}"))
    else:
        click.echo(printable("\n".join(receipt_lines(receipt, verdicts_of(folder)))))


def row_of_receipts(folder: Path) -> RunGroup:
    """Return the receipts of a run and of its other seeds in the same store; runs without a valid one are left out."""
    from graftwork.receipts.checklist import RunGroup
    from graftwork.receipts.file_integrity import read_spec
    from graftwork.receipts.seed_group import row_of
    from graftwork.run.receipt import read_receipt
    from graftwork.run.receipt_fields import problems

    receipts, verdicts = [], []
    for run, _ in row_of(folder.absolute().parent, read_spec(folder)):
        try:
            receipt = read_receipt(run)
        except GraftworkError:
            continue
        if not problems(receipt):
            receipts.append(receipt)
            verdicts += verdicts_of(run)
    return RunGroup(receipts, verdicts)


def verdicts_of(folder: Path) -> list[dict[str, Any]]:
    """Return the verdicts on a run that `graft verify --record` stored. Raises `StorageError` for a damaged file."""
    path = folder / "verified.jsonl"
    if not path.is_file():
        return []
    try:
        with storage_errors(path):
            verdicts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [one | {key: str(one[key]) for key in ("time", "processor", "verdict")} for one in verdicts]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"not the verdicts of a run: {type(error).__name__}: {error}",
            where=str(path),
            do="remove the file; graft verify --record writes a new one",
        ) from None


def receipt_lines(receipt: Mapping[str, Any], verdicts: list[dict[str, Any]]) -> list[str]:
    """Format a receipt for the terminal."""
    identity, method, outcome = receipt["identity"], receipt["method"], receipt["outcome"]
    random, search = receipt["randomness"], method["search"]
    settings = [f"{key} {value}" for key, value in method["config"].items() if key not in ("name", "version")]
    positive = method["question"].get("positive")
    chosen = metric_title(method["selection"]["metric"], positive)
    chosen += f" on {method['selection']['split']}, after {several(search['trials'], 'trial')}"
    seeds = ", ".join(f"{name} {seed}" for name, seed in random["derived"].items())
    lines = [
        f"run          {identity['run']}  ({outcome['status']}), engine {identity['engine']}",
        *[f"made from    {parent}" for parent in identity["parents"]],
        f"method       {method['config']['name']}, version {method['config']['version']}"
        + (f" ({', '.join(settings)})" if settings else ""),
        *[f"recipe       {key} {value}" for key, value in method["recipe"].items()],
        f"chosen by    {chosen}{' over ' + str(search['space']) if search['space'] else ''}",
        f"seeds        {random['seed']}: {seeds}",
    ]
    lines += [*_data_lines(receipt["data"]), *_model_lines(receipt["model"]), *_code_lines(receipt)]
    lines += _outcome_lines(outcome, positive)
    time = receipt["timeline"]
    lines.append(f"when         {time['started']} to {time['ended']}, {show(time['wall_seconds'], 's')}")
    lines += [f"verified     {line['time']} on {line['processor']}: {line['verdict']}" for line in verdicts]
    return lines


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    lines = [f"data         {data['name']}, rows sha256 {data['digest']}"]
    for split, file in data["files"].items():
        lines.append(f"file         {split}: {file['path']}, {file['bytes']:,} bytes, sha256 {file['sha256']}")
    for name, split in data["splits"].items():
        twice = data["duplicates_across"].get(name)
        leak = f", {twice} with inputs of train" if twice is not None else ""
        lines.append(f"split        {name}: {split['rows']:,} rows{leak}, ids sha256 {split['ids_sha256']}")
    return [*lines, f"labels       {data['labels']['count']}, rejected rows {data['rejected_rows']}"]


def _model_lines(model: Mapping[str, Any] | None) -> list[str]:
    if model is None:
        return ["backbone     none"]
    lines = [f"backbone     {model['id']}, {model['parameters']:,} parameters, revision {model['revision']}"]
    return lines + [f"file         {name}, sha256 {sha}" for name, sha in model["files"].items()]


def _code_lines(receipt: Mapping[str, Any]) -> list[str]:
    code, numerics = receipt["code"], receipt["numerics"]
    changes = f", changes sha256 {code['diff_sha256']}" if code["dirty"] else ""
    commit = f", commit {code['commit']}{changes}" if code["commit"] else ""
    shown = ("device", "precision", "threads", "processor", "cpu_capability", "accelerator", "attention")
    told = ", ".join(f"{name.replace('_', ' ')} {numerics[name]}" for name in shown if numerics[name] is not None)
    libraries = ", ".join(f"{name} {version}" for name, version in code["distributions"].items())
    return [
        f"code         graftwork {code['graftwork']}, source sha256 {code['source_sha256']}{commit}",
        f"libraries    python {code['python']}, {libraries}",
        f"arithmetic   {told}",
    ]


def _outcome_lines(outcome: Mapping[str, Any], positive: str | None) -> list[str]:
    lines = []
    if outcome["failure"] is not None:
        lines.append(f"failed       {outcome['failure']['class']}: {outcome['failure']['message']}")
    for split, name in (("validation", "validation"), ("scores", "test")):
        lines += [f"{name:<13}{named_scores(outcome[split], positive=positive)}"] if outcome[split] else []
    log, weights, predictions = outcome["log"], outcome["weights"], outcome["predictions"]
    lines.append(f"log          {log['steps']} steps, sha256 {log['sha256']}")
    if predictions is not None:
        lines.append(f"predictions  {predictions['rows']:,} rows, sha256 {predictions['sha256']}")
    if weights is not None:
        lines.append(f"weights      {weights['stored_parameters']:,} stored, sha256 {weights['sha256']}")
    return lines
