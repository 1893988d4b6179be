"""`graft ls` for every word it knows, and the help of every command."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from graftwork.cli.main import command_summaries
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.registry import methods, objectives

Graft = Callable[..., Any]
Boards = Callable[[str], Any]

WORDS = {
    "backbones": {"minilm", "tiny_text", "hf:<folder or hub name>", "random:<backbone>"},
    "kinds": {"classification", "multilabel", "regression"},
    "methods": {"adapter", "bitfit", "full", "linear_probe", "lora", "majority", "tfidf_svm", "top_layers", "ulmfit"},
    "metrics": {"accuracy", "f1", "macro_f1", "matthews", "pearson", "spearman"},
    "meters": {"train_seconds", "money", "energy_joules"},
    "exporters": {"onnx", "sklearn"},
    "builtin": {"builtin:tickets", "builtin:same_question"},
}
NO_FLAGS = {"experience"}  # commands that take words alone


@pytest.mark.parametrize("word", WORDS)
def test_parts_are_listed_one_a_line(graft: Graft, word: str) -> None:
    done = graft("ls", word)
    assert done.code == 0
    lines = done.out.splitlines()
    names = [line.partition("  ")[0] for line in lines]
    assert WORDS[word] <= set(names)
    assert names == sorted(names)
    if word not in ("backbones", "builtin"):
        assert all(re.fullmatch(r"[a-z0-9_]+  +[A-Za-z`].*", line) for line in lines), "each with what it is"


@pytest.mark.parametrize("what", ["methods", "objectives"])
def test_a_part_is_listed_with_its_settings_as_they_are_written(graft: Graft, what: str) -> None:
    parts = {"methods": methods, "objectives": objectives}[what]
    for name in parts.names():
        told, *lines = graft("ls", what, name).out.splitlines()
        assert told == f"{name}  {parts.summary(name)}"
        known = {item.name: item.default for item in fields(parts.get(name))}
        assert [tuple(line.split()[:2]) for line in lines[: len(known)]] == [(k, str(v)) for k, v in known.items()]
        assert (lines == ["  no settings"]) == (not known)
    shown = "  size           64       width of the bottleneck"
    assert shown in graft("ls", "methods", "adapter").out.splitlines()


def test_a_name_is_of_a_part_that_there_is(graft: Graft) -> None:
    assert "did you mean 'adapter'?" in graft("ls", "methods", "adaptor").err
    assert "backbones have no settings to list" in graft("ls", "backbones", "minilm").err
    assert graft("ls", "metrics", "accuracy").out.splitlines()[1] == "  no settings"


def test_every_builtin_data_set_loads(graft: Graft) -> None:
    for name in graft("ls", "builtin").out.split():
        assert len(load(Task.from_file(name)).train.examples) > 100


@pytest.mark.parametrize("words", [("ls",), ("ls", "runs")])
def test_runs_are_listed_with_task_method_seed_and_score(graft: Graft, boards: Boards, words: tuple[str, ...]) -> None:
    board = boards("classification")
    done = graft(*words, "--runs", board.runs)
    lines = done.out.splitlines()
    assert len(lines) == 12
    line = next(line for line in lines if line.startswith(board.run_of("tfidf_svm").name))
    assert line.split()[1:7] == ["data", "tfidf_svm", "seed", "0", "accuracy", "100.0"]


def test_no_runs_is_said(graft: Graft) -> None:
    assert graft("ls").out == "no runs in runs\n"
    assert not Path("runs").exists()


def test_an_unknown_word_gets_the_nearest(graft: Graft) -> None:
    done = graft("ls", "method")
    assert done.code == 2
    assert "unknown list 'method'" in done.err
    assert "did you mean 'methods'?" in done.err


@pytest.mark.parametrize("name", command_summaries())
def test_help_documents_every_flag(graft: Graft, name: str) -> None:
    command: click.Command = importlib.import_module(f"graftwork.cli.{name}").command
    parts = {(name, part): one for part, one in command.commands.items()} if isinstance(command, click.Group) else {}
    options = 0
    for words, one in ({(name,): command} | parts).items():
        shown = " ".join(graft(*words, "--help").out.split())
        assert one.help, f"{words} has no help"
        for option in (parameter for parameter in one.params if isinstance(parameter, click.Option)):
            assert option.help, f"{option.name} of {words} has no help"
            assert option.opts[0] in shown
            assert " ".join(option.help.split()[:4]) in shown
            options += 1
    assert options or name in NO_FLAGS
    for argument in command.params:
        if isinstance(argument, click.Argument):
            shown_as = re.split(r"[^A-Z]", argument.metavar or str(argument.name).upper())[0]
            assert shown_as in command.help, f"the help does not explain {argument.name}"
