"""Every architecture of hf_text and hf_decoder, as a tiny random network saved to a folder and opened by name."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForTextEncoding,
    BartConfig,
    BertConfig,
    BloomConfig,
    CamembertConfig,
    Data2VecTextConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ErnieConfig,
    EuroBertConfig,
    FalconConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GPTNeoXConfig,
    GraniteConfig,
    LlamaConfig,
    M2M100Config,
    MarianConfig,
    MBartConfig,
    MistralConfig,
    ModernBertConfig,
    MPNetConfig,
    MT5Config,
    NomicBertConfig,
    Olmo2Config,
    OlmoConfig,
    OpenAIGPTConfig,
    OPTConfig,
    Phi3Config,
    PhiConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    RobertaConfig,
    SmolLM3Config,
    T5Config,
    UMT5Config,
    XLMRobertaConfig,
    XLMRobertaXLConfig,
    XLNetConfig,
)  # fmt: skip

from graftwork.backbones import hf_decoder, hf_text
from graftwork.core.backbone import ROLES
from graftwork.core.example import Example
from graftwork.core.model import Model
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.methods.adapter import Adapter
from graftwork.methods.lora import Lora
from graftwork.methods.prefix import PrefixTuning
from graftwork.nn.sites import site_size
from graftwork.pretrained.attention_weights import attention_weights
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import write_backbone
from graftwork.registry import kinds
from graftwork.testing import check_backbone, tiny_dataset

WORDS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "the", "a", "film", "was", "good", "bad", "very", "not"]
WORDS += ["long", "short", "and", "or", "with", "plot", "of", "it"]
TOKENS: dict[str, Any] = {"vocab_size": 24, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
SHAPE: dict[str, Any] = {
    **TOKENS, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 40, "initializer_range": 0.2,
}  # fmt: skip
GPT: dict[str, Any] = {**TOKENS, "n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 40, "initializer_range": 0.2}
DEBERTA = SHAPE | {
    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False,
    "position_buckets": 8, "norm_rel_ebd": "layer_norm", "conv_kernel_size": 3,
}  # fmt: skip
T5: dict[str, Any] = {
    **TOKENS, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_decoder_layers": 1,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
}  # fmt: skip
T5_TYPES = ("t5", "mt5", "umt5")
BART: dict[str, Any] = {
    **TOKENS, "d_model": 16, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 40,
    "scale_embedding": True, "init_std": 0.2,
}  # fmt: skip
GROUPED = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}  # wider together than the states
BART_TYPES = ("bart", "mbart", "marian", "m2m_100")
CONFIGS: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SHAPE),
    "ernie": ErnieConfig(**SHAPE, use_task_id=True),
    "electra": ElectraConfig(**SHAPE, embedding_size=8),
    "roberta": RobertaConfig(**SHAPE, type_vocab_size=1),
    "xlm-roberta": XLMRobertaConfig(**SHAPE, type_vocab_size=1),
    "camembert": CamembertConfig(**SHAPE, type_vocab_size=1),
    "data2vec-text": Data2VecTextConfig(**SHAPE, type_vocab_size=1),
    "xlm-roberta-xl": XLMRobertaXLConfig(**SHAPE, type_vocab_size=1),
    "distilbert": DistilBertConfig(
        **TOKENS, dim=16, n_layers=3, n_heads=2, hidden_dim=32, max_position_embeddings=40, initializer_range=0.2
    ),
    "albert": AlbertConfig(**SHAPE, embedding_size=8),
    "mpnet": MPNetConfig(**SHAPE),
    "deberta": DebertaConfig(
        **SHAPE, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False, type_vocab_size=0
    ),
    "deberta-v2": DebertaV2Config(**DEBERTA),
    "modernbert": ModernBertConfig(**SHAPE, local_attention=4, cls_token_id=2, sep_token_id=3),
    "xlnet": XLNetConfig(**TOKENS, d_model=16, n_layer=3, n_head=2, d_inner=32, initializer_range=0.2),
    "t5": T5Config(**T5, num_heads=2),
    "mt5": MT5Config(**T5, num_heads=3),  # gated, and its heads are wider together than its states
    "umt5": UMT5Config(**T5, num_heads=2),
    "eurobert": EuroBertConfig(**SHAPE | GROUPED),
    "nomic_bert": NomicBertConfig(**SHAPE),
    "bart": BartConfig(**BART),
    "mbart": MBartConfig(**BART),
    "marian": MarianConfig(**BART),
    "m2m_100": M2M100Config(**BART),
    "gpt2": GPT2Config(**GPT),
    "openai-gpt": OpenAIGPTConfig(**GPT),
    "llama": LlamaConfig(**SHAPE | GROUPED),
    "mistral": MistralConfig(**SHAPE | GROUPED, sliding_window=4),
    "qwen2": Qwen2Config(**SHAPE | GROUPED, use_sliding_window=True, sliding_window=4, max_window_layers=1),
    "qwen3": Qwen3Config(**SHAPE | GROUPED),
    "gemma": GemmaConfig(**SHAPE | GROUPED),
    "gemma2": Gemma2Config(**SHAPE | GROUPED, sliding_window=4, attn_logit_softcapping=0.5),
    "gemma3_text": Gemma3TextConfig(**SHAPE | GROUPED, sliding_window=4, sliding_window_pattern=2),
    "granite": GraniteConfig(**SHAPE | GROUPED, attention_multiplier=0.3, residual_multiplier=0.5),
    "olmo": OlmoConfig(**SHAPE | GROUPED, clip_qkv=0.5),
    "olmo2": Olmo2Config(**SHAPE | GROUPED),
    "smollm3": SmolLM3Config(**SHAPE | GROUPED, no_rope_layer_interval=2),
    "phi": PhiConfig(**SHAPE, qk_layernorm=True),
    "phi3": Phi3Config(**SHAPE | GROUPED),
    "opt": OPTConfig(
        **TOKENS, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, ffn_dim=32, init_std=0.2,
        max_position_embeddings=40, word_embed_proj_dim=8,
    ),
    "gpt_neox": GPTNeoXConfig(**SHAPE, rope_parameters={"rope_theta": 100.0, "partial_rotary_factor": 0.5}),
    "bloom": BloomConfig(**TOKENS, hidden_size=16, n_layer=3, n_head=2, initializer_range=0.2),
    "falcon": FalconConfig(
        **TOKENS, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, max_position_embeddings=40,
        initializer_range=0.2,
    ),
}  # fmt: skip
OWN_SOFTMAX = {
    "mpnet",
    "deberta",
    "deberta-v2",
    "xlnet",
    "openai-gpt",
    "bloom",
    "falcon",
}  # attention that does not call `attend`
UNBIASED = {
    "modernbert",
    "eurobert",
    "phi3",
    *T5_TYPES,
    *(name for name, row in hf_decoder.LAYOUTS.items() if row is hf_decoder.LLAMA),
}
UNBIASED -= {"qwen2"}  # of queries, keys and values
ALIKE = {  # rows of a layout that another architecture has too: all but their states is slow
    "ernie", "xlm-roberta", "camembert", "data2vec-text", "mt5", "mbart", "m2m_100",
    "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "granite", "olmo", "olmo2", "smollm3", "phi",
    "bloom", "falcon", "umt5", "eurobert", "nomic_bert",
}  # fmt: skip
TEXTS = ["the film was good", "bad", "the plot of the film was very very long and not good with it or a short"]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]
PAIR = [Example("train/1", {"text_a": "the film was good", "text_b": "not bad"})]
FEW = [  # where the architecture matters little: one of each sort
    pytest.param(one, marks=() if one in ("bert", "deberta-v2", "t5", "gpt2") else pytest.mark.slow) for one in CONFIGS
]


def save_folder(folder: Path, model_type: str) -> Path:
    """A transformers folder with random weights and a tokenizer of whole words."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    special = [("[CLS]", 2), ("[SEP]", 3)]
    if model_type == "xlnet":
        tokenizer.post_processor = TemplateProcessing(
            single="$A [SEP] [CLS]:2", pair="$A [SEP] $B:1 [SEP]:1 [CLS]:2", special_tokens=special
        )
    elif model_type in T5_TYPES:
        tokenizer.post_processor = TemplateProcessing(
            single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=special
        )
    elif model_type not in hf_decoder.LAYOUTS:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
        )
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "eos_token": "[SEP]"}
    if model_type not in hf_decoder.LAYOUTS:
        names["pad_token"] = "[PAD]"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModel.from_config(CONFIGS[model_type])
        for name, parameter in model.named_parameters():  # a bias of zero would hide a mistake
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Architecture -> its folder, the same every time; written when it is asked for."""
    root = tmp_path_factory.mktemp("models")
    return functools.cache(lambda model_type: save_folder(root / model_type, model_type))


@pytest.fixture(scope="module")
def opened(folders: Callable[[str], Path]) -> Callable[[str], TransformerBackbone]:
    """Architecture -> opened by name, in fp32; the same every time, and nobody changes it."""

    @functools.cache
    def open_once(model_type: str) -> TransformerBackbone:
        found = open_backbone(f"hf:{folders(model_type)}", precision="fp32")
        assert isinstance(found, TransformerBackbone)
        return found

    return open_once


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.slow if one in ALIKE else ()) for one in CONFIGS])
def backbone(request: pytest.FixtureRequest, opened: Callable[[str], TransformerBackbone]) -> TransformerBackbone:
    """Each of them."""
    return opened(request.param)


def network_of(backbone: TransformerBackbone) -> PreTrainedModel:
    """transformers' own network of its folder."""
    make = AutoModelForTextEncoding if backbone.card.family in T5_TYPES else AutoModel
    folder = backbone.card.id.removeprefix("hf:")
    network = make.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    if backbone.card.family == "opt":
        network.decoder.project_out = None  # it leads to the words, not to features
    return network.get_encoder() if backbone.card.family in BART_TYPES else network


def starts(backbone: TransformerBackbone) -> list[int]:
    """Blocks that it can start at."""
    depths = range(backbone.card.blocks + 1)
    return [0, backbone.card.blocks] if backbone.card.shared_blocks else list(depths)


def test_every_listed_architecture_is_tested() -> None:
    assert set(CONFIGS) == {*hf_text.LAYOUTS, *hf_decoder.LAYOUTS}


def test_the_contract(backbone: TransformerBackbone) -> None:
    check_backbone(backbone, absent=backbone.card.lacks)


@pytest.mark.slow
@pytest.mark.parametrize("stored_as", [None, "int8"])
def test_written_as_a_folder_it_opens_alike(
    backbone: TransformerBackbone, tmp_path: Path, stored_as: str | None
) -> None:
    write_backbone(backbone, tmp_path / "again", stored_as=stored_as)
    again = open_backbone(f"hf:{tmp_path / 'again'}", precision="fp32")
    for examples in (EXAMPLES, PAIR):
        found = []
        for one in (backbone, again):
            encoded = one.encode(examples)
            with torch.inference_mode():
                found.append(one.features(one.collate(encoded, range(len(encoded.ids)))).pooled)
        alike = torch.cosine_similarity(*found, dim=-1).min() > 0.98
        assert alike if stored_as else torch.equal(*found)


def test_of_an_encoder_decoder_the_encoder_alone_is_kept(
    folders: Callable[[str], Path], opened: Callable[[str], TransformerBackbone]
) -> None:
    for model_type in BART_TYPES:
        assert any(
            name.startswith("decoder.layers.1.") for name in load_file(folders(model_type) / "model.safetensors")
        )
        kept = {name.partition(".")[0] for name, _ in opened(model_type).module.named_parameters()}
        assert kept <= {"embed_tokens", "embed_positions", "layers", "layernorm_embedding", "layer_norm"}


def test_a_whole_bart_opens_as_its_saved_base_does(
    tmp_path: Path, folders: Callable[[str], Path], opened: Callable[[str], TransformerBackbone]
) -> None:
    """With a head for generation the names of the tensors begin with `model.`, and the table may stand alone."""
    whole, base = save_folder(tmp_path, "bart"), opened("bart")
    stored = load_file(folders("bart") / "model.safetensors")
    table = stored.pop("shared.weight", None)
    tables = {name: stored.pop(name) for name in list(stored) if name.endswith("embed_tokens.weight")}
    table = next(iter(tables.values())) if table is None else table
    renamed = {f"model.{name}": tensor for name, tensor in stored.items()} | {"final_logits_bias": torch.zeros(1, 24)}
    save_file(renamed | {"model.shared.weight": table}, whole / "model.safetensors", {"format": "pt"})
    loaded = open_backbone(f"hf:{whole}", precision="fp32")
    inputs = base.collate(base.encode(EXAMPLES), [0, 1, 2])
    assert torch.equal(loaded.features(inputs).pooled, base.features(inputs).pooled)
    del renamed["model.encoder.layers.1.fc1.weight"]
    save_file(renamed | {"model.shared.weight": table}, whole / "model.safetensors", {"format": "pt"})
    with pytest.raises(IncompatibleModule, match="not whole"):
        open_backbone(f"hf:{whole}", precision="fp32")


def test_states_are_the_networks_own(backbone: TransformerBackbone) -> None:
    theirs = network_of(backbone)
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1, 2])
    states = backbone.states(inputs)
    with torch.no_grad():
        expected = theirs(**inputs, output_hidden_states=True)
    assert len(states) == backbone.card.blocks + 1 == len(expected.hidden_states)
    real = inputs["attention_mask"].bool()  # at padding a windowed network may look at nothing at all
    for ours, own in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], own[real], atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(states[-1][real], expected.last_hidden_state[real], atol=2e-6, rtol=2e-6)
    assert states[0].std() > 0.01 and (states[0] - states[-1]).abs().max() > 0.01


@pytest.mark.parametrize("model_type", sorted(ALIKE))
def test_those_alike_have_the_networks_own_states_of_the_same_words(
    model_type: str, opened: Callable[[str], TransformerBackbone]
) -> None:
    test_states_are_the_networks_own(opened(model_type))
    test_starting_at_a_block_equals_the_whole_run(opened(model_type))
    assert {4, 6, 7, 8} <= {*opened(model_type).encode(EXAMPLES).ids[0]}  # tokenizer.json is read as it is


PLACED = {  # parts of no block or of all three -> how many blocks below the highest their rate is that of
    "mpnet": {"embeddings": 3, "encoder.relative_attention_bias": 3},
    "deberta-v2": {"embeddings": 3, "encoder.rel_embeddings": 3, "encoder.LayerNorm": 3, "encoder.conv": 2},
    "gpt2": {"wte": 3, "wpe": 3, "ln_f": 0},
    "modernbert": {"embeddings": 3, "final_norm": 0},
    "t5": {
        "encoder.embed_tokens": 3,
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias": 3,
        "encoder.final_layer_norm": 0,
    },
    "electra": {"embeddings": 3, "embeddings_project": 3},
    "deberta": {"embeddings": 3, "encoder.rel_embeddings": 3},
    "mbart": {"embed_tokens": 3, "embed_positions": 3, "layernorm_embedding": 3, "layer_norm": 0},
    "llama": {"embed_tokens": 3, "norm": 0},
    "opt": {
        "decoder.embed_tokens": 3, "decoder.embed_positions": 3, "decoder.project_in": 3,
        "decoder.final_layer_norm": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("model_type", PLACED)
def test_what_is_outside_the_blocks_learns_at_the_rate_of_its_depth(
    model_type: str, opened: Callable[[str], TransformerBackbone]
) -> None:
    task = tiny_dataset().task
    model = Model(opened(model_type), kinds.get(task.kind), task, towers=1)
    model.own_blocks(0, decay=0.5)
    blocks = list(model.backbone.sites("block"))
    for name, share in model.rates.items():
        path = name.removeprefix("network.")
        below = next((below for part, below in PLACED[model_type].items() if path.startswith(f"{part}.")), None)
        if below is None:
            below = next(2 - place for place, block in enumerate(blocks) if path.startswith(f"{block}."))
        assert share == 0.5**below, name


def test_starting_at_a_block_equals_the_whole_run(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1, 2])
    states, whole = backbone.states(inputs), backbone.features(inputs)
    for start in starts(backbone):
        entering = states[start] * inputs["attention_mask"][:, :, None]  # what a cache kept: nothing at padding
        part = backbone.features(inputs, start, entering)
        real = whole.mask
        torch.testing.assert_close(part.pooled, whole.pooled, atol=1e-5, rtol=0)
        torch.testing.assert_close(part.sequence[real], whole.sequence[real], atol=1e-5, rtol=0)
    if not backbone.card.shared_blocks:
        other = backbone.features(inputs, 1, torch.roll(states[1], 1, dims=-1))
        assert (other.pooled - whole.pooled).abs().max() > 1e-3


def test_lower_states_are_the_same_without_the_blocks_above(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1, 2])
    whole, ran = backbone.states(inputs), []
    for place, block in enumerate(backbone.sites("block").values()):
        block.register_forward_hook(lambda module, args, output, place=place: ran.append(place))
    for depth in range(backbone.card.blocks + 1):
        ran.clear()
        lower = backbone.states_up_to(inputs, depth)
        assert len(lower) == depth + 1
        assert all(torch.equal(one, other) for one, other in zip(lower, whole[: depth + 1], strict=True))
        assert backbone.card.shared_blocks or ran == list(range(depth))


def test_shared_blocks_cannot_be_started_between(folders: Callable[[str], Path]) -> None:
    albert = open_backbone(f"hf:{folders('albert')}", precision="fp32")
    inputs = albert.collate(albert.encode(EXAMPLES), [0])
    assert albert.card.shared_blocks
    with pytest.raises(ConfigError, match="one block, used again"):
        albert.features(inputs, 1, albert.states(inputs)[1])


def test_gradients_flow_to_the_blocks_that_run_and_to_no_other(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1])
    states = backbone.states(inputs)
    own = backbone.copy()
    assert not any(parameter.requires_grad for parameter in own.module.parameters())
    own.module.requires_grad_(True)
    start = 0 if own.card.shared_blocks else own.card.blocks - 1
    loss = own.features(inputs, start, states[start]).pooled.sin().sum()
    torch.autograd.backward(loss)
    moved = [
        any(p.grad is not None and p.grad.abs().sum() > 0 for p in block.parameters())
        for block in own.sites("block").values()
    ]
    assert moved == [True] if own.card.shared_blocks else moved == [False] * start + [True]


def test_hooks_on_the_blocks_that_run_are_called(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1])
    states, sites = backbone.states(inputs), backbone.sites("mlp.up")
    seen: list[str] = []
    handles = [
        site.register_forward_hook(lambda module, args, output, name=name: seen.append(name))
        for name, site in sites.items()
    ]
    start = starts(backbone)[-2]
    backbone.features(inputs, start, states[start])
    assert seen == (list(sites) * 3 if backbone.card.shared_blocks else list(sites)[start:])
    for handle in handles:
        handle.remove()


def test_an_exception_leaves_the_network_as_it_was(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1])
    states, before = backbone.states(inputs), backbone.features(inputs).pooled
    modules = list(backbone.module.named_modules())

    def fail(module: nn.Module, args: object, output: object) -> None:
        raise RuntimeError("out of memory")

    start, last = starts(backbone)[-2], list(backbone.sites("mlp.down").values())[-1]
    handle = last.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        backbone.features(inputs, start, states[start])
    handle.remove()
    assert list(backbone.module.named_modules()) == modules
    assert torch.equal(backbone.features(inputs).pooled, before)


def test_batch_mates_do_not_matter(backbone: TransformerBackbone) -> None:
    encoded = backbone.encode(EXAMPLES)
    together = backbone.features(backbone.collate(encoded, [0, 1, 2])).pooled
    for i in range(3):
        alone = backbone.features(backbone.collate(encoded, [i])).pooled
        torch.testing.assert_close(together[i], alone[0], atol=1e-5, rtol=0)


def test_roles_name_linear_maps_of_every_block(backbone: TransformerBackbone) -> None:
    width, blocks = backbone.card.width, 1 if backbone.card.shared_blocks else backbone.card.blocks
    for site in backbone.sites("mlp.up").values():
        assert site_size(site)[0] == width
    for site in backbone.sites("mlp.down").values():
        assert site_size(site)[1] == width
    for role in ("mlp.up", "mlp.down", "block"):
        assert len(backbone.sites(role)) == blocks
    assert bool(backbone.sites("norm")) == (backbone.card.family != "olmo")  # its norms have no weights
    assert backbone.sites("embedding") and backbone.sites("nonsense") == {}
    assert all(backbone.module.get_submodule(name) is site for name, site in backbone.sites("norm").items())
    assert backbone.card.lacks == tuple(role for role in ROLES if not backbone.sites(role))
    if backbone.card.family == "xlnet":  # bare parameters
        assert "attention.qkv" in Lora().unfit(tiny_dataset().task, backbone.card)
        assert "attention.output" in Adapter().unfit(tiny_dataset().task, backbone.card)
        return
    assert Lora().unfit(tiny_dataset().task, backbone.card) == "" == Adapter().unfit(tiny_dataset().task, backbone.card)
    asked = backbone.sites("attention.query") or backbone.sites("attention.qkv")
    assert len(asked) == len(backbone.sites("attention.output")) == blocks
    assert {site_size(site)[0] for site in asked.values()} == {width}


def test_a_prefix_is_attended_to_in_every_block(backbone: TransformerBackbone) -> None:
    sites, fits = backbone.sites("attention"), PrefixTuning().unfit(tiny_dataset().task, backbone.card)
    if backbone.card.family in OWN_SOFTMAX:
        assert not sites and fits == f"the blocks of {backbone.card.id} have no attention that takes a prefix"
        return
    assert fits == "" and list(sites) == [
        next(path for path in sites if path.startswith(f"{block}.")) for block in backbone.sites("block")
    ]
    model, encoded = (
        Model(backbone, kinds.get("classification"), tiny_dataset().task, towers=1),
        backbone.encode(EXAMPLES),
    )
    PrefixTuning(length=2).attach(model)
    together = model.backbone.collate(encoded, [0, 1, 2])
    features = model.backbone.features(together).pooled
    for i in range(3):  # padding is still not seen
        alone = model.backbone.features(backbone.collate(encoded, [i])).pooled
        torch.testing.assert_close(features[i], alone[0], atol=1e-5, rtol=0)
    for adapter in model.adapters.values():
        adapter.value.data.add_(1.0)  # type: ignore[operator, union-attr]
        moved = model.backbone.features(together).pooled
        assert not torch.allclose(moved, features)
        features = moved


@pytest.mark.parametrize("backbone", FEW, indirect=True)
def test_a_copy_has_weights_of_its_own(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0])
    before, own = backbone.features(inputs).pooled, backbone.copy()
    assert torch.equal(own.features(inputs).pooled, before) and not own.module.training
    with torch.no_grad():
        for parameter in own.module.parameters():
            parameter.mul_(0.5).add_(0.1)
    assert torch.equal(backbone.features(inputs).pooled, before)
    assert not torch.allclose(own.features(inputs).pooled, before)


def test_a_card_says_whether_there_are_biases(backbone: TransformerBackbone) -> None:
    assert backbone.card.biased == (backbone.card.family not in UNBIASED)


def test_bf16_is_near_fp32_and_has_the_same_revision(backbone: TransformerBackbone) -> None:
    half = open_backbone(backbone.card.id, precision="bf16")
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1, 2])
    exact, rough = backbone.features(inputs).pooled, half.features(inputs).pooled
    assert half.card == backbone.card and next(half.module.parameters()).dtype == torch.bfloat16
    assert torch.nn.functional.cosine_similarity(exact, rough).min() > 0.98
    states = half.states(inputs)
    for start in starts(backbone):
        torch.testing.assert_close(half.features(inputs, start, states[start]).pooled, rough, atol=0.05, rtol=0)


@pytest.mark.parametrize("backbone", FEW, indirect=True)
def test_fresh_weights_follow_the_seed(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0])
    name = f"random:{backbone.card.id}"
    before = torch.random.get_rng_state()
    first, again, other = (open_backbone(name, precision="fp32", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert first.card.id == name and first.card == again.card
    assert len({first.card.revision, other.card.revision, backbone.card.revision}) == 3
    one, same, another = (opened.features(inputs).pooled for opened in (first, again, other))
    assert torch.equal(one, same) and not torch.allclose(one, another)


@pytest.mark.parametrize("backbone", FEW, indirect=True)
def test_fresh_weights_are_the_same_in_either_precision(backbone: TransformerBackbone) -> None:
    name = f"random:{backbone.card.id}"
    exact, half = (open_backbone(name, precision=precision, seed=1) for precision in ("fp32", "bf16"))
    assert exact.card == half.card
    for ours, theirs in zip(exact.module.parameters(), half.module.parameters(), strict=True):
        assert torch.equal(ours.bfloat16(), theirs)


def test_a_pair_is_joined_the_way_the_network_was_trained(backbone: TransformerBackbone) -> None:
    encoded = backbone.encode(PAIR)
    a, b = [4, 6, 7, 8], [11, 9]
    joined = [2, *a, 3, *b, 3]
    if backbone.card.family == "xlnet":
        joined = [*a, 3, *b, 3, 2]
    if backbone.card.family in T5_TYPES:
        joined = [*a, 3, *b, 3]
    if backbone.card.family in hf_decoder.LAYOUTS:
        joined = [*a, 3, *b]
    assert encoded.towers == 1 and encoded.ids == [joined]
    tells_apart = backbone.card.family in ("bert", "ernie", "electra", "albert", "xlnet", "nomic_bert")
    assert ("token_type_ids" in backbone.collate(encoded, [0])) == tells_apart
    assert encoded.types[0].count(1) >= 2


def test_the_right_token_is_read(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode(EXAMPLES), [0, 1])
    features = backbone.features(inputs)
    lengths = inputs["attention_mask"].sum(1)
    if backbone.card.pooling == "mean":
        means = [states[:length].mean(0) for states, length in zip(features.sequence, lengths, strict=True)]
        torch.testing.assert_close(features.pooled, torch.stack(means))
        return
    place = lengths - 1 if backbone.card.pooling == "last" else torch.zeros_like(lengths)
    assert torch.equal(features.pooled, features.sequence[torch.arange(2), place])
    assert backbone.card.pooling == ("last" if backbone.card.family in ("xlnet", *hf_decoder.LAYOUTS) else "first")


def test_long_texts_are_cut_and_counted(backbone: TransformerBackbone) -> None:
    long = Example("train/9", {"text": "film " * 3000})
    encoded = backbone.encode([*EXAMPLES, long])
    unstated = {"bloom": hf_decoder.LONGEST} | dict.fromkeys(("xlnet", *T5_TYPES), 512)
    limit = unstated.get(backbone.card.family, 40)
    if backbone.layout.positions_after_padding:
        limit -= 2
    assert backbone.card.max_length == limit == len(encoded.ids[3]) and encoded.cut == 1
    if limit <= 40:
        inputs = backbone.collate(encoded, [0, 3])
        assert inputs["input_ids"].shape == (2, limit)
        assert backbone.features(inputs).pooled.isfinite().all()
    assert backbone.collate(encoded, [0])["input_ids"].shape == (1, len(encoded.ids[0]))


def test_of_a_huge_context_a_part_is_read(tmp_path: Path) -> None:
    config = save_folder(tmp_path, "llama") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 131_072}))
    found = open_backbone(f"hf:{tmp_path}", precision="fp32")
    encoded = found.encode([Example("train/9", {"text": "film " * 5000})])
    assert found.card.max_length == hf_decoder.LONGEST == len(encoded.ids[0]) and encoded.cut == 1


def test_an_empty_text_has_features(backbone: TransformerBackbone) -> None:
    encoded = backbone.encode([Example("train/1", {"text": ""})])
    assert backbone.features(backbone.collate(encoded, [0])).pooled.isfinite().all()


@pytest.mark.parametrize(("block", "head"), [(0, 1), pytest.param(2, 0, marks=pytest.mark.slow)])
def test_attention_weights_are_the_networks_own(backbone: TransformerBackbone, block: int, head: int) -> None:
    theirs = network_of(backbone)
    inputs = backbone.collate(backbone.encode(EXAMPLES[:1]), [0])
    with torch.no_grad():
        expected = theirs(**inputs, **backbone.layout.options, output_attentions=True).attentions[block][0, head]
    found = attention_weights(backbone, TEXTS[0], block, head)
    assert found.blocks == backbone.card.blocks
    torch.testing.assert_close(torch.from_numpy(found.weights), expected, atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(expected.sum(dim=1), torch.ones(len(expected)))


def test_positions_that_begin_nowhere_are_refused(tmp_path: Path) -> None:
    config = save_folder(tmp_path, "roberta") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pad_token_id": None}))
    with pytest.raises(ConfigError, match="which token is padding"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")


@pytest.mark.parametrize("name", ["sentence_bert_config.json", "sentence_xlm-roberta_config.json"])
def test_a_sentence_encoder_reads_in_the_case_and_length_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = save_folder(tmp_path, "xlm-roberta")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    shouted = [Example("train/1", {"text": "The FILM was Good"})]
    seen = {}
    for lower in (False, True):
        (folder / name).write_text(json.dumps({"max_seq_length": 5, "do_lower_case": lower}))
        seen[lower] = open_backbone(f"hf:{folder}", precision="fp32")
    assert {backbone.card.max_length for backbone in seen.values()} == {5}
    assert [*seen[True].encode(shouted).ids] == [[2, *map(WORDS.index, ("the", "film", "was")), 3]]
    assert [*seen[False].encode(shouted).ids] == [[2, 0, 0, WORDS.index("was"), 3]]
    assert seen[True].card.revision != seen[False].card.revision
