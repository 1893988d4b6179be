"""The contract of a backbone: its card, features, words, sites of adapters and copies."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch

from graftwork.core.backbone import ROLES, Backbone, Inputs
from graftwork.core.example import Example
from graftwork.nn.short_attention import register_key_hook
from graftwork.testing.require import require
from graftwork.testing.tiny_data import pooled, tiny_dataset
from graftwork.testing.tiny_media import tiny_media

NEAR = {torch.float32: 1e-4, torch.bfloat16: 0.1}  # allowed difference of features between batches and starting blocks


def check_backbone(backbone: Backbone, *, absent: Collection[str] = ("attention.qkv",)) -> None:
    """Check what every backbone must do. `absent` lists the roles in `ROLES` for which it has no site.

    Raises `AssertionError`.
    """
    card = backbone.card
    require(bool(card.id and card.revision and card.family), "the card names no id, revision or family")
    require(card.parameters == sum(p.numel() for p in backbone.module.parameters()), "the card miscounts parameters")
    require(not any(p.requires_grad for p in backbone.module.parameters()), "weights require grad before any method")
    require(not backbone.module.training, "the network is in training mode")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        if card.modality == "text":
            examples = [*tiny_dataset().train.examples[:5], Example("train/9", {"text": "the film was so good " * 5})]
        else:
            examples = [*tiny_media(Path(folder), card.modality).train.examples[:6]]
        _check_features(backbone, examples)
        if card.modality == "text":
            _check_words(backbone)
        _check_roles(backbone, absent)
        _check_independence(backbone, backbone.collate(backbone.encode(examples), [0, 5]))
        _check_rows_apart(backbone, backbone.collate(backbone.encode(examples), [0, 5, 2]))
        _check_attention(backbone, backbone.collate(backbone.encode(examples), [0, 5]))
    if card.modality == "text":
        _check_pair(backbone)


def _check_pair(backbone: Backbone) -> None:
    card = backbone.card
    pair = backbone.encode([Example("train/1", {"text_a": "a film", "text_b": "a good film"})])
    require(len(pair) == 1 and pair.towers == card.towers == len(pair.ids), "a pair is not `card.towers` sequences")


def _check_features(backbone: Backbone, examples: Sequence[Example]) -> None:
    """Check shapes, and that features depend neither on the block where a pass starts nor on the rest of the batch."""
    card, encoded = backbone.card, backbone.encode(examples)
    rows = range(len(examples))
    inputs = backbone.collate(encoded, rows)
    whole, states = backbone.features(inputs), backbone.states(inputs)
    real, given = whole.mask, inputs["attention_mask"]
    length = (card.shapes[-1][0] if card.shapes else 0) or given.shape[1]
    near = NEAR[whole.sequence.dtype] * max(1.0, float(whole.pooled.abs().max()))
    require(encoded.lengths.tolist() == given.sum(dim=1).tolist(), "the mask does not mark the real tokens")
    require(whole.sequence.shape == (len(examples), length, card.width), f"sequence is {whole.sequence.shape}")
    require(whole.pooled.shape == (len(examples), card.read_widths(False)[-1]), f"pooled is {whole.pooled.shape}")
    require(bool(whole.pooled.isfinite().all()), "features are not finite")
    require(len(states) == card.blocks + 1, f"{len(states)} states of {card.blocks} blocks")
    require(tuple(state.shape[2] for state in states) == card.widths, "the card tells other widths")
    for start in (0, card.blocks) if card.shared_blocks else range(card.blocks + 1):
        part = backbone.features(inputs, start, states[start])
        away = float((part.sequence - whole.sequence)[real].abs().max())
        require(away <= near, f"starting at block {start} gives other features: {away:.2g} away")
    for row in rows:
        alone = backbone.features(backbone.collate(encoded, [row])).pooled[0]
        away = float((alone - whole.pooled[row]).abs().max())
        require(away <= near, f"an example's features depend on its batch: {away:.2g} away")


def _check_words(backbone: Backbone) -> None:
    """Check that each word has features from its first token, once, and that long texts are split into windows."""
    limit, many = backbone.card.max_length, backbone.card.max_length + 1
    listed = [("the", "film", "was", "unbelievably", "good"), ("bad",) * many, ("a",)]
    encoded = backbone.encode([Example(f"words/{row}", {"words": words}) for row, words in enumerate(listed)])
    words = encoded.words
    assert words is not None, "examples with words are tokenised as texts"
    require(words.counts.tolist() == [5, many, 1], f"counts {words.counts.tolist()} words")
    require(words.seen[0] == list(range(5)) and words.first[0] == sorted(set(words.first[0])), "words are not in order")
    require(encoded.sequences_of[0] == 1 < encoded.sequences_of[1], "a long text is not read in windows")
    require(encoded.cut == words.unseen == 0, f"{words.unseen} words of a long text are not seen")
    seen = [word for window in encoded.sequences([1]) for word in words.seen[window]]
    require(sorted(seen) == list(range(many)), "a word of a long text is not read once")
    require(int(encoded.lengths.max()) <= limit, "a window is longer than the backbone takes")
    rows = np.array([2, 0])
    inputs = backbone.collate(encoded, encoded.sequences(rows))
    features, alone = backbone.features(inputs), backbone.features(backbone.collate(encoded, [0])).pooled
    width = backbone.card.read_widths(True)[-1]
    require(features.pooled.shape == (6, width), f"features of 6 words are {features.pooled.shape}")
    read = features.sequence[1, words.first[0]].float()
    require(torch.equal(features.pooled[1:], read), "a word is not read at its first token")
    away = float((features.pooled[1:] - alone).abs().max())
    require(away <= NEAR[features.sequence.dtype] * max(1.0, float(alone.abs().max())), "a word depends on its batch")
    require(encoded.answered(rows).tolist() == [many + 5, *range(5)], "it is not known which words are answered")
    _check_question(backbone, listed)


def _check_question(backbone: Backbone, listed: Sequence[tuple[str, ...]]) -> None:
    """Check that every window of a text begins with the question, and that a row for "no answer" precedes the words."""
    asked = [Example(f"asked/{row}", {"question": "is it good?", "words": words}) for row, words in enumerate(listed)]
    encoded = backbone.encode(asked)
    assert encoded.words is not None, "a question about words is tokenised as a text"
    require(encoded.words.counts.tolist() == [len(words) + 1 for words in listed], "there is no row for no answer")
    require(encoded.words.seen[0][0] == 0 == encoded.words.first[0][0], "no answer is not read at the first token")
    windows = encoded.sequences([1])
    starts = {tuple(encoded.ids[window][:3]) for window in windows}
    require(len(windows) > 1 and len(starts) == 1, "the windows of a long text do not begin with the question")
    require(encoded.words.unseen == 0, f"{encoded.words.unseen} words of a long text are not seen")


def _check_roles(backbone: Backbone, absent: Collection[str]) -> None:
    for role in ROLES:
        sites = backbone.sites(role)
        require(bool(sites) != (role in absent), f"{role}: {len(sites)} sites, and absent lists {', '.join(absent)}")
        require(list(backbone.sites(role)) == list(sites), f"{role}: the names of its sites are not stable")
        odd = [name for name, site in sites.items() if backbone.module.get_submodule(name) is not site]
        require(not odd, f"{role}: {odd[:1]} names another module")
    require(not backbone.sites("no such role"), "a role that does not exist has sites")


def _check_rows_apart(backbone: Backbone, inputs: Inputs) -> None:
    """If `rows_apart`, check that changing the rows of one sequence at any site affects no other sequence."""
    if not backbone.rows_apart:
        return
    twin, rows = backbone.twin(), len(inputs["attention_mask"])

    def changed(site: torch.nn.Module, by: int) -> torch.Tensor:
        def of_the_first(site: torch.nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
            require(len(args[0]) % rows == 0, f"a site is given {tuple(args[0].shape)} of {rows} sequences")
            first = torch.arange(rows).repeat_interleave(len(output) // rows) == 0
            return output + by * first.view(-1, *[1] * (output.dim() - 1)).to(output.dtype)

        hook = site.register_forward_hook(of_the_first)
        after = pooled(twin, inputs)
        hook.remove()
        return after

    hung = [role for role in ROLES if role not in ("attention", "embedding", "block")]
    for name, site in [one for role in hung for one in twin.sites(role).items()]:
        before, after = changed(site, by=0), changed(site, by=1)
        require(not torch.equal(after[0], before[0]), f"{name}: what is done there changes nothing")
        away = float((after[1:] - before[1:]).abs().max())
        require(
            away <= 1e-5 * float(before.abs().max()), f"{name}: a change of one sequence reaches another: {away:.2g}"
        )


def _check_attention(backbone: Backbone, inputs: Inputs) -> None:
    """Check that keys and values prepended at any site of the role "attention" change the features."""
    twin = backbone.twin()
    before = pooled(twin, inputs)
    for name, site in twin.sites("attention").items():
        hook = register_key_hook(site, lambda key, value: (_twice(key), _twice(value)))
        after = pooled(twin, inputs)
        hook.remove()
        require(not torch.equal(after, before), f"{name}: keys and values put before those of a text change nothing")
    require(torch.equal(pooled(twin, inputs), before), "keys and values are still there that were removed")


def _twice(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat([tensor + 1, tensor], dim=2)


def _check_independence(backbone: Backbone, inputs: Inputs) -> None:
    """Check that a copy has its own weights, and a twin its own modules over the shared weights."""
    before, role = pooled(backbone, inputs), "block"
    own, twin = backbone.copy(), backbone.twin()
    require(list(own.sites(role)) == list(backbone.sites(role)), "a copy names its sites otherwise")
    for other, word in ((own, "copy"), (twin, "twin")):
        require(torch.equal(pooled(other, inputs), before), f"a {word} gives other features")
    shared = {parameter.data_ptr() for parameter in backbone.module.parameters()}
    require(all(p.data_ptr() in shared for p in twin.module.parameters()), "a twin has weights of its own")
    sites = twin.sites("mlp.up") or twin.sites(role) or twin.sites("embedding")
    hook = next(iter(sites.values())).register_forward_hook(lambda site, args, output: output + 1)
    require(not torch.equal(pooled(twin, inputs), before), "a hook on a site of a twin is not called")
    require(torch.equal(pooled(backbone, inputs), before), "a hook on a twin reaches the backbone")
    hook.remove()
    for parameter in own.module.parameters():
        parameter.mul_(0.5).add_(0.1)
    require(torch.equal(pooled(backbone, inputs), before), "training a copy changes the backbone")
