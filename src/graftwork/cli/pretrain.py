"""Pre-train a backbone on unlabelled text, from random or pretrained weights."""

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
    runs_option,
    seed_option,
    threads_option,
    use_threads,
)
from graftwork.core.progress_bar import progress_bar
from graftwork.errors import printable

RECIPE = (  # flags of these names override fields of the objective's recipe
    "batch", "rows_at_once", "length", "short_length", "short_share", "learning_rate", "warm_up", "schedule", "beta",
    "weight_decay", "clip", "head_steps",
)  # fmt: skip


@click.command("pretrain", cls=Command)
@click.argument("corpus", nargs=-1, required=True, shell_complete=paths)
@option(
    "--objective",
    default="masked",
    show_default=True,
    metavar="OBJECTIVE",
    help="Training objective with its settings, e.g. masked:unit=words. graft ls objectives lists them.",
)
@option(
    "--from",
    "backbone",
    metavar="BACKBONE",
    help="Start from this backbone: minilm, hf:FOLDER, hf:HUB/NAME or runs/ID.  [default: random weights]",
)
@option("--size", metavar="NAME", help="Network size: tiny, small, base, or a .toml or .json file.  [default: tiny]")
@option("--tokenizer", metavar="TOKENIZER", help="Tokenizer to train.  [default: that of the objective]")
@option(
    "--vocabulary", type=int, help="Vocabulary size of the tokenizer to train.  [default: what the corpus supports]"
)
@option("--lowercase/--cased", default=None, help="Whether the tokenizer to train lowercases texts.")
@option(
    "--unit", default="line", show_default=True, metavar="line|paragraph|file|pair", help="What counts as one document."
)
@option(
    "--field",
    default="text",
    show_default=True,
    metavar="NAME",
    help="Key of the text in JSONL files; of parallel text two columns, like source,target.",
)
@option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="Encoding of text files.")
@option("--steps", type=int, help="Training steps.  [default: one pass over the corpus]")
@option("--tokens", type=int, help="Instead of --steps: number of training tokens.")
@option("--budget", metavar="AMOUNT", help="Instead of --steps: what to spend, e.g. 20min, 50kJ, 0.02EUR or 1e15FLOP.")
@option(
    "--batch",
    type=int,
    help="Rows per step.  [default of this and the options down to --head-steps: that of the objective]",
)
@option("--rows-at-once", type=int, help="Rows per forward pass; gradients of a batch are accumulated.")
@option("--length", type=int, help="Tokens per row.")
@option("--short-length", type=int, help="Tokens per row during the first steps.")
@option("--short-share", type=float, help="Share of the steps with short rows.  [default: 0.9]")
@option("--learning-rate", type=float, help="Peak learning rate.")
@option("--warm-up", type=float, help="Share of the steps in which the learning rate rises.")
@option(
    "--schedule",
    metavar="linear|cosine|constant|inverse_sqrt|slanted",
    help="Shape of the learning rate after the warm-up.",
)
@option("--beta", type=float, help="Second beta of AdamW.")
@option("--weight-decay", type=float, help="Weight decay of matrices.")
@option("--clip", type=float, help="Largest gradient norm.")
@option("--head-steps", type=int, help="With --from: first steps in which only a new head is trained.")
@option("--validation", type=float, default=0.02, show_default=True, help="Share of documents held out for validation.")
@option(
    "--validate-every", type=int, metavar="STEPS", help="Steps between validations.  [default: up to ten validations]"
)
@option("--general", metavar="PATH", help="Text of another domain; its perplexity is measured before and after.")
@option(
    "--replay", type=float, default=0.0, show_default=True, help="Share of the training rows that come from --general."
)
@option("--prompt", default="", metavar="TEXT", help="Start of the samples that a causal model generates.")
@seed_option("weights, row order and masks")
@runs_option
@option(
    "--checkpoint-every",
    default="1min",
    show_default=True,
    metavar="TIME",
    help="Time between checkpoints; 0: after every step.",
)
@precision_option
@device_option
@threads_option
@option("--cache", metavar="DIR", help="Folder for tokenised corpora.  [default: ~/.cache/graftwork]")
@prices_option
@json_option("the result as JSON")
def command(corpus: tuple[str, ...], threads: int | None, as_json: bool, **flags: Any) -> None:
    """Pre-train a backbone on CORPUS: files and folders of plain text or JSONL, compressed or not.

    Repeating the command resumes an interrupted run from its last checkpoint, and reuses a finished run. Under
    torchrun, several processes share each batch.
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
        click.echo("This run existed already and was reused.")
    click.echo(f"Backbone: {done.folder}  (graft compare DATA --backbone {done.folder})")
