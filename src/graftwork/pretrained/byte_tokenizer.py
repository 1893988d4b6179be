"""ByT5's tokenizer, whose tokens are the bytes of a text (Xue et al. 2022, arXiv:2105.13626), as a fast tokenizer."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from graftwork.pretrained.build_backbone import NO_LENGTH

BYTES = 256
READ = 1024  # bytes that the networks of the paper were trained to read at once


def fast_bytes(slow: ByT5Tokenizer) -> PreTrainedTokenizerFast:
    """Return a fast tokenizer with the tokens and maximum length of `slow`; without a maximum, it is `READ`.

    Decoding leaves out bytes that are not valid UTF-8, as `slow` does.
    """
    letters = _letters()
    tokenizer = Tokenizer(BPE({letters[byte]: byte + slow.offset for byte in range(BYTES)} | _named(slow), merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace("\N{REPLACEMENT CHARACTER}", "")])
    end = str(slow.eos_token)
    tokenizer.post_processor = TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, slow.eos_token_id)]
    )
    special = set(slow.all_special_tokens)
    for _, token in sorted(slow.added_tokens_decoder.items()):
        (tokenizer.add_special_tokens if token.content in special else tokenizer.add_tokens)([token])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=slow.pad_token,
        eos_token=end,
        unk_token=slow.unk_token,
        model_max_length=slow.model_max_length if slow.model_max_length < NO_LENGTH else READ,
    )


def _named(slow: ByT5Tokenizer) -> dict[str, int]:
    return {token.content: number for number, token in slow.added_tokens_decoder.items()}


def _letters() -> list[str]:
    """Return the characters that stand for the 256 bytes in the library's own alphabet (GPT-2's)."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]  # each stands for itself
    hidden = iter(range(BYTES, 2 * BYTES))
    return [chr(byte if byte in seen else next(hidden)) for byte in range(BYTES)]
