"""What no score of likeness sees, counted by hand."""

from __future__ import annotations

from graftwork.targets.fluency import KnownTriples, fluency


def test_new_and_repeated_are_counted() -> None:
    trained = KnownTriples.of(["the red house stands", "in 1999"])
    found = fluency(
        ["A cat, 12 kg, sat there.", "nothing"], ["a cat 12 kg 1999 and 7.5 the red house the red house", " "], trained
    )
    # triples of 13 words: 2 in the source (a cat 12, cat 12 kg), "the red house" twice in train; 7 and 5 are two words
    assert found == {
        "texts": 2, "empty": 1, "repeating": 1, "triples": 12, "new_triples": 8, "numbers": 3, "new_numbers": 1,
    }  # fmt: skip


def test_letters_of_unspaced_scripts_are_words() -> None:
    assert fluency(["我很好"], ["我很好吗"], KnownTriples.of([]))["new_triples"] == 1
