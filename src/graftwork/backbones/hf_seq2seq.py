"""Encoder-decoders that write, from any transformers folder or hub name: `hf:<folder or hub name>`."""

from __future__ import annotations

from collections.abc import Mapping

from graftwork.pretrained.layout import BART, MBART, T5, Layout
from graftwork.pretrained.load_seq2seq import Seq2SeqFamily
from graftwork.pretrained.seq2seq import Seq2SeqLayout
from graftwork.registry import backbones


def _of_t5() -> tuple[Layout, Seq2SeqLayout]:
    maps = {role: path.replace("layer.1.", "layer.2.") for role, path in T5.roles.items()}
    across = {
        role: path.replace("layer.0.SelfAttention", "layer.1.EncDecAttention")
        for role, path in T5.roles.items()
        if role.startswith("attention")
    }
    table = "block.0.layer.0.SelfAttention.relative_attention_bias"
    return T5, Seq2SeqLayout(
        encoder="encoder",
        decoder="decoder",
        embedding="shared",
        writing=Layout("block.*", "embed_tokens", maps),
        crossing=Layout("block.*", "embed_tokens", across),
        learns_like={f"encoder.{table}": "shared", f"decoder.{table}": "shared"},  # shared by all blocks
    )


def _of_bart(reading: Layout) -> tuple[Layout, Seq2SeqLayout]:
    across = {
        role: path.replace("self_attn", "encoder_attn")
        for role, path in reading.roles.items()
        if role.startswith("attention") and role != "attention.norm"
    }
    halves = ("model.encoder", "model.decoder")
    beside = ("embed_positions", "layernorm_embedding")  # registered after the other half or after the blocks
    return reading, Seq2SeqLayout(
        encoder="model.encoder",
        decoder="model.decoder",
        embedding="model.shared",
        writing=Layout("layers.*", "embed_tokens", reading.roles),
        crossing=Layout("layers.*", "embed_tokens", across),
        learns_like={f"{half}.{name}": "model.shared" for half in halves for name in beside},
    )


LAYOUTS: Mapping[str, tuple[Layout, Seq2SeqLayout]] = {  # of the encoder by itself, and of both halves
    "t5": _of_t5(),
    "mt5": _of_t5(),
    "bart": _of_bart(BART),
    "mbart": _of_bart(MBART),
    "marian": _of_bart(BART),
    "pegasus": _of_bart(MBART),
    "m2m_100": _of_bart(MBART),
}

backbones.register("hf_seq2seq")(Seq2SeqFamily(LAYOUTS))
