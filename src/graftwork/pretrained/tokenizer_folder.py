"""Safe loading of transformers' readers of text, images and sounds, from a copy with only validated files.

Their `from_pretrained` reads more of a folder than requested, and files that settings name. So it gets a copy that
contains only the validated files.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers
from transformers import AutoTokenizer, ByT5Tokenizer, PreTrainedTokenizerFast
from transformers.models.auto import feature_extraction_auto, image_processing_auto, tokenization_auto

from graftwork.errors import ConfigError, StorageError, clip
from graftwork.io.files import storage_errors
from graftwork.io.plain_files import foreign, read_plain
from graftwork.pretrained.byte_tokenizer import fast_bytes
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_json import checked_json
from graftwork.pretrained.tokenizer_file import checked_tokenizer

TOKENIZER = "tokenizer.json"
OBJECTS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "preprocessor_config.json")
OBJECT_OF_TOKENS = "vocab.json"  # may be as large as a vocabulary
TEXTS = ("vocab.txt", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model", OBJECT_OF_TOKENS)
MOST_OF_A_TEXT = 64 << 20  # bytes
PATHS = {  # settings that name files and locations on the machine that saved the folder
    "name_or_path", "special_tokens_map_file", "tokenizer_file", "vocab_file", "merges_file", "added_tokens_file",
    "cache_dir", "subfolder", "revision", "token", "proxies", "local_files_only", "sp_model_kwargs", "chat_template",
    "_commit_hash", "dtype", "torch_dtype", "processor_class",
}  # fmt: skip
KEPT_OF_CONFIG = ("model_type", "tokenizer_class", "_name_or_path")  # a tokenizer is selected by these
BACKENDS = {"TokenizersBackend", "PythonBackend", "SentencePieceBackend", "PreTrainedTokenizer"}
AS_IT_IS = ("TokenizersBackend", "PreTrainedTokenizerFast", "M2M100Tokenizer")  # transformers' M2M100 has no fast one


@contextlib.contextmanager
def checked_copy(folder: Path) -> Iterator[Path]:
    """Provide a temporary folder with validated copies of the tokenizer and processor files. Raises `StorageError`."""
    with tempfile.TemporaryDirectory(prefix="graftwork-") as made:
        copy = Path(made)
        if (path := model_file(folder, "config.json")).is_file():
            config = checked_json(path)
            _require_class(config, path)
            _write(copy / path.name, {key: config[key] for key in KEPT_OF_CONFIG if key in config})
        for name in OBJECTS:
            path = model_file(folder, name)
            if path.is_file():
                content = checked_json(path)
                _require_class(content, path)
                _write(copy / name, {key: value for key, value in content.items() if key not in PATHS})
        path = model_file(folder, TOKENIZER)
        if path.is_file():
            (copy / TOKENIZER).write_bytes(checked_tokenizer(path))
        for name in TEXTS:
            path = model_file(folder, name)
            if path.is_file():
                (copy / name).write_bytes(_text(path))
        yield copy


def open_tokenizer(folder: Path) -> Any:
    """Open transformers' tokenizer of a folder. Raises `ConfigError` if it is not fast, and transformers' errors."""
    with checked_copy(folder) as copy:
        reader = PreTrainedTokenizerFast if _as_it_is(copy) else AutoTokenizer
        try:
            outer = reader.from_pretrained(copy, use_fast=True, local_files_only=True, trust_remote_code=False)
        except ImportError:  # a slow tokenizer whose library is not installed
            raise _not_fast(folder) from None
    if isinstance(outer, ByT5Tokenizer):
        return fast_bytes(outer)
    if not outer.is_fast:
        raise _not_fast(folder)
    return outer


def _not_fast(folder: Path) -> ConfigError:
    return ConfigError(
        "the tokenizer has no tokenizer.json, nor files that one can be made of",
        where=str(folder),
        do="save it with transformers, use_fast=True, and put its tokenizer.json here; transformers makes none for"
        " M2M100 and Marian: take a copy of the model that has the file",
    )


def _as_it_is(copy: Path) -> bool:
    """Return whether tokenizer.json is opened as it is; for some networks (Qwen2) transformers would build another."""
    path = copy / "tokenizer_config.json"
    stated = checked_json(path).get("tokenizer_class") if path.is_file() else None
    return stated in AS_IT_IS and (copy / TOKENIZER).is_file()


def _text(path: Path) -> bytes:
    with storage_errors(path):
        content = read_plain(path, MOST_OF_A_TEXT)
    is_other = foreign(content)
    if is_other and not is_other == "markup":  # a vocabulary may begin with "<"
        raise StorageError(f"this is {is_other} by another name", where=str(path), expected="a vocabulary")
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _require_class(content: dict[str, Any], path: Path) -> None:
    """Raise `StorageError` where a named class is not one of transformers' own."""
    for key in ("tokenizer_class", "image_processor_type", "feature_extractor_type", "processor_class"):
        name = content.get(key)
        if name is not None and not (isinstance(name, str) and _is_transformers(name)):
            raise StorageError(
                f"{key} names a class that is not one of transformers' own",
                where=str(path),
                got=clip(str(name)),
                do=f"remove {key!r} if the model is read by what transformers has",
            )


def _is_transformers(name: str) -> bool:
    """Return whether transformers has, or had, a reader of texts, images or sounds of that name."""
    images = {one for pair in _of(image_processing_auto, "IMAGE_PROCESSOR").values() for one in pair.values() if one}
    known: set[str] = BACKENDS | {*images} | {*_of(tokenization_auto, "TOKENIZER").values()}
    known |= {*_of(feature_extraction_auto, "FEATURE_EXTRACTOR").values()}
    plain = name.removesuffix("Fast").removesuffix("Pil")
    renamed = plain.replace("FeatureExtractor", "ImageProcessor")
    if {name, plain, renamed} & known:
        return True
    reads = plain.endswith(("Tokenizer", "Processor", "FeatureExtractor"))
    of_a_model = plain.removesuffix("Tokenizer") + "Model"  # ElectraTokenizer is BERT's, named after the model
    return reads and plain.isidentifier() and (hasattr(transformers, plain) or hasattr(transformers, of_a_model))


def _of(module: Any, what: str) -> dict[str, Any]:
    """Return transformers' own table, model_type -> class name."""
    table: dict[str, Any] = getattr(module, f"{what}_MAPPING_NAMES")
    return table
