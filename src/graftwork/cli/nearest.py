"""Find the nearest neighbours of a word, by word vector or by hidden state in a sentence."""

from __future__ import annotations

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, json_option, option, print_facts
from graftwork.errors import ConfigError


@click.command("nearest", cls=Command)
@click.argument("backbone", shell_complete=paths)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@option("--minus", multiple=True, metavar="WORD", help="Word to subtract: king woman --minus man.")
@option("--in", "sentence", metavar="SENTENCE", help="Sentence that contains the word.")
@option("--among", multiple=True, metavar="PATH", help="With --in: text file or folder to search.")
@option("--same-word", is_flag=True, help="With --in: find only occurrences of the same word.")
@option("--depth", type=int, help="With --in: number of blocks after which hidden states are taken.  [default: all]")
@option("--count", default=10, show_default=True, help="Number of neighbours.")
@json_option("the result as JSON")
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
    """Find the nearest neighbours of WORDS. Several WORDS are added.

    BACKBONE is a file or folder of word vectors, or a run of graft pretrain that trained some.

    With --in, BACKBONE is any text backbone. The word is then compared by its hidden state in that sentence with words
    in the sentences of --among.
    """
    if count < 1:
        raise ConfigError("--count must be at least 1", got=str(count))
    if sentence is None:
        if among or same_word or depth is not None:
            raise ConfigError("--among, --same-word and --depth need --in", do="give the sentence: --in SENTENCE")
        _by_vector(backbone, words, minus, count, as_json)
        return
    if len(words) > 1 or minus or not among:
        raise ConfigError("--in needs exactly one WORD, and --among", expected="WORD --in SENTENCE --among PATH")
    from graftwork.pretrain.corpus import open_corpus
    from graftwork.pretrain.neighbours_in_context import nearest_in_context, sentences_of
    from graftwork.pretrained.open_backbone import open_backbone

    opened = open_backbone(backbone, precision="fp32")
    texts = (document.text for document in open_corpus(among, validation=0).documents())
    found = nearest_in_context(
        opened, words[0], sentence, sentences_of(texts), count=count, depth=depth, same_word=same_word
    )
    listed = [{"word": one.word, "cosine": one.cosine, "place": one.place, "sentence": one.sentence} for one in found]
    print_facts(listed, [f"{one.cosine:.4f}  {one.marked}" for one in found], as_json)


def _by_vector(backbone: str, words: tuple[str, ...], minus: tuple[str, ...], count: int, as_json: bool) -> None:
    from graftwork.data.readers.word_vector_folder import named_word_vectors

    found = named_word_vectors(backbone).neighbours(words, minus, count)
    listed = [{"word": word, "cosine": cosine} for word, cosine in found]
    print_facts(listed, [f"{cosine:.4f}  {word}" for word, cosine in found], as_json)
