"""Evaluate word vectors on word similarity and analogies, or convert their format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.errors import printable
from graftwork.units import percent

if TYPE_CHECKING:
    from graftwork.pretrain.word_questions import WordScore
    from graftwork.pretrained.word_vector_table import WordVectors


@click.command("vectors", cls=Command)
@click.argument("backbone", shell_complete=paths)
@option(
    "--evaluate",
    multiple=True,
    metavar="FILE",
    help="File of word-pair ratings (WordSim-353, SimLex-999) or analogies. Repeatable.",
)
@option("--to", metavar="PATH", help="Write the vectors: to a folder, or to a .txt, .vec or .bin file, also with .gz.")
@json_option("the result as JSON")
def command(backbone: str, evaluate: tuple[str, ...], to: str | None, as_json: bool) -> None:
    """Describe, evaluate or convert word vectors.

    BACKBONE is a file or folder of word vectors, or a run of graft pretrain that trained some.
    """
    from graftwork.data.readers.word_vector_files import SUFFIXES, write_word_vectors
    from graftwork.data.readers.word_vector_folder import named_word_vectors, write_folder
    from graftwork.pretrain.word_questions import read_questions, score_words

    questions = [read_questions(Path(path)) for path in evaluate]  # before the word vectors, which take longer to open
    vectors = named_word_vectors(backbone)
    scores = [score for asked in questions for score in score_words(vectors, asked)]
    if to is not None:
        path = Path(to)
        if set(path.suffixes[-2:]) & {*SUFFIXES, ".gz"}:
            write_word_vectors(path, vectors)
        else:
            write_folder(path, vectors)
    if as_json:
        found = {"words": len(vectors.words), "width": vectors.width, "dropped": vectors.dropped}
        listed = [dataclasses.asdict(score) for score in scores]
        print_json(found | {"scores": listed})
    else:
        click.echo(printable("\n".join([*about(vectors), *map(line, scores)])))


def about(vectors: WordVectors) -> list[str]:
    """Describe a table of word vectors: its size, and how many lines were dropped."""
    lines = [f"{len(vectors.words):,} words, {vectors.width} numbers each"]
    if vectors.dropped:
        lines.append(f"{vectors.dropped:,} lines were left out: their word had occurred before, or they had none")
    return lines


def line(score: WordScore) -> str:
    """Format a score with its interval and the number of questions."""
    value = "nothing to score"
    if score.value is not None and score.low is not None and score.high is not None:
        value = f"{score.metric} {percent(score.value)} (95 %: {percent(score.low)} … {percent(score.high)})"
    return f"  {score.name:<30} {value:<45} {score.known:,} of {score.questions:,} known"
