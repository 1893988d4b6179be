"""Real word vectors, against gensim on the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graftwork.data.readers.word_vector_files import read_word_vectors
from graftwork.errors import DataError
from graftwork.pretrain.word_questions import read_questions, score_words

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # gensim leaves files open
]
GLOVE, FASTTEXT, MODEL = "glove.6B.50d.10k.txt.gz", "gensim_lee_fasttext.vec", "gensim_crime-and-punishment.bin"
RATED, ANALOGIES = ("gensim_wordsim353.tsv", "gensim_simlex999.txt"), "gensim_questions-words.txt"

TOLD = (0.527, 0.277)  # in docs/how-to/word-vectors.md


@pytest.fixture
def folder(shared: Path) -> Path:
    return shared / "fixtures" / "embeddings"


def test_glove_as_gensim_reads_and_ranks_it(folder: Path) -> None:
    from gensim.models import KeyedVectors

    ours = read_word_vectors(folder / GLOVE)
    theirs = KeyedVectors.load_word2vec_format(str(folder / GLOVE), binary=False, no_header=True)
    assert list(ours.words) == theirs.index_to_key and np.array_equal(ours.table, theirs.vectors)
    for plus, minus in ((["play"], []), (["piano"], []), (["king", "woman"], ["man"]), (["the", "bank"], ["money"])):
        expected = theirs.most_similar(positive=plus, negative=minus, topn=20)
        found = ours.neighbours(plus, minus, count=20)
        assert [word for word, _ in found] == [word for word, _ in expected]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)
    for name, told in zip(RATED, TOLD, strict=True):
        (score,) = score_words(ours, read_questions(folder / name))
        _, spearman, unknown = theirs.evaluate_word_pairs(str(folder / name))
        assert score.value == pytest.approx(spearman.statistic, abs=1e-6)
        assert score.value == pytest.approx(told, abs=5e-4)
        assert 100 * (1 - score.known / score.questions) == pytest.approx(unknown)
    total, sections = theirs.evaluate_word_analogies(str(folder / ANALOGIES))
    *each, whole = score_words(ours, read_questions(folder / ANALOGIES))
    assert whole.value == pytest.approx(total) == pytest.approx(0.585, abs=5e-4)
    expected = {one["section"]: len(one["correct"]) for one in sections if one["section"] != "Total accuracy"}
    assert {one.name: round((one.value or 0) * one.known) for one in each} == expected


def test_fasttext_as_gensim_reads_it(folder: Path) -> None:
    from gensim.models import KeyedVectors

    ours = read_word_vectors(folder / FASTTEXT)
    theirs = KeyedVectors.load_word2vec_format(str(folder / FASTTEXT), binary=False)
    assert list(ours.words) == theirs.index_to_key and np.array_equal(ours.table, theirs.vectors)
    with pytest.raises(DataError, match="fastText's own format"):
        read_word_vectors(folder / MODEL)
