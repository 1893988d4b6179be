"""A table of word vectors as a backbone without blocks: a text is the mean of the vectors of its known words.

GloVe (Pennington et al. 2014), word2vec (Mikolov et al. 2013, arXiv:1301.3781) or fastText (Bojanowski et al. 2017,
arXiv:1607.04606).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from graftwork.core.backbone import ROLES, BackboneCard, Encoded, Features, Inputs, WordPlaces, device_of, towers_of
from graftwork.core.example import Example, answers_of, texts_apart
from graftwork.data.readers.word_vector_folder import MODEL_TYPE, open_word_vectors
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.nn.pooling import pool_states
from graftwork.pretrained.known_words import KnownWords, find
from graftwork.pretrained.tokenising import marks, padded, real_tokens
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.registry import backbones
from graftwork.targets.words import APART, UNSPACED_APART

MAX_LENGTH = 4096  # words; limits memory, since a batch is held at once
READING = 1  # version, incremented when the same text would give other rows
EMBEDDING = "embedding"
SHARE_UNSPACED = 0.1  # least share of words in unspaced scripts for which texts in them are segmented


class WordVectorFamily:
    """Implements `BackboneFamily`: `word_vectors:FILE`, or the folder of trained vectors."""

    model_types: tuple[str, ...] = (MODEL_TYPE,)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> WordVectorBackbone:
        """Open the table in a file or folder; with `random_seed`, random vectors for the same words.

        Raises `ConfigError`, `StorageError`, `DataError` or `IncompatibleModule`.
        """
        if not source:
            raise ConfigError("no word vectors are named", expected=f"{MODEL_TYPE}:<file or folder>")
        vectors = open_word_vectors(Path(source).expanduser())
        name = f"{MODEL_TYPE}:{source}"
        return as_backbone(name, vectors, random_seed=random_seed, bf16=bf16)


def as_backbone(name: str, vectors: WordVectors, *, random_seed: int | None, bf16: bool) -> WordVectorBackbone:
    """Return a frozen backbone of these vectors. The table's last row, for unknown words, is zero."""
    module = nn.Module()
    table = torch.zeros(len(vectors.words) + 1, vectors.width)
    if random_seed is None:
        table[:-1] = torch.from_numpy(vectors.table)
    else:
        draw = torch.Generator().manual_seed(random_seed)
        table[:-1].normal_(0, vectors.width**-0.5, generator=draw)  # norm of about 1
    weights = table.to(torch.bfloat16) if bf16 else table
    module.add_module(EMBEDDING, nn.Embedding(len(weights), vectors.width, _weight=weights, _freeze=True))
    reading: dict[str, int] = {"version": READING, "max_length": MAX_LENGTH}
    unspaced = SHARE_UNSPACED * len(vectors.words) <= sum(APART.search(word) is not None for word in vectors.words)
    if unspaced:  # not set for other vocabularies, so that their revisions stay the same
        reading[UNSPACED_APART] = True
    card = BackboneCard(
        id=name if random_seed is None else f"random:{name}",
        revision=digest({"vectors": vectors.digest, "random_seed": random_seed, "reading": reading}),
        family=MODEL_TYPE,
        modality="text",
        width=vectors.width,
        blocks=0,
        parameters=table.numel(),
        pooling="mean",
        max_length=MAX_LENGTH,
        towers=2,
        shared_blocks=False,
        lacks=tuple(role for role in ROLES if role != EMBEDDING),
    )
    return WordVectorBackbone(card, module.eval(), KnownWords(vectors.rows, unspaced))


@dataclass
class WordVectorBackbone:
    """Implements `Backbone`. Words that are not in the vocabulary are left out of a text, and counted."""

    card: BackboneCard
    module: nn.Module  # its `embedding` is the table, (V + 1, D)
    known: KnownWords

    @property
    def rows_apart(self) -> bool:
        """True: every word is encoded independently of the others."""
        return True

    @property
    def unknown(self) -> int:
        """The row of unknown words and of padding."""
        return len(self.known.vocabulary)

    @property
    def vectors(self) -> WordVectors:
        """The words and their vectors, in fp32, without the row of unknown words."""
        table = self.module.get_parameter(f"{EMBEDDING}.weight")[:-1]
        return WordVectors([*self.known.vocabulary], table.detach().float().cpu().numpy())

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode texts as rows of known words; each text of a pair, and each choice, is a sequence of its own."""
        if examples and "words" in examples[0].inputs:
            return self._encode_words(examples)
        read = [[self.known.read(text) for text in texts_apart(example)] for example in examples]
        ids = [found.rows[:MAX_LENGTH] or [self.unknown] for found in chain.from_iterable(read)]
        return Encoded(
            ids=ids,
            types=[[0] * len(rows) for rows in ids],
            towers=towers_of(self.card.towers, examples[0]) if examples else 1,
            cut=sum(any(len(found.rows) > MAX_LENGTH for found in one) for one in read),
            owned=np.array([len(one) for one in read], np.int64)
            if examples and "choices" in examples[0].inputs
            else None,
            unknown=sum(found.unknown for found in chain.from_iterable(read)),
        )

    def _encode_words(self, examples: Sequence[Example]) -> Encoded:
        """Encode every word as a row, known or not; a text that is too long is split, the question before each part."""
        ids: list[list[int]] = []
        first: list[list[int]] = []
        seen: list[list[int]] = []
        owned, cut = [], 0
        for example in examples:
            asked = self.known.read(example.inputs["question"]).rows if "question" in example.inputs else None
            before = [] if asked is None else asked[: MAX_LENGTH // 2] or [self.unknown]
            cut += asked is not None and len(asked) > len(before)
            rows = [self._row(word) for word in example.inputs["words"]]
            room, answers = MAX_LENGTH - len(before), answers_of(example) or 0
            starts = range(0, max(1, len(rows)), room)
            for start in starts:
                part = rows[start : start + room]
                ids.append([*before, *part] or [self.unknown])
                first.append(list(range(len(before), len(before) + len(part))))
                seen.append(list(range(answers - len(rows) + start, answers - len(rows) + start + len(part))))
            if asked is not None:
                first[-len(starts)].insert(0, 0)
                seen[-len(starts)].insert(0, 0)
            owned.append(len(starts))
        counts = np.array([answers_of(example) for example in examples], dtype=np.int64)
        unknown = sum(ids[i][place] == self.unknown for i in range(len(ids)) for place in first[i])
        return Encoded(
            ids=ids,
            types=[[0] * len(rows) for rows in ids],
            towers=1,
            cut=cut,
            words=WordPlaces(first, seen, counts),
            owned=np.array(owned, dtype=np.int64) if max(owned) > 1 else None,
            unknown=unknown,
        )

    def _row(self, word: str) -> int:
        found = find(self.known.vocabulary, word)
        return self.unknown if found is None else found

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Pad on the right and stack; each tensor is (S, T)."""
        real, device = real_tokens(encoded, sequences), device_of(self.module)
        ids = padded([encoded.ids[i] for i in sequences], real, self.unknown)
        inputs = {"input_ids": ids} | marks(encoded, sequences, real)
        return {name: tensor.to(device) for name, tensor in inputs.items()}

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return the embeddings (S, T, D) alone, as there are no blocks."""
        looked_up: Tensor = self.module.get_submodule(EMBEDDING)(inputs["input_ids"])
        return (looked_up,)

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Return the vectors (S, T, D), looked up or given as `entering`, and their mean."""
        assert start == 0, f"no block {start}"
        sequence = self.states(inputs)[0] if entering is None else entering
        mask = inputs["attention_mask"].bool()  # (S, T)
        return Features(sequence, mask, self.pool(sequence, mask, inputs.get("words")))

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """(S, T, D), (S, T) -> the mean (S, D) in fp32; with `words` (S, T) each word's own vector (W, D)."""
        return pool_states(sequence, mask, self.card.pooling, words)

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Return the table for the role "embedding", nothing for other roles."""
        return {EMBEDDING: self.module.get_submodule(EMBEDDING)} if role == EMBEDDING else {}

    def copy(self) -> WordVectorBackbone:
        """Return a backbone with its own copy of the table; the immutable vocabulary is shared."""
        return WordVectorBackbone(self.card, copy.deepcopy(self.module), self.known)

    def twin(self) -> WordVectorBackbone:
        """Return a backbone with the same table in new modules, so that hooks on them affect no other user."""
        shared = {id(tensor): tensor for tensor in self.module.parameters()}
        return WordVectorBackbone(self.card, copy.deepcopy(self.module, shared), self.known)


backbones.register(MODEL_TYPE)(WordVectorFamily())
