"""The commands of `graft bank` that export tasks to other libraries, and import tasks from them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from graftwork.cli.completion import paths, tasks_of_bank
from graftwork.cli.in_bank import add_to_bank, place_in_bank
from graftwork.cli.options import Command, json_option, option, print_facts, print_json
from graftwork.core.part_settings import split_words
from graftwork.core.task import Task
from graftwork.errors import ConfigError, clip, printable


@click.command("export-task", cls=Command)
@click.argument("bank", shell_complete=paths)
@click.argument("task", shell_complete=tasks_of_bank)
@click.argument("folder", metavar="DIR", shell_complete=paths)
@option(
    "--format",
    "format",
    required=True,
    metavar="peft|adapters",
    help="Library: peft (for LoRA) or adapters (for bottleneck adapters).",
)
@json_option("the folder, task and format as JSON")
def export_task(bank: str, task: str, folder: str, format: str, as_json: bool) -> None:
    """Export TASK of BANK to the folder DIR, for peft or adapters. TASK@2 is version 2.

    DIR/README.md contains the Python code that loads the exported model. Its logits are the same.
    """
    from graftwork.bank.bank import Bank
    from graftwork.bank.exchange.exchange_formats import write_folder

    name, version = version_of(task)
    opened = Bank.open(bank)
    write_folder(opened.module(name, version), Path(folder), format)
    if as_json:
        print_json(
            {
                "folder": folder,
                "bank": bank,
                "task": name,
                "version": version or opened.tasks[name].version,
                "format": format,
            }
        )
    else:
        click.echo(printable(f"{folder}: {name}, for {format}; see README.md there"))


@click.command("import", cls=Command)
@click.argument("bank", shell_complete=paths)
@click.argument("folder", metavar="DIR", shell_complete=paths)
@option("--name", required=True, metavar="TASK", help="Name of the task in the bank.")
@option(
    "--backbone",
    metavar="BACKBONE",
    help="Network that the adapter was trained on, e.g. hf:FOLDER.  [default: that of the bank]",
)
@option("--labels", metavar="A,B,…", help="Class names in the order of the outputs.  [default: those saved in DIR]")
@option("--pair", is_flag=True, help="Inputs are pairs of texts.")
@json_option("the task and its version as JSON")
def import_task(
    bank: str, folder: str, name: str, backbone: str | None, labels: str | None, pair: bool, as_json: bool
) -> None:
    """Import into BANK what peft or adapters saved in DIR: LoRA or bottleneck adapters with a text classifier.

    Predictions are the same as in that library. Scores and costs are unknown.
    """
    from graftwork.bank.bank import Bank
    from graftwork.bank.exchange.exchange_formats import read_folder
    from graftwork.bank.exchange.imported_module import write_imported
    from graftwork.machine.environment import numerics
    from graftwork.pretrained.open_backbone import open_backbone

    place = place_in_bank(bank, name, Task(name, Path(folder)), backbone, "auto")
    there = (Path(bank) / "bank.json").is_file()
    opened = Bank.open(bank) if there else None
    if backbone is None and (opened is None or opened.card is None):
        raise ConfigError(
            "the backbone of this adapter is unknown", where=bank, do="name it: --backbone hf:FOLDER or hf:HUB/NAME"
        )
    precision = (opened.precision if opened else None) or numerics("auto", "auto")["precision"]
    if opened is not None and opened.card is not None and not opened.card.writes:
        network = opened.open_backbone()
    else:
        network = open_backbone(place.backbone, precision=precision)
    with tempfile.TemporaryDirectory() as made:
        module = Path(made) / "module"
        write_imported(
            module,
            read_folder(Path(folder), network),
            network,
            name=name,
            labels=split_words(labels or ""),
            pair=pair,
            precision=precision,
        )
        done = add_to_bank(opened or Bank.create(bank), module, name)
    print_facts(done.as_json, done.lines, as_json)


def version_of(words: str) -> tuple[str, int | None]:
    """Split `tickets@2` into name and version; `tickets` has the version None. Raises `ConfigError`."""
    name, at, number = words.partition("@")
    if at and not number.isdecimal():
        raise ConfigError("not a version", got=clip(words), expected="TASK@NUMBER, e.g. tickets@2")
    return name, int(number) if at else None
