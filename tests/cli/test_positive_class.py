"""The class that f1 is of stands beside the number wherever one is shown, and how it was chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]
METHODS = ("--methods", "majority,tfidf_svm", "--seeds", "1", "--exhaustive")
NAKED = re.compile(r"\bf1\b(?! of )(?!-)")


def strings(value: Any) -> Iterator[str]:
    """All texts in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


@pytest.fixture
def mail(written: Callable[..., Path]) -> Path:
    rows = [
        (f"{'free money' if i % 4 == 0 else 'see you'} {i}", ("spam", "ham", "ham", "ham")[i % 4]) for i in range(60)
    ]
    return written("mail.csv", ("text", "label"), rows)


@pytest.mark.slow
def test_everywhere(graft: Graft, mail: Path, tmp_path: Path) -> None:
    flags = ("--metrics", "f1,accuracy")
    board = tmp_path / "board"
    compared = graft("compare", mail, *flags, *METHODS, "--out", board, "--verbose")
    assert compared.code == 0, compared.err
    told = " ".join(compared.out.split())
    assert "mail · f1 of 'spam', points" in told and "f1 of 'spam' 100.0 on test" in told
    assert "f1 is of 'spam', the rarer class in train (--positive names the other)" in told
    trained = graft("train", mail, *flags, "--method", "tfidf_svm", "--bank", tmp_path / "b.bank", "--task", "mail")
    assert "test       f1 of 'spam' 100.0" in trained.out
    assert "f1 is of 'spam', the rarer class in train (--positive names the other)." in trained.out
    found = json.loads(graft("train", mail, *flags, "--method", "tfidf_svm", "--json").out)
    assert found["positive"] == "spam" and found["scores"]["f1"] == 1
    module, run = found["module"], found["id"]
    curve, ladder = ("--out", tmp_path / "curve"), ("--out", tmp_path / "ladder")
    commands: list[tuple[Any, ...]] = [
        ("show", run),
        ("show", module),
        ("score", module, mail),
        ("score", module, mail, "--also", module),
        ("receipt", run),
        ("receipt", run, "--checklist"),
        ("ls", "runs"),
        ("verify", run),
        ("bank", "ls", tmp_path / "b.bank"),
        ("bank", "show", tmp_path / "b.bank", "mail"),
        ("data", mail, *flags),
        ("curve", mail, *flags, *METHODS[:2], "--sizes", "50%,100%", "--draws", "2", *curve),
        ("train", mail, *flags, "--budget", "1s", *ladder),
    ]
    shown = [compared.out, trained.out]
    for command in commands:
        done = graft(*command)
        assert done.code == 0, done.err
        shown.append(done.out)
    shown += [path.read_text(encoding="utf-8") for path in (board / "report.html", tmp_path / "curve" / "report.html")]
    shown.append((Path(module) / "README.md").read_text(encoding="utf-8"))
    for text in shown:
        text = re.sub(r"--metrics f1\S*|<td>f1, accuracy</td>|&#39;", "'", text)  # what was asked for
        text = re.sub(r'(?:value|data-metric)="f1"', "", text)  # names in the script of the page
        assert "f1 of 'spam'" in text or "f1 is of 'spam'" in text, text
        assert not [text[at.start() - 60 : at.end() + 60] for at in NAKED.finditer(text.replace("f1 is of", ""))]
    assert json.loads(graft("score", module, mail, "--json").out)["positive"] == "spam"
    assert json.loads(graft("ls", "runs", "--json").out)[0]["positive"] == "spam"
    assert json.loads(graft("bank", "ls", tmp_path / "b.bank", "--json").out)[0]["positive"] == "spam"
    for name in (board / "leaderboard.json", tmp_path / "curve" / "curve.json", tmp_path / "ladder" / "ladder.json"):
        assert json.loads(name.read_text(encoding="utf-8"))["task"]["positive"] == "spam"


@pytest.mark.parametrize(
    ("labels", "flags", "positive", "chosen", "warned"),
    [
        (("1", "1", "0"), (), "0", "the rarer class", "1"),
        (("0", "0", "1"), (), "1", "the rarer class", None),
        (("1", "1", "0"), ("--positive", "1"), "1", "as --positive", None),
        (("yes", "yes", "no"), (), "no", "the rarer class", "yes"),
        (("True", "True", "False"), (), "False", "the rarer class", "True"),
        (("X", "X", "not_X"), (), "not_X", "the rarer class", "X"),
        (("toxic", "toxic", "non-toxic"), (), "non-toxic", "the rarer class", "toxic"),
        (("spam", "spam", "ham"), (), "ham", "the rarer class", None),
        (("no", "yes"), (), "yes", "one of two classes as frequent", None),
        (("a", "b", "c"), ("--positive", "b", "--metrics", "f1"), "b", "as --positive", None),
    ],
)
def test_how_it_was_chosen(
    graft: Graft,
    written: Callable[..., Path],
    labels: tuple[str, ...],
    flags: tuple[str, ...],
    positive: str,
    chosen: str,
    warned: str | None,
) -> None:
    rows = [(f"some text {i}", labels[i % len(labels)]) for i in range(20 * len(labels))]
    data = written("d.csv", ("text", "label"), rows)
    found = json.loads(graft("data", data, *flags, "--json").out)
    assert found["positive"]["label"] == positive and found["positive"]["chosen"].startswith(chosen)
    assert f"f1 is of {positive!r}, {chosen}" in graft("data", data, *flags).out
    lines = [line for line in found["warnings"] if line.startswith("f1 is of ")]
    assert [line.endswith(f"--positive {warned}.") for line in lines] == ([True] if warned else [])


def test_other_metrics_are_of_no_class(graft: Graft, mail: Path, written: Callable[..., Path]) -> None:
    found = json.loads(graft("data", mail, "--metrics", "accuracy,macro_f1", "--json").out)
    assert "positive" not in found
    three = written("three.csv", ("text", "label"), [(f"text {i}", "abc"[i % 3]) for i in range(60)])
    told = graft("train", three, "--method", "majority")
    assert "macro_f1 " in told.out and " of '" not in told.out
    assert json.loads(graft("train", three, "--method", "majority", "--json").out)["positive"] is None
