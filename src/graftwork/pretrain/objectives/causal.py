"""Left-to-right language modelling by a Transformer decoder (GPT-2: Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, PreTrainedModel

from graftwork.pretrain import architecture
from graftwork.pretrain.architecture import POSITIONS, check_word
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives

TABLES = {"gpt2": "wpe", "openai-gpt": "positions_embed"}  # architecture -> its position table
MOST_LIKELY = 40  # top-k of sampling


def gpt2_size(layers: int, width: int, dropout: float = 0.0) -> dict[str, Any]:
    """Return a size in GPT-2's proportions: heads of 64. Dropout only hurts small networks: they see most text once."""
    heads = max(1, width // 64)
    drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    return {"n_layer": layers, "n_embd": width, "n_head": heads} | drops


@objectives.register("causal")
@dataclass(frozen=True)
class Causal:
    """Next-token prediction by a Transformer decoder."""

    positions: str = "learned"  # or "sinusoidal"

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "bpe"
    scores_of: ClassVar[str] = ""
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(
        learning_rate=1e-3, batch=64, length=128, schedule="cosine", weight_decay=0.1
    )
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": gpt2_size(2, 128),
        "mini": gpt2_size(4, 256),
        "small": gpt2_size(4, 512),
        "medium": gpt2_size(8, 512),
        "base": gpt2_size(12, 768, dropout=0.1),
    }

    def __post_init__(self) -> None:
        check_word("sort of positions", self.positions, POSITIONS)

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a transformers decoder whose output weights are its token embedding."""
        config = architecture.fresh_config(size, "gpt2", TABLES, vocabulary, length)
        network = architecture.draw_network(AutoModelForCausalLM, config, seed)
        if self.positions == "sinusoidal":
            architecture.with_sinusoids(network, TABLES[config.model_type])
        return _quick(network)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a transformers decoder; its output weights are its embedding, so no head is added."""
        network, missing = architecture.load_network(AutoModelForCausalLM, folder, TABLES, seed)
        architecture.require_heads_only(missing, ("lm_head.",), folder)
        if self.positions == "sinusoidal":
            architecture.with_sinusoids(network, TABLES[network.config.model_type], folder)
        return ContinuedNetwork(_quick(network), Vocabulary.open(folder), network.config.n_positions)

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut full rows across documents, each after a start token."""
        return PackedRows(tokens, length, start=vocabulary.start)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Return "ids" (B, T); all but the first are predicted."""
        return Batch({"ids": rows}, predicted=rows.shape[0] * (rows.shape[1] - 1), rows=len(rows))

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over every token of a row but the first."""
        ids = batch.tensors["ids"]
        logits = network(input_ids=ids, **_options(network)).logits[:, :-1]  # (B, T - 1, V)
        nats = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        return Loss(nats / batch.predicted, nats.detach(), ids[:, 1:].numel())

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write the backbone, pooled at the last token, the only one that attends to the whole text."""
        own: Any = network
        architecture.save(own, vocabulary, folder, "last", own.config.n_positions)

    @torch.no_grad()
    def sample(self, network: nn.Module, vocabulary: Vocabulary, prompt: str, length: int, seed: int) -> str:
        """Sample token by token from the `MOST_LIKELY` ones, up to the end token."""
        own: Any = network
        training = own.training
        own.eval()
        draw = torch.Generator().manual_seed(seed)
        ids = [vocabulary.start, *vocabulary.encode([prompt])[0]]
        for _ in range(length):
            row = torch.tensor([ids[-own.config.n_positions :]], device=own.device)
            logits = own(input_ids=row, **_options(own)).logits[0, -1].float().cpu()  # (V,)
            values, tokens = logits.topk(min(MOST_LIKELY, len(logits)))
            ids.append(int(tokens[torch.multinomial(values.softmax(dim=0), 1, generator=draw)]))
            if ids[-1] == vocabulary.end:
                break
        own.train(training)
        return vocabulary.decode(ids)


def _options(network: Any) -> dict[str, bool]:
    """Return further arguments of the forward pass; GPT-1's has no `use_cache`."""
    return {"use_cache": False} if network.config.model_type == "gpt2" else {}


def _quick(network: PreTrainedModel) -> PreTrainedModel:
    network.set_attn_implementation("sdpa")
    return network
