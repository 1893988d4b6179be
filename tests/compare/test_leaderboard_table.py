"""The printed table: narrow enough, plain, complete."""

from __future__ import annotations

import io
from typing import Any

import pytest
from boards import board, broken, decision, partly, row, usual
from rich.console import Console

from graftwork.compare.leaderboard_table import print_table, table_lines


def printed(made: dict[str, Any], width: int = 100, terminal: bool = False, verbose: bool = True) -> str:
    stream = io.StringIO()
    print_table(made, Console(file=stream, width=width, force_terminal=terminal, color_system=None), verbose)
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_it_fits(terminal: bool) -> None:
    rows = [*usual(), row("a_method_with_a_rather_long_name", 0.85, 70_000)]
    text = printed(board(rows, data_report={"warnings": ["x " * 200]}), terminal=terminal)
    assert max(map(len, text.splitlines())) <= 100
    assert "not shown for want of width" in text
    assert "\x1b" not in text


def test_a_narrow_terminal_keeps_the_score() -> None:
    text = printed(board(usual()), width=60, terminal=True)
    assert max(map(len, text.splitlines())) <= 60
    assert "accuracy" in text
    assert "full" in text


def test_a_file_is_not_narrowed() -> None:
    assert "memory" in printed(board(usual()), width=40)


def test_rows_marks_and_reasons() -> None:
    made = board([row("majority", 0.5, 0.1), row("lost", 0.2, 1), row("full", 0.9, 10), broken("lora")])
    lines = table_lines(made)
    marks = {line[2:].split()[0]: line[0] for line in lines[2:6]}
    assert marks == {"full": "*", "majority": "*", "lost": "!", "lora": " "}
    text = printed(made)
    assert "lora: out of memory; asked for 7 GB" in text
    assert "and more" not in text
    assert "! below the majority class" in text


def test_runs_that_failed_have_a_column_where_there_are_any() -> None:
    made = board([row("majority", 0.3, 0.1), row("lora", 0.86, 10), partly("full", 0.9, 20, 1)])
    header, _, *lines = table_lines(made)[:5]
    assert "runs" in header
    assert {line[2:].split()[0]: "4 of 5" in line for line in lines} == {"lora": False, "full": True, "majority": False}
    assert " runs " not in table_lines(board(usual()))[0]


def test_the_method_to_use_is_marked_and_told_above_the_table() -> None:
    made = board(usual(), decision=decision("adapter", {"full": 0.0, "adapter": 0.001}))
    lines = printed(made, verbose=False).splitlines()
    assert lines[2].startswith("Use adapter: accuracy 89.3 on test")
    marks = {line[2:].split()[0]: line[0] for line in table_lines(made)[2:7]}
    assert marks == {"full": "*", "adapter": ">", "linear_probe": "*", "majority": "*", "lora": " "}
    assert "> use it (chosen on validation; the scores are on test); * no other" in " ".join(printed(made).split())
    assert "use it" not in printed(board(usual())) and not any(line[0] == ">" for line in table_lines(board(usual())))


def test_few_runs_are_said_above_and_over_the_verdicts() -> None:
    told = decision("full", {"full": 0.0})
    few = printed(board([row("majority", 0.3, 0.1, 3), row("full", 0.9, 10, 3)], decision=told))
    assert few.splitlines()[0].endswith("3 runs of a method (5 show a ranking, 10 support a claim)")
    assert "\nVerdicts (not enough runs)\n" in few
    enough = printed(board([row("majority", 0.3, 0.1), row("full", 0.9, 10)], decision=told))
    assert "not enough runs" not in enough and "show a ranking" not in enough and "\nVerdicts\n" in enough


def test_what_is_not_asked_for_is_counted_and_what_failed_is_told_all_the_same() -> None:
    made = board(usual(), notes=("mind this",), data_report={"warnings": ["two duplicates", "one more"]})
    short, whole = printed(made, verbose=False), printed(made)
    assert short.splitlines()[-1] == ("With --verbose, and in the report: verdicts (4), notes (1), about the data (2).")
    for part in ("\nVerdicts\n", "mind this", "two duplicates"):
        assert part in whole and part not in short
    assert "With --verbose" not in whole
    for text in (short, whole):
        assert "\nNot finished\n  lora: out of memory; asked for 7 GB\n" in text
    bare = printed(board([row("full", 0.9, 10)]), verbose=False)
    assert "With --verbose" not in bare


def test_text_from_data_neither_steers_the_terminal_nor_is_markup() -> None:
    text = printed(board(usual(), data_report={"warnings": ["[red]\x1b[31mboo[/red]"]}))
    assert "[red]\N{REPLACEMENT CHARACTER}[31mboo[/red]" in text


def test_every_part_is_there() -> None:
    text = printed(board(usual(), notes=("mind this",), data_report={"warnings": ["two duplicates"]}))
    for part in (
        "toy · accuracy",
        "The highest mean on test is full",
        "Verdicts",
        "Not finished",
        "mind this",
        "two duplicates",
    ):
        assert part in text
