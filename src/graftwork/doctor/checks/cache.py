"""The cache of frozen forward passes and of corpora."""

from __future__ import annotations

from collections.abc import Iterator

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.pretrain.corpus_cache import cache_entries, corpora_folder
from graftwork.registry import checks
from graftwork.units import show


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report a note where a cache entry is incomplete: it takes space and is never read."""
    folder = CacheFolder(cache_folder(asked.cache))
    entries, corpora = folder.entries(), cache_entries(corpora_folder(asked.cache))
    torn = [entry for entry in entries if not entry.about()]
    held, of_corpora = (sum(one.bytes for one in ones) for ones in (entries, corpora))
    facts = {"passes": len(entries), "bytes": held, "torn": len(torn), "corpora": len(corpora)}
    told = f"{show(held, 'bytes')} in {len(entries):,} passes, {show(of_corpora, 'bytes')} in {len(corpora):,} corpora"
    yield Finding(f"{told} under {folder.root.parent}", facts=facts | {"corpora_bytes": of_corpora})
    if torn:
        why = f"{show(sum(entry.bytes for entry in torn), 'bytes')} that are never read"
        yield Finding(f"{len(torn):,} torn", "note", why, "graft cache clear")


checks.register("cache")(Check("folders", look))
