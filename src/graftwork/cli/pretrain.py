"""Pre-train a backbone on unlabelled text, from random weights or from another backbone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from graftwork.cli.options import (
    Command,
    device_option,
    json_option,
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
@click.argument("corpus", nargs=-1, required=True)
@click.option(
    "--objective", default="masked", show_default=True, metavar="NAME", help="With options: masked:unit=words."
)
@click.option("--from", "backbone", metavar="BACKBONE", help="Go on from minilm, hf:FOLDER, hf:HUB/NAME or runs/ID.")
@click.option("--size", metavar="NAME", help="tiny, small, base, or a .toml or .json.  [default: tiny]")
@click.option("--tokenizer", metavar="NAME", help="The tokenizer to train.  [default: the objective's]")
@click.option("--vocabulary", type=int, help="Tokens of the tokenizer to train.  [default: as the corpus supports]")
@click.option("--lowercase/--cased", default=None, help="Whether the tokenizer to train lowers case.")
@click.option("--unit", default="line", show_default=True, metavar="NAME", help="A document: line, paragraph or file.")
@click.option("--field", default="text", show_default=True, metavar="NAME", help="Where JSONL has the text.")
@click.option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="Of text files.")
@click.option("--steps", type=int, help="Updates.  [default: one pass over the corpus]")
@click.option("--tokens", type=int, help="Instead: tokens to see.")
@click.option("--budget", metavar="AMOUNT", help="Instead: what to spend, as 20min, 50kJ, 0.02EUR or 1e15FLOP.")
@click.option("--batch", type=int, help="Rows of an update.  [default: the objective's, as of all below]")
@click.option("--rows-at-once", type=int, help="Rows of one pass; the gradients of a batch's passes add up.")
@click.option("--length", type=int, help="Tokens of a row.")
@click.option("--short-length", type=int, help="Tokens of a row in the first steps.")
@click.option("--short-share", type=float, help="Which share of the steps has short rows.  [default: 0.9]")
@click.option("--learning-rate", type=float, help="Peak of the schedule.")
@click.option("--warm-up", type=float, help="Share of the steps in which the rate rises.")
@click.option("--schedule", metavar="NAME", help="linear, cosine, constant or slanted.")
@click.option("--beta", type=float, help="AdamW's second.")
@click.option("--weight-decay", type=float, help="Of matrices.")
@click.option("--clip", type=float, help="Largest norm of a gradient.")
@click.option("--head-steps", type=int, help="With --from: that train a head it lacks, and nothing else, first.")
@click.option("--validation", type=float, default=0.02, show_default=True, help="Share of documents not trained on.")
@click.option("--validate-every", type=int, metavar="STEPS", help="[default: up to ten times]")
@click.option("--general", metavar="PATH", help="Text of another sort: perplexity on it before and after.")
@click.option("--replay", type=float, default=0.0, show_default=True, help="Share of rows that are general text.")
@click.option("--prompt", default="", metavar="TEXT", help="What samples of a causal model begin with.")
@seed_option("weights, order of rows and masks")
@runs_option
@click.option("--checkpoint-every", default="1min", show_default=True, metavar="TIME", help="0: after every step.")
@precision_option
@device_option
@threads_option
@click.option("--cache", metavar="DIR", help="Where tokenised corpora are kept.  [default: ~/.cache/graftwork]")
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
