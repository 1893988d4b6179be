"""Encoder-decoders that write down speech, from any transformers folder or hub name: `hf:<folder or hub name>`."""

from __future__ import annotations

from graftwork.pretrained.layout import WHISPER_ROLES, Layout
from graftwork.pretrained.load_whisper import WhisperFamily
from graftwork.pretrained.seq2seq import Seq2SeqLayout
from graftwork.registry import backbones

ACROSS = {
    role: path.replace("self_attn", "encoder_attn")
    for role, path in WHISPER_ROLES.items()
    if role.startswith("attention")
}
LAYOUT = Seq2SeqLayout(
    encoder="model.encoder",
    decoder="model.decoder",
    embedding="model.decoder.embed_tokens",
    writing=Layout("layers.*", "embed_tokens", WHISPER_ROLES),
    crossing=Layout("layers.*", "embed_tokens", ACROSS),
    learns_like={f"model.decoder.embed_{name}": "model.encoder.conv1" for name in ("tokens", "positions")},
)  # the decoder's embeddings are registered after the encoder's blocks

backbones.register("hf_speech_to_text")(WhisperFamily(LAYOUT))
