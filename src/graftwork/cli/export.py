"""Export a task module, or the tasks of a bank, to the files of another tool, such as ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.given_modules import is_bank
from graftwork.cli.options import Command, json_option, option, print_facts, threads_option, use_threads
from graftwork.core.progress_bar import progress_bar
from graftwork.errors import ConfigError
from graftwork.units import percent, several, show

if TYPE_CHECKING:
    from graftwork.core.progress import Progress


@click.command("export", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("folder", metavar="DIR", shell_complete=paths)
@option("--to", required=True, metavar="EXPORTER", help="Format to write; `graft ls exporters` lists them.")
@option(
    "--task", "tasks", multiple=True, metavar="TASK", help="Of a bank, the task to export. Repeatable.  [default: all]"
)
@option("--int8", is_flag=True, help="Convert weights to 8-bit integers; tells how many predictions that changes.")
@option(
    "--tasks-as",
    type=click.Choice(("fp16", "int8")),
    help="Of a bank, how adapters are stored; int8 halves them, and tells how many predictions that changes."
    "  [default: fp16; with --int8 int8]",
)
@option("--data", metavar="FILE", help="New place of the training file, if it was moved: its rows are compared.")
@threads_option
@json_option("what was written and compared as JSON")
def command(
    module: str,
    folder: str,
    to: str,
    tasks: tuple[str, ...],
    int8: bool,
    tasks_as: str | None,
    data: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Export MODULE, a task module, a run's folder or a bank, to the new folder DIR.

    The files are run by the other tool's library on the self-test and on rows of the module's data, and refused unless
    they give the logits of the module. DIR/README.md shows how to use them without Graftwork. What is exported to onnx
    opens like a task module too, or like a bank: graft predict DIR "a text".

    The tasks of a bank share one backbone; a single --task of it is exported like a task module.
    """
    if tasks and not is_bank(module):
        raise ConfigError("--task is for banks", where=module, do="omit it")
    if tasks_as is not None and (len(tasks) == 1 or not is_bank(module)):
        raise ConfigError("--tasks-as is for several tasks of a bank", where=module, do="omit it")
    if data is not None and is_bank(module):
        raise ConfigError("--data is for one module", where=module, do="omit it")
    with progress_bar(first="opening the module") as progress:
        use_threads(threads)
        told = (
            _bank(module, tasks, folder, to, int8, tasks_as, progress)
            if is_bank(module)
            else _one(module, folder, to, int8, progress, data)
        )
    print_facts(told, _lines(told), as_json)


def _one(module: Any, folder: str, to: str, int8: bool, progress: Progress, data: str | None = None) -> dict[str, Any]:
    from graftwork.ship.export import export

    return export(module, folder, to=to, int8=int8, data=data, progress=progress)


def _bank(
    bank: str, tasks: tuple[str, ...], folder: str, to: str, int8: bool, tasks_as: str | None, progress: Progress
) -> dict[str, Any]:
    from graftwork.bank.bank import Bank
    from graftwork.ship.export_bank import export_bank

    opened = Bank.open(bank, device="cpu")
    if len(tasks) == 1:
        return _one(opened.module(tasks[0]), folder, to, int8, progress)
    modules = {name: opened.module(name) for name in tasks or opened.tasks}
    return export_bank(modules, folder, to=to, int8=int8, tasks_as=tasks_as, progress=progress)


def _lines(told: dict[str, Any]) -> list[str]:
    from graftwork.ship.export import share_changed

    what = told["task"] if "task" in told else several(told["tasks"], "task")
    lines = [f"{told['folder']}: {what}, for {told['to']}, {show(told['bytes'], 'B')}; see README.md there"]
    texts = several(told["texts"], "text")
    known = f", {told['known_rows']} of them from the module's data," if "known_rows" in told else ""
    before = "before the conversion " if "int8" in told else ""
    apart = f"differ by at most {told['largest_difference']:.2g} from the module's"
    lines.append(f"{before}the logits of {texts}{known} {apart}")
    if "times_as_fast" in told:
        lines.append(
            f"it answers {told['times_as_fast']:.2g} times as many texts a second as the module, on one thread"
        )
    if small := told.get("int8", told.get("adapters_int8")):
        tasks = small if "task" not in told else {"": small}
        for name, one in tasks.items():
            lines.append(f"8-bit integers change {share_changed(one)}{f' of {name}' if name else ''}")
    if scores := told.get("scores"):
        metric, score = next(iter(scores.items()))
        lines.append(f"in 8-bit integers its {metric} on test is {percent(score)}")
    for name in told.get("not_in_int8", ()):
        share = percent(told["adapters_int8"][name]["changed_predictions"])
        lines.append(f"the adapters of {name} are not in 8-bit integers, which would change {share} % of predictions")
    return lines
