"""Validation of the JSON files of a model's folder: settings and sizes, without references to code.

A configuration can name code to run, and sizes beyond any memory: it is validated before any library uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.errors import StorageError, clip
from graftwork.io.files import read_json
from graftwork.io.json_limits import SMALL

NAMES_CODE = (  # would run or fetch something other than the network of model_type
    "auto_map", "trust_remote_code", "custom_pipelines", "custom_generate", "code_revision", "quantization_config",
    "compression_config", "kernel_config", "use_kernels", "fusion_config", "distributed_config", "per_layer_config",
    "transformers_weights", "gguf_file", "_attn_implementation_internal", "experts_implementation",
    "_experts_implementation", "_experts_implementation_internal",
)  # fmt: skip
ATTENTIONS = (None, "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")
DTYPES = (None, "auto", "float32", "float16", "bfloat16", "float64")
ONE_OF: Mapping[str, tuple[Any, ...]] = {
    "_attn_implementation": ATTENTIONS, "attn_implementation": ATTENTIONS, "dtype": DTYPES, "torch_dtype": DTYPES,
    "_attn_implementation_autoset": (True, False),
    "position_embedding_type": (None, "absolute"),  # transformers 5 treats relative ones as absolute
}  # fmt: skip
REPEATED = (  # repetition counts: building a million empty layers takes hours
    "num_hidden_layers", "n_layer", "n_layers", "num_hidden_groups", "inner_group_num", "num_adapter_layers", "layers",
    "n_highway", "depths",
)  # fmt: skip
MOST_REPEATED = 1024
LARGEST = 1 << 24  # maximum size: the largest vocabularies are below 2^20
WAVES = ("rope_theta", "rotary_emb_base", "rope_local_base_freq")  # bases of rotary positions, which are no sizes
LONGEST_WAVE = 10**12
LONGEST_TEXT, LONGEST_LIST = 1_000, 1_024


def checked_sizes(path: Path) -> dict[str, Any]:
    """Read a JSON object, checked by `checked_json` and `require_modest`. Raises `StorageError`."""
    content = checked_json(path)
    require_modest(content, path)
    return content


def checked_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a model's folder that names no code. Raises `StorageError`."""
    content = read_json(path, SMALL)
    if not isinstance(content, dict):
        raise StorageError(
            "not an object with settings", where=str(path), got=f"a {type(content).__name__}", expected="{…}"
        )
    for key in NAMES_CODE:
        if content.get(key) and not (key == "quantization_config" and _was_gguf(content[key])):
            raise StorageError(
                f"{key!r} asks for code or settings that are never taken from a file",
                where=str(path),
                got=clip(str(content[key])),
                do=f"remove {key!r} if the network is one of transformers' own without it",
            )
    for key, known in ONE_OF.items():
        value = content.get(key, known[0])
        if not any(type(value) is type(one) and value == one for one in known):
            raise StorageError(
                f"{key!r} is none of the known words",
                where=str(path),
                got=clip(str(value)),
                expected=f"one of {', '.join(map(str, known))}",
            )
    return content


def _was_gguf(stated: Any) -> bool:
    """Return whether a `quantization_config` is only the trace of a GGUF file, left by transformers in config.json.

    Such a network is saved with plain weights, so that the entry has no effect.
    """
    return isinstance(stated, dict) and stated.get("quant_method") == "gguf"


def require_modest(content: Mapping[str, Any], path: Path) -> None:
    """Raise `StorageError` for a number, text or list too large for any network, before anything is built."""
    times, waiting = 1, list(content.items())
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
            continue
        items = value if isinstance(value, list) else [value]
        if len(items) > LONGEST_LIST:
            raise _absurd(key, f"a list of {len(items):,}", f"at most {LONGEST_LIST:,}", path)
        for item in items:
            if isinstance(item, str) and len(item) > LONGEST_TEXT:
                raise _absurd(key, f"a text of {len(item):,} characters", f"at most {LONGEST_TEXT:,}", path)
            most = LONGEST_WAVE if key in WAVES else LARGEST
            if isinstance(item, int | float) and not abs(item) <= most:
                raise _absurd(key, clip(str(item)), f"at most {most:,}", path)
        if key in REPEATED:
            times *= max(1, sum(item for item in items if isinstance(item, int)))
    if times > MOST_REPEATED:
        raise _absurd("the number of layers", clip(str(times)), f"at most {MOST_REPEATED:,}", path)


def _absurd(key: str, got: str, expected: str, path: Path) -> StorageError:
    return StorageError(
        f"{key[:80]} is larger than any network has",
        where=str(path),
        got=got,
        expected=expected,
        do="use the file that belongs to the weights",
    )
