"""Export a task module to the files of another tool, such as ONNX."""

from __future__ import annotations

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, print_facts, progress_bar, threads_option, use_threads
from graftwork.units import percent, several, show


@click.command("export", cls=Command)
@click.argument("module", shell_complete=paths)
@click.argument("folder", metavar="DIR", shell_complete=paths)
@option("--to", required=True, metavar="EXPORTER", help="Format to write: onnx, … `graft ls exporters` lists them.")
@option("--int8", is_flag=True, help="Convert weights to 8-bit integers; tells how many predictions that changes.")
@threads_option
@json_option("what was written and compared as JSON")
def command(module: str, folder: str, to: str, int8: bool, threads: int | None, as_json: bool) -> None:
    """Export MODULE, a task module or a run's folder, to the new folder DIR.

    The files are run by the other tool's library on the self-test and on rows of the module's data, and refused unless
    they give the logits of the module. DIR/README.md shows how to use them without Graftwork. What is exported to onnx
    opens like a task module too: graft predict DIR "a text".
    """
    with progress_bar(first="opening the module") as progress:
        use_threads(threads)
        from graftwork.ship.export import export

        told = export(module, folder, to=to, int8=int8, progress=progress)
    lines = [f"{folder}: {told['task']}, for {to}, {show(told['bytes'], 'B')}; see README.md there"]
    texts, known = several(told["texts"], "text"), told["known_rows"]
    apart = f"differ by at most {told['largest_difference']:.2g} from those of the module in fp32"
    lines.append(f"its logits of {texts}, {known} of them from the module's data, {apart}")
    if int8:
        share, of = told["int8"]["changed_predictions"], several(told["int8"]["predictions"], "prediction")
        lines.append(f"8-bit integers change {percent(share)} % of {of}")
    print_facts(told, lines, as_json)
