"""List or clear the cache: hidden states of frozen backbones, tokenised corpora, and files out of tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graftwork.cli.completion import one_of
from graftwork.cli.options import Command, json_option, option, print_json
from graftwork.errors import ConfigError, UnknownName, printable
from graftwork.units import duration, parse_bytes, read_amount, several, show

if TYPE_CHECKING:
    from graftwork.io.cache_folder import CacheEntry


@click.command("cache", cls=Command)
@click.argument("action", default="ls", shell_complete=one_of("ls", "clear"))
@option("--cache", metavar="DIR", help="Cache folder.  [default: $GRAFTWORK_CACHE or ~/.cache/graftwork]")
@option("--older-than", metavar="TIME", help="Clear only entries that were not used for this long, e.g. 7d or 12h.")
@json_option("the entries (with clear those removed) as JSON")
def command(action: str, cache: str | None, older_than: str | None, as_json: bool) -> None:
    """List or clear the cache. ACTION is ls (the default: most recently used first) or clear.

    Runs reuse hidden states of the frozen backbone that earlier runs computed. Pre-training reuses the tokens of its
    corpus. Images and sounds inside tables are kept as files. Clearing the cache changes no result; it only costs
    time, but a command that reads such files needs them to its end.
    """
    from graftwork.data.readers.embedded_media import media_folder
    from graftwork.io.cache_folder import CACHE_SIZE, CacheFolder, cache_folder
    from graftwork.io.files import storage_errors
    from graftwork.pretrain import corpus_cache

    if action not in ("ls", "clear"):
        raise UnknownName("action", action, ["ls", "clear"], else_do="see graft cache --help")
    if older_than is not None and action != "clear":
        raise ConfigError(
            "--older-than is only for graft cache clear", got=f"graft cache {action}", do="graft cache clear"
        )
    unused = _seconds(older_than) if older_than is not None else 0.0
    folder = CacheFolder(cache_folder(cache))
    with storage_errors(folder.root):
        passes = folder.entries()[::-1] if action == "ls" else folder.clear(unused)
    media = media_folder(cache)
    with storage_errors(media.root):
        files = media.entries() if action == "ls" else media.clear(unused)
    corpora = corpus_cache.corpora_folder(cache)
    entries = corpus_cache.cache_entries(corpora) if action == "ls" else corpus_cache.clear(corpora, unused)
    if as_json:
        passed = {"folder": str(folder.root), "entries": [_content(one) | dict(one.about()) for one in passes]}
        tokenised = {"folder": str(corpora), "entries": [_content(one) for one in entries]}
        written = {"folder": str(media.root), "files": len(files), "bytes": sum(file.bytes for file in files)}
        print_json({"action": action, "passes": passed, "corpora": tokenised, "media": written})
        return
    lines = [_line(entry, time.time()) for entry in passes] if action == "ls" else []
    lines.append(_total(action, several(len(passes), "pass"), passes, folder.root))
    if action == "ls":
        lines[-1] += f"; the limit is {show(parse_bytes(CACHE_SIZE), 'bytes')}, unless --cache-size sets another"
    if entries:
        sort = "corpus or vocabulary" if len(entries) == 1 else "corpora and vocabularies"
        lines.append(_total(action, f"{len(entries):,} tokenised {sort}", entries, corpora))
    if files:
        lines.append(_total(action, f"{several(len(files), 'file')} out of tables", files, media.root))
    click.echo(printable("\n".join(lines)))


def _seconds(words: str) -> float:
    amount, unit = read_amount(words)
    if unit != "s":
        raise ConfigError(
            "--older-than needs a time", got=words, expected="like 7d or 12h", do="give hours, days or weeks"
        )
    return amount


def _content(entry: CacheEntry) -> dict[str, Any]:
    """Return an entry as JSON; `used` is the time of its last use, in seconds since the Unix epoch."""
    return {"path": str(entry.path), "bytes": entry.bytes, "used": entry.used}


def _line(entry: CacheEntry, now: float) -> str:
    about = entry.about()
    depth = about.get("depth", "")
    what = f"states entering block {depth}" if depth else "pooled features" if about else "damaged"
    rows = f"{int(about['rows']):,} sequences" if about.get("rows", "").isdigit() else ""
    used = f"used {duration(max(0.0, now - entry.used))} ago"
    name = entry.path.name[:12]
    return f"{name}  {about.get('backbone', '–'):<20} {what:<24} {rows:<20} {show(entry.bytes, 'bytes'):>8}  {used}"


def _total(action: str, what: str, entries: Sequence[CacheEntry], root: Path) -> str:
    """Return how much is, or was, kept of `what`."""
    size = show(sum(entry.bytes for entry in entries), "bytes")
    return f"{size} in {what} under {root}" if action == "ls" else f"removed {what} under {root} and freed {size}"
