"""What `mkdocs build` reads beside `docs/`: pages of the checkout, the commands' own help, the cards' own words.

`CONTRIBUTING.md` and the READMEs of `benchmarks/` are pages of the site under their paths in the checkout. A link from
any page to one of them is kept; a link to another file of the checkout (code, results) becomes the file's name, for the
site does not hold it. A line `<!-- commands -->`, `<!-- cards FOLDER -->` or `<!-- measurements -->` is replaced by
what it names.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parent
DOCS = CHECKOUT / "docs"
LINK = re.compile(r"\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)?)\]\(([^)#\s]*)(#[^)\s]*)?\)")
MARK = re.compile(r"^<!-- (commands|measurements|cards (\w+)) -->$", re.MULTILINE)
WIDTH = 100  # characters of a line of help


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside `docs/`."""
    for path in [CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "benchmarks").rglob("*.md"))]:
        name = path.relative_to(CHECKOUT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for path in sorted((CHECKOUT / "benchmarks").rglob("*.svg")):
        files.append(File.generated(config, path.relative_to(CHECKOUT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Fill in what is generated, and turn paths of the checkout into paths of the site."""
    outside = page.file.src_uri.startswith("benchmarks/") or page.file.src_uri == "CONTRIBUTING.md"
    place = page.file.src_uri if outside else f"docs/{page.file.src_uri}"  # in the checkout

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))  # in the checkout
        uri = there.removeprefix("docs/")
        if files.get_file_from_path(uri) is None:
            return text if (CHECKOUT / there).exists() else found[0]  # what is nowhere is mkdocs' to refuse
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    return MARK.sub(lambda found: _generated(found[1], found[2]), LINK.sub(link, markdown))


def _generated(what: str, folder: str | None) -> str:
    if what == "commands":
        return _commands()
    return _cards(folder) if folder else _measurements()


def _commands() -> str:
    """The help of every command, as `graft COMMAND --help` prints it."""
    from graftwork.cli.main import SECTIONS, command_summaries, group

    parts = []
    for heading, names in SECTIONS.items():
        parts.append(f"## {heading}")
        whole = group(names)
        for name in names:
            parts += _help(whole.commands[name], f"graft {name}", command_summaries()[name])
    return "\n\n".join(parts)


def _help(command: click.Command, path: str, summary: str) -> list[str]:
    context = click.Context(command, info_name=path, max_content_width=WIDTH, terminal_width=WIDTH)
    parts = [f"### {path}", summary, f"```text\n{command.get_help(context)}\n```"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            help_of_it = click.Context(below, info_name=f"{path} {name}", terminal_width=WIDTH).get_help()
            parts += [f"#### {path} {name}", f"```text\n{help_of_it}\n```"]
    return parts


def _cards(folder: str) -> str:
    """A row per card of `docs/cards/FOLDER`: its name, and its first sentence."""
    rows = ["| name | what it is |", "|---|---|"]
    for path in sorted((DOCS / "cards" / folder).glob("*.md")):
        text = path.read_text(encoding="utf-8").partition("\n")[2].strip()
        first = re.split(r"(?<=[^.][.])\s+(?=[A-Z*`])|\n\n", text)[0].replace("\n", " ")
        rows.append(f"| [`{path.stem}`](../cards/{folder}/{path.name}) | {first} |")
    return "\n".join(rows)


def _measurements() -> str:
    """A line per README of `benchmarks/`: its title, linked."""
    pages = sorted((CHECKOUT / "benchmarks").rglob("*.md"))
    titles = [(path, path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")) for path in pages]
    return "\n".join(f"- [{title}](../{path.relative_to(CHECKOUT).as_posix()})" for path, title in titles)
