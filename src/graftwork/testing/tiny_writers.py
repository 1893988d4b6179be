"""Folders of tiny random encoder-decoder networks that generate text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graftwork.testing.tiny_networks import WORDS

PIECES = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((f"\u2581{word}", -2.0) for word in WORDS)]
PIECES += [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz"]
T5: dict[str, Any] = {
    "vocab_size": len(PIECES) + 4, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3,
    "num_decoder_layers": 3, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
    "decoder_start_token_id": 0,
}  # fmt: skip
BART: dict[str, Any] = {
    "vocab_size": len(PIECES) + 4, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "init_std": 0.4,
    "max_position_embeddings": 48, "pad_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": None,
    "decoder_start_token_id": 0,
}  # fmt: skip
WRITERS: dict[str, dict[str, Any]] = {  # model_type, or model_type and variant -> configuration
    "t5": T5,
    "t5 gated": T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "mt5": T5,
    "bart": BART | {"decoder_start_token_id": 1, "bos_token_id": 3},
    "mbart": BART | {"decoder_start_token_id": 5, "bos_token_id": 3},
    "marian": BART | {"decoder_vocab_size": len(PIECES) + 4},
    "pegasus": BART,
    "m2m_100": BART | {"decoder_start_token_id": 1, "bos_token_id": 3},
}
TRANSLATORS = {  # name -> model_type, class of its tokenizer, and three of its language tags
    "mbart": ("mbart", "MBartTokenizer", ("en_XX", "de_DE", "ro_RO")),
    "mbart-50": ("mbart", "MBart50Tokenizer", ("en_XX", "de_DE", "uk_UA")),
    "nllb": ("m2m_100", "NllbTokenizer", ("eng_Latn", "deu_Latn", "fra_Latn")),
    "m2m100": ("m2m_100", "M2M100Tokenizer", ("__en__", "__de__", "__fr__")),
}
STATED: dict[str, dict[str, Any]] = {"bart": {"forced_bos_token_id": 3}, "marian": {"bad_words_ids": [[0]]}}
WHISPER: dict[str, Any] = {
    "vocab_size": len(PIECES) + 8, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "init_std": 0.4,
    "num_mel_bins": 8, "max_source_positions": 50, "max_target_positions": 24, "pad_token_id": 0, "eos_token_id": 1,
    "bos_token_id": 1, "decoder_start_token_id": 2, "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip
LANGUAGES = {f"<|{name}|>": len(PIECES) + number for number, name in enumerate(("en", "de", "fr"))}
TASKS = {"transcribe": len(PIECES) + 3, "translate": len(PIECES) + 4}
NO_TIMES = WHISPER["vocab_size"] - 1  # id of <|notimestamps|>; larger ids would be timestamps
SPOKEN: dict[str, dict[str, Any]] = {  # name -> values in a Whisper's generation_config.json
    "english": {"is_multilingual": False, "suppress_tokens": [4, 5], "begin_suppress_tokens": [1, 7]},
    "many languages": {
        "is_multilingual": True, "lang_to_id": LANGUAGES, "task_to_id": TASKS,
        "forced_decoder_ids": [[1, None], [2, TASKS["transcribe"]]],
    },
    "german": {"is_multilingual": True, "lang_to_id": LANGUAGES, "task_to_id": TASKS, "language": "german"},
}  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    """Write a Unigram tokenizer with the vocabulary `PIECES`, which appends </s> to each text."""
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(Unigram(PIECES, unk_id=2))
    tokenizer.pre_tokenizer, tokenizer.decoder = Metaspace(), decoders.Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def write_seq2seq(folder: Path, name: str = "t5 gated", seed: int = 5) -> Path:
    """Write the network `name` of `WRITERS` with `write_tokenizer`, in the format of `save_pretrained`."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig

    write_tokenizer(folder)
    config = AutoConfig.for_model(name.partition(" ")[0], **WRITERS[name])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AutoModelForSeq2SeqLM.from_config(config)
        if name == "t5 gated":
            network.lm_head.weight = torch.nn.Parameter(0.5 * torch.randn_like(network.lm_head.weight))
    told = {part: getattr(config, part) for part in ("decoder_start_token_id", "eos_token_id", "pad_token_id")}
    network.generation_config = GenerationConfig(**told, **STATED.get(name, {}))
    network.save_pretrained(folder)
    if name == "t5 gated":  # as it is in the folders of T5 1.1
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(content | {"tie_word_embeddings": False}))
    return folder


def write_translator(folder: Path, name: str = "nllb", seed: int = 5) -> Path:
    """Write the network `name` of `TRANSLATORS` in the format of `save_pretrained`; language tags precede the texts.

    The tokenizer of mbart instead puts the tag after the text, and its decoder starts with the tag ro_RO.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig

    model_type, _, tags = TRANSLATORS[name]
    tokenizer = _with_tags(name)
    tokenizer.save_pretrained(folder)
    if name == "m2m100":  # transformers has no fast class for it; folders with a tokenizer.json name the slow one
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "M2M100Tokenizer"}))
    start = tokenizer.convert_tokens_to_ids(tags[2]) if name == "mbart" else 2
    told = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": start}
    config = AutoConfig.for_model(model_type, **BART | told | {"vocab_size": len(tokenizer)})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AutoModelForSeq2SeqLM.from_config(config)
    network.generation_config = GenerationConfig(**told)
    network.save_pretrained(folder)
    return folder


def _with_tags(name: str) -> Any:
    """Return the tokenizer of the network `name` of `TRANSLATORS`: the vocabulary `PIECES` and the language tags."""
    import transformers
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace
    from tokenizers.processors import TemplateProcessing

    _, named, tags = TRANSLATORS[name]
    pieces = [(special, 0.0) for special in ("<s>", "<pad>", "</s>", "<unk>")] + PIECES[3:]
    if name.startswith("mbart"):
        return getattr(transformers, named)(vocab=[*pieces, *((tag, 0.0) for tag in tags), ("<mask>", 0.0)])
    if name == "nllb":
        letters = [piece for piece, _ in pieces if len(piece) == 1 or piece.startswith("<")]
        vocabulary = {piece: number for number, piece in enumerate([*letters, "\u2581"])}
        return transformers.NllbTokenizer(vocab=vocabulary, merges=[], extra_special_tokens=list(tags))
    tokenizer = Tokenizer(Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer, tokenizer.decoder = Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens(list(tags))
    ends = [(tags[0], len(pieces)), ("</s>", 2)]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{tags[0]} $A </s>", pair=f"{tags[0]} $A $B </s>", special_tokens=ends
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def write_whisper(folder: Path, name: str = "english", seed: int = 5) -> Path:
    """Write a Whisper for one second of sound, with generation settings `name` of `SPOKEN`, as `save_pretrained`."""
    import torch
    from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    write_tokenizer(folder)
    WhisperFeatureExtractor(feature_size=WHISPER["num_mel_bins"], chunk_length=1).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = WhisperForConditionalGeneration(WhisperConfig(**WHISPER))
    told = {part: WHISPER[part] for part in ("decoder_start_token_id", "eos_token_id", "pad_token_id")}
    spoken = {"no_timestamps_token_id": NO_TIMES, "return_timestamps": False} | SPOKEN[name]
    network.generation_config = GenerationConfig(max_length=WHISPER["max_target_positions"], **told, **spoken)
    network.save_pretrained(folder)
    return folder
