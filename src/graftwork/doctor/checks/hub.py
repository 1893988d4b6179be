"""The cache of the model hub: backbones that can be opened without the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import constants

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.registry import checks
from graftwork.units import several, show

MODELS = "models--"


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report the cached models, their size, and whether others would be downloaded."""
    root = Path(constants.HF_HUB_CACHE)
    sizes = {folder.name.removeprefix(MODELS).replace("--", "/"): _bytes(folder) for folder in root.glob(f"{MODELS}*")}
    offline = bool(constants.HF_HUB_OFFLINE)
    others = "nothing is fetched (HF_HUB_OFFLINE)" if offline else "others are fetched on first use"
    facts = {"folder": str(root), "models": sizes, "offline": offline}
    models = several(len(sizes), "model")
    yield Finding(f"{show(sum(sizes.values()), 'bytes')} in {models} under {root}; {others}", facts=facts)


def _bytes(folder: Path) -> int:
    """Return the size of the files themselves; snapshots are links to them."""
    return sum(path.stat().st_size for path in folder.glob("blobs/*") if path.is_file())


checks.register("hub")(Check("folders", look))
