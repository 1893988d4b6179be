"""The data report on published data: known duplicates and known cues are found."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task

pytestmark = pytest.mark.real


def test_the_duplicates_of_sms_spam(shared: Path) -> None:
    """5,574 messages, of which hundreds repeat an earlier one word for word: those are counted anew here."""
    path = shared / "data" / "sms_spam" / "all.tsv"
    texts = [line.rsplit("\t", 1)[0] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    found = gw.data_report(path)
    assert sum(found["duplicates_within"].values()) == len(texts) - len(set(texts)) > 400
    assert found["near_duplicates"]["within"]["train"] >= 30  # mass messages with another number
    assert found["near_duplicates"]["across"]["rows"]["test"] >= 20
    spam = {cue["word"]: cue for cue in found["cues"]["strongest"] if cue["label"] == "spam"}
    assert spam["£"]["share_at_least"] > 0.8


def test_the_question_words_of_trec6(shared: Path) -> None:
    folder = shared / "data" / "trec6"
    found = gw.data_report(Task.from_file(folder / "train.tsv", test=folder / "test.tsv"))
    assert found["duplicates_across"]["rows"]["test"] > 0
    cues = {(cue["word"], cue["label"]) for cue in found["cues"]["strongest"]}
    assert {("who", "HUM"), ("where", "LOC"), ("many", "NUM")} <= cues


def test_hypotheses_give_answers_away(shared: Path) -> None:
    """Negation says contradiction, in SNLI and SICK (Gururangan et al. 2018; Poliak et al. 2018)."""
    snli = gw.data_report(shared / "data" / "snli" / "dev.tsv")["cues"]["strongest"]
    nobody = next(cue for cue in snli if cue["word"] == "nobody")
    assert (nobody["side"], nobody["label"]) == ("text_b", "contradiction")
    assert nobody["with_label"] == nobody["rows"] >= 30
    assert all(cue["side"] == "text_b" for cue in snli)  # premises were not written for a label
    sick = gw.data_report(shared / "data" / "sick_nli" / "train.tsv")["cues"]["strongest"]
    assert ("text_b", "not", "contradiction") in {(cue["side"], cue["word"], cue["label"]) for cue in sick}


def test_a_sample_that_is_too_small_says_nothing_of_cues(shared: Path) -> None:
    found = gw.data_report(shared / "data" / "mnli_sample" / "dev_matched.tsv")
    assert found["cues"]["words"] == 0 and found["cues"]["tests"] > 1000


def test_pictures(shared: Path) -> None:
    folder = shared / "data" / "hymenoptera"
    found = gw.data_report(Task.from_file(folder / "train", test=folder / "val"))
    assert found["duplicates_across"]["rows"] == {"validation": 0, "test": 0}
    assert found["near_duplicates"]["within"] == {"train": 0, "validation": 0, "test": 0}
