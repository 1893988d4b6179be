"""The requested backbone: its size, and whether it can be opened."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub

from graftwork.doctor.check import Check, Finding, IntendedUse, failure_of
from graftwork.errors import GraftworkError
from graftwork.machine.environment import numerics
from graftwork.pretrained.model_folder import HUB_NAME
from graftwork.pretrained.open_backbone import FOLDER, FRESH, open_backbone
from graftwork.registry import checks
from graftwork.units import duration, show


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "fails" if the backbone can't be opened; a note, without a download, if the hub would be needed."""
    if to_be_fetched(asked.backbone):
        why = "the first run waits for the network"
        yield Finding(f"{asked.backbone} is not on this machine", "note", why, "the check hub lists what is")
        return
    begun = time.perf_counter()
    precision = numerics("auto", "cpu", network=False)["precision"]  # no measurement: nothing is computed in it
    try:
        card = open_backbone(asked.backbone, precision=precision).card
    except GraftworkError as error:
        yield failure_of(error, "name another by --backbone")
        return
    seconds = time.perf_counter() - begun
    facts = {"id": card.id, "revision": card.revision, "parameters": card.parameters, "seconds": seconds}
    size = f"{show(card.parameters, 'parameters')} parameters"
    yield Finding(f"{card.id} opens in {duration(seconds)}: {size}, reads {card.modality}s", facts=facts)


def to_be_fetched(name: str) -> bool:
    """Return whether opening the backbone would need the network."""
    source = name.removeprefix(FRESH)
    if not source.startswith(FOLDER):
        return False
    source = source.removeprefix(FOLDER)
    if Path(source).expanduser().exists() or not HUB_NAME.fullmatch(source):
        return False
    return not isinstance(huggingface_hub.try_to_load_from_cache(source, "config.json"), str)


checks.register("backbone")(Check("software", look))
