"""Find nearest words: the neighbours of a word by its vector or in the context of a sentence; and analogies."""

from __future__ import annotations

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.errors import ConfigError, printable


@click.command("nearest", cls=Command)
@click.argument("backbone", shell_complete=paths)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@option("--minus", multiple=True, metavar="WORD", help="Taken away: king woman --minus man.")
@option("--in", "sentence", metavar="SENTENCE", help="Where the word stands; BACKBONE reads it there.")
@option("--among", multiple=True, metavar="PATH", help="With --in: texts in whose sentences to look.")
@option("--same-word", is_flag=True, help="With --in: only where the same word stands.")
@option("--depth", type=int, help="With --in: blocks to read after.  [default: all]")
@option("--count", default=10, show_default=True, help="How many neighbours.")
@json_option("what was found as JSON")
def command(
    backbone: str,
    words: tuple[str, ...],
    minus: tuple[str, ...],
    sentence: str | None,
    among: tuple[str, ...],
    same_word: bool,
    depth: int | None,
    count: int,
    as_json: bool,
) -> None:
    """BACKBONE is a file of word vectors, a folder of them, or a run of graft pretrain. Several WORDS are added.

    With --in, BACKBONE is any text backbone, and the neighbours are occurrences of words in other sentences.
    """
    if count < 1:
        raise ConfigError("--count must be at least 1", got=str(count))
    if sentence is None:
        if among or same_word or depth is not None:
            raise ConfigError("--among, --same-word and --depth need --in", do="say the sentence in which the word is")
        _by_vector(backbone, words, minus, count, as_json)
        return
    if len(words) > 1 or minus or not among:
        raise ConfigError("--in takes one word, and texts to look in", expected="WORD --in SENTENCE --among PATH")
    from graftwork.pretrain.corpus import open_corpus
    from graftwork.pretrain.neighbours_in_context import nearest_in_context, sentences_of
    from graftwork.pretrained.open_backbone import open_backbone

    opened = open_backbone(backbone, precision="fp32")
    texts = (document.text for document in open_corpus(among, validation=0).documents())
    found = nearest_in_context(
        opened, words[0], sentence, sentences_of(texts), count=count, depth=depth, same_word=same_word
    )
    listed = [{"word": one.word, "cosine": one.cosine, "place": one.place, "sentence": one.sentence} for one in found]
    _say(as_json, listed, [f"{one.cosine:.4f}  {one.marked}" for one in found])


def _by_vector(backbone: str, words: tuple[str, ...], minus: tuple[str, ...], count: int, as_json: bool) -> None:
    from graftwork.data.readers.word_vector_folder import named_word_vectors

    found = named_word_vectors(backbone).neighbours(words, minus, count)
    listed = [{"word": word, "cosine": cosine} for word, cosine in found]
    _say(as_json, listed, [f"{cosine:.4f}  {word}" for word, cosine in found])


def _say(as_json: bool, listed: list[dict[str, object]], lines: list[str]) -> None:
    if as_json:
        print_json(listed)
    else:
        click.echo(printable("\n".join(lines)))
