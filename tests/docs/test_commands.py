"""Every `graft` command of the documents, as it stands there, is one that the command line takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from docs.blocks import CHECKOUT, commands
from graftwork.cli.main import group

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])


def parse(line: str) -> None:
    """Parse a command as click does before it calls it."""
    name, *words = shlex.split(line, comments=True)
    command: click.Command = group(words)
    outer = click.Context(command, info_name=name, **command.context_settings)  # a command keeps its first help option
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        command = command.commands[name]
    if not words or words[0] != "--version":
        command.make_context(name, words, parent=None if command is outer.command else outer)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_are_taken_as_they_stand(page: Path) -> None:
    for line in commands(page):
        try:
            parse(line)
        except click.ClickException as error:
            pytest.fail(f"{page.name}: {line}\n{error.format_message()}")
