"""Text encoders from any transformers folder or hub name: `hf:<folder or hub name>`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graftwork.pretrained.layout import BART, BERT, LLAMA_ROLES, MBART, T5, Layout
from graftwork.pretrained.load_folder import TransformerFamily
from graftwork.registry import backbones

ELECTRA = replace(BERT, skipped=("embeddings", "embeddings_project"))
ROBERTA = replace(BERT, positions_after_padding=True)

DISTILBERT = Layout(
    "transformer.layer.*",
    "embeddings.word_embeddings",
    {
        "attention": "attention",
        "attention.query": "attention.q_lin",
        "attention.key": "attention.k_lin",
        "attention.value": "attention.v_lin",
        "attention.output": "attention.out_lin",
        "mlp.up": "ffn.lin1",
        "mlp.down": "ffn.lin2",
        "attention.norm": "sa_layer_norm",
        "mlp.norm": "output_layer_norm",
    },
)
ALBERT = Layout(
    "encoder.albert_layer_groups.*.albert_layers.*",
    "embeddings.word_embeddings",
    {
        "attention": "attention",
        "attention.query": "attention.query",
        "attention.key": "attention.key",
        "attention.value": "attention.value",
        "attention.output": "attention.dense",
        "mlp.up": "ffn",
        "mlp.down": "ffn_output",
    },
    token_types=True,
    shared_blocks=True,
)
DEBERTA = Layout(
    "encoder.layer.*",
    "embeddings.word_embeddings",
    {
        "attention.qkv": "attention.self.in_proj",  # the biases of queries and values are bare parameters
        "attention.output": "attention.output.dense",
        "mlp.up": "intermediate.dense",
        "mlp.down": "output.dense",
    },
    token_types=True,
    tuple_blocks=True,
    learns_like={"encoder.rel_embeddings": "embeddings"},  # shared by all blocks
)
MPNET = Layout(
    "encoder.layer.*",
    "embeddings.word_embeddings",
    {
        "attention.query": "attention.attn.q",
        "attention.key": "attention.attn.k",
        "attention.value": "attention.attn.v",
        "attention.output": "attention.attn.o",
        "mlp.up": "intermediate.dense",
        "mlp.down": "output.dense",
    },
    positions_after_padding=True,
    tuple_blocks=True,
    learns_like={"encoder.relative_attention_bias": "embeddings"},  # shared by all blocks
)
DEBERTA_V2 = Layout(
    "encoder.layer.*",
    "embeddings.word_embeddings",
    {
        "attention.query": "attention.self.query_proj",
        "attention.key": "attention.self.key_proj",
        "attention.value": "attention.self.value_proj",
        "attention.output": "attention.output.dense",
        "mlp.up": "intermediate.dense",
        "mlp.down": "output.dense",
    },
    skipped=("embeddings", "encoder.conv"),  # some models have a convolution between blocks 0 and 1
    token_types=True,
    tuple_blocks=True,
    mixes_rows=True,
    learns_like={
        "encoder.rel_embeddings": "embeddings",  # shared by all blocks
        "encoder.LayerNorm": "embeddings",  # norm of rel_embeddings
        "encoder.conv": "encoder.layer.0",
    },
)
MODERNBERT = Layout(
    "layers.*",
    "embeddings.tok_embeddings",
    {
        "attention": "attn",
        "attention.qkv": "attn.Wqkv",
        "attention.output": "attn.Wo",
        "mlp.up": "mlp.Wi",  # fused with the gate
        "mlp.down": "mlp.Wo",
    },
)
XLNET = Layout(
    "layer.*",
    "word_embedding",
    {"mlp.up": "ff.layer_1", "mlp.down": "ff.layer_2"},  # its attention weights are bare parameters
    skipped=("word_embedding",),
    pooling="last",  # its tokenizer puts <cls> last
    token_types=True,
    tuple_blocks=True,
    time_first=True,
    options={"use_mems": False},
)
XLM_ROBERTA_XL = replace(
    ROBERTA,
    roles={role: path for role, path in BERT.roles.items() if not role.endswith(".norm")},  # norms come first
)
UMT5 = replace(T5, learns_like={})  # every block has a table of its own
EUROBERT = Layout(
    "layers.*",
    "embed_tokens",
    LLAMA_ROLES,
    skipped=("embed_tokens",),
    pooling="mean",  # no token was trained to stand for the whole text
)
NOMIC_BERT = replace(
    EUROBERT,
    embedding="embeddings.word_embeddings",
    roles={**LLAMA_ROLES, "attention.norm": "post_attention_layernorm", "mlp.norm": "post_mlp_layernorm"},
    skipped=("embeddings",),
    token_types=True,
)

LAYOUTS: Mapping[str, Layout] = {
    "bert": BERT,
    "ernie": BERT,
    "electra": ELECTRA,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "data2vec-text": ROBERTA,
    "xlm-roberta-xl": XLM_ROBERTA_XL,
    "distilbert": DISTILBERT,
    "albert": ALBERT,
    "mpnet": MPNET,
    "deberta": DEBERTA,
    "deberta-v2": DEBERTA_V2,
    "modernbert": MODERNBERT,
    "xlnet": XLNET,
    "t5": T5,
    "mt5": T5,
    "umt5": UMT5,
    "eurobert": EUROBERT,
    "nomic_bert": NOMIC_BERT,
    "bart": BART,
    "mbart": MBART,
    "marian": BART,
    "m2m_100": MBART,
}

backbones.register("hf_text")(TransformerFamily(LAYOUTS))
