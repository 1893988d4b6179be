"""Pre-train a backbone on unlabelled text, from random weights or from another backbone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import (
    Command,
    device_option,
    json_option,
    option,
    precision_option,
    prices_option,
    print_json,
    progress_bar,
    runs_option,
    seed_option,
    threads_option,
    use_threads,
)
from graftwork.errors import printable

RECIPE = (  # flags of these names override fields of the objective's recipe
    "batch", "rows_at_once", "length", "short_length", "short_share", "learning_rate", "warm_up", "schedule", "beta",
    "weight_decay", "clip", "head_steps",
)  # fmt: skip


@click.command("pretrain", cls=Command)
@click.argument("corpus", nargs=-1, required=True, shell_complete=paths)
@option(
    "--objective", default="masked", show_default=True, metavar="OBJECTIVE", help="With options: masked:unit=words."
)
@option("--from", "backbone", metavar="BACKBONE", help="Go on from minilm, hf:FOLDER, hf:HUB/NAME or runs/ID.")
@option("--size", metavar="NAME", help="tiny, small, base, or a .toml or .json.  [default: tiny]")
@option("--tokenizer", metavar="TOKENIZER", help="The tokenizer to train.  [default: the objective's]")
@option("--vocabulary", type=int, help="Tokens of the tokenizer to train.  [default: as the corpus supports]")
@option("--lowercase/--cased", default=None, help="Whether the tokenizer to train lowers case.")
@option(
    "--unit",
    default="line",
    show_default=True,
    metavar="line|paragraph|file",
    help="A document: line, paragraph or file.",
)
@option("--field", default="text", show_default=True, metavar="NAME", help="Where JSONL has the text.")
@option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="Of text files.")
@option("--steps", type=int, help="Updates.  [default: one pass over the corpus]")
@option("--tokens", type=int, help="Instead: tokens to see.")
@option("--budget", metavar="AMOUNT", help="Instead: what to spend, as 20min, 50kJ, 0.02EUR or 1e15FLOP.")
@option("--batch", type=int, help="Rows of an update.  [default: the objective's, as of all below]")
@option("--rows-at-once", type=int, help="Rows of one pass; the gradients of a batch's passes add up.")
@option("--length", type=int, help="Tokens of a row.")
@option("--short-length", type=int, help="Tokens of a row in the first steps.")
@option("--short-share", type=float, help="Which share of the steps has short rows.  [default: 0.9]")
@option("--learning-rate", type=float, help="Peak of the schedule.")
@option("--warm-up", type=float, help="Share of the steps in which the rate rises.")
@option("--schedule", metavar="linear|cosine|constant|slanted", help="linear, cosine, constant or slanted.")
@option("--beta", type=float, help="AdamW's second.")
@option("--weight-decay", type=float, help="Of matrices.")
@option("--clip", type=float, help="Largest norm of a gradient.")
@option("--head-steps", type=int, help="With --from: that train a head it lacks, and nothing else, first.")
@option("--validation", type=float, default=0.02, show_default=True, help="Share of documents not trained on.")
@option("--validate-every", type=int, metavar="STEPS", help="[default: up to ten times]")
@option("--general", metavar="PATH", help="Text of another sort: perplexity on it before and after.")
@option("--replay", type=float, default=0.0, show_default=True, help="Share of rows that are general text.")
@option("--prompt", default="", metavar="TEXT", help="What samples of a causal model begin with.")
@seed_option("weights, order of rows and masks")
@runs_option
@option("--checkpoint-every", default="1min", show_default=True, metavar="TIME", help="0: after every step.")
@precision_option
@device_option
@threads_option
@option("--cache", metavar="DIR", help="Where tokenised corpora are kept.  [default: ~/.cache/graftwork]")
@prices_option
@json_option("result.json")
def command(corpus: tuple[str, ...], threads: int | None, as_json: bool, **flags: Any) -> None:
    """Train a backbone on the texts of CORPUS: files and folders of plain text or JSONL, compressed or not.

    Repeating the same command resumes an interrupted run from its last checkpoint and reuses a finished one. Under
    torchrun several processes share every batch.
    """
    use_threads(threads)
    from graftwork.pretrain.parallel import this_leads
    from graftwork.pretrain.pretraining import pretrain

    recipe = {name: flags.pop(name) for name in RECIPE}
    with progress_bar(this_leads()) as progress:
        done = pretrain(list(corpus), recipe=recipe, progress=progress, **flags)
    if not this_leads():
        return
    if as_json:
        found = {"folder": str(done.folder), "reused": done.reused}
        print_json(asdict(done.result) | found)
        return
    from graftwork.cli.show import pretraining_lines

    click.echo(printable("\n".join(pretraining_lines(done.folder, done.result))))
    if done.reused:
        click.echo("This run was there already and cost nothing.")
    click.echo(f"Backbone: {done.folder}  (graft compare DATA --backbone {done.folder})")
