"""Whisper: what it hears and writes is what transformers hears and writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoFeatureExtractor, WhisperForConditionalGeneration

from graftwork.core.backbone import Encoded
from graftwork.core.example import Example
from graftwork.core.model import Model
from graftwork.core.writing import Instruction, TextSearch, TextWriter, reading_part
from graftwork.errors import ConfigError
from graftwork.methods.full import Full
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.media_files import decode_sound, identify
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone
from graftwork.registry import kinds
from graftwork.testing import check_backbone, tiny_dataset
from graftwork.testing.tiny_media import write_sound
from graftwork.testing.tiny_writers import LANGUAGES, NO_TIMES, SPOKEN, TASKS, write_whisper
from graftwork.train.text_loop import padded_tokens

soundfile = pytest.importorskip("soundfile")
SEARCHES = (TextSearch(1, 1.0, 0, 12), TextSearch(3, 0.6, 2, 12))
WANTED = ["a good film", "so sad", "bad"]
REAL = Path.home() / ".cache" / "graftwork-fixtures" / "whisper-tiny.en"  # read here: tests have another home


def opened(folder: Path | str) -> Seq2SeqBackbone:
    """Opened to write, in fp32."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone) and isinstance(backbone, TextWriter)
    return backbone


def heard(paths: list[Path]) -> list[Example]:
    """Examples of these sounds."""
    return [Example(f"train/{n}", {"sound": identify(path, "sound")}) for n, path in enumerate(paths, 1)]


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two tones at 8 kHz, and one at the network's rate that is longer than it hears."""
    folder = tmp_path_factory.mktemp("sounds")
    short = [write_sound(folder / f"{label}.wav", label, number) for number, label in enumerate(("low", "high"))]
    times = np.arange(24_000) / 16_000
    soundfile.write(folder / "long.wav", 0.4 * np.sin(times * 2500), 16_000)
    return [*short, folder / "long.wav"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Whisper of one language, which no test changes."""
    return write_whisper(tmp_path_factory.mktemp("whisper"))


def theirs_of(folder: Path | str) -> WhisperForConditionalGeneration:
    """Transformers' own, with its own `generate`."""
    return WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()


def same_texts(
    ours: Seq2SeqBackbone, folder: Path | str, encoded: Encoded, searches: tuple[TextSearch, ...], **told: str
) -> None:
    """Require that texts are those of transformers' `generate`, which is `told` this, token by token."""
    theirs, end = theirs_of(folder), ours.special.ends[0]
    inputs = ours.collate(encoded, range(len(encoded)))
    states = ours.features(inputs).sequence
    for search in searches:
        found = ours.write(states, inputs["attention_mask"], search)
        wanted = theirs.generate(
            input_features=inputs["input_features"], num_beams=search.beams, do_sample=False,
            max_new_tokens=search.longest, no_repeat_ngram_size=search.no_repeat,
            **({"length_penalty": search.length_penalty} if search.beams > 1 else {}), **told,
        ).tolist()  # fmt: skip
        for text, row in zip(found, wanted, strict=True):
            before = [token for token in row if token != end]  # Whisper's own takes the end away
            assert text.tokens == [*before, *[end] * text.ended]
            assert text.ended == (len(before) < search.longest)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "german")) for name in SPOKEN])
def test_frames_states_losses_and_texts_are_those_of_transformers(
    name: str, tmp_path: Path, sounds: list[Path]
) -> None:
    backbone, theirs = opened(write_whisper(tmp_path, name)), theirs_of(tmp_path)
    encoded = backbone.encode(heard(sounds))
    assert encoded.cut == 1 and backbone.card.rate == 16_000 and backbone.card.modality == "sound"
    assert backbone.card.parameters == sum(weight.numel() for weight in theirs.parameters())
    inputs = backbone.collate(encoded, range(3))
    waves = [decode_sound(path, 16_000) for path in sounds]
    extractor = AutoFeatureExtractor.from_pretrained(tmp_path)
    frames = extractor(waves, sampling_rate=16_000, return_tensors="pt")["input_features"]
    assert torch.equal(inputs["input_features"], frames)
    tokens = padded_tokens(backbone.encode_texts(WANTED, 12)[0])
    with torch.no_grad():
        states = backbone.features(inputs).sequence
        torch.testing.assert_close(states, theirs.get_encoder()(frames)[0], atol=1e-5, rtol=1e-5)
        begun = backbone._entering_tokens(states, inputs["attention_mask"])  # (S, K)
        before = torch.cat([begun, tokens[:, :-1].clamp(min=0)], dim=1)
        logits = theirs(input_features=frames, decoder_input_ids=before).logits[:, begun.shape[1] - 1 :]
        chances = logits.log_softmax(dim=-1).gather(2, tokens.clamp(min=0)[:, :, None])[:, :, 0] * (tokens >= 0)
        ours = backbone.log_probabilities(states, inputs["attention_mask"], tokens)
        torch.testing.assert_close(ours, chances, atol=1e-5, rtol=1e-5)
        same_texts(backbone, tmp_path, encoded, SEARCHES)
    told = {"english": [], "german": [[LANGUAGES["<|de|>"]]], "many languages": [[one] for one in LANGUAGES.values()]}
    starts = [[2, *language, TASKS["transcribe"], NO_TIMES] for language in told[name]] or [[2, NO_TIMES]]
    assert all(row in starts for row in begun.tolist())
    if name == "english":  # else the next line would hold of any network
        assert backbone.special.banned_first == (1, 7) and backbone.special.banned == ((4,), (5,))


@pytest.mark.slow
def test_the_encoder_by_itself_serves_other_tasks(folder: Path) -> None:
    writer, encoder = opened(folder), open_backbone(f"hf:{folder}", precision="fp32")
    assert reading_part(writer).card == encoder.card and not encoder.card.writes and encoder.card.blocks == 2
    check_backbone(encoder, absent=("attention", "attention.qkv"))
    assert writer.card.revision != encoder.card.revision and writer.card.blocks == 5


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("given", "task"), [(("fr", None), "transcribe"), (("French", "fr"), "transcribe"), (("french", "en"), "translate")]
)
def test_a_language_that_is_told_is_heard(
    given: tuple[str, str | None], task: str, tmp_path: Path, sounds: list[Path]
) -> None:
    plain = opened(write_whisper(tmp_path, "many languages"))
    backbone = plain.instructed(Instruction(*given))
    assert backbone.special.start == (2, LANGUAGES["<|fr|>"], TASKS[task], NO_TIMES) and not backbone.special.languages
    assert backbone.most == plain.most == 24 - 3 and plain.instructed(Instruction()) is plain
    with torch.no_grad():
        same_texts(backbone, tmp_path, backbone.encode(heard(sounds)), SEARCHES, language="fr", task=task)


@pytest.mark.parametrize(
    ("name", "given", "parts"),
    [
        ("many languages", Instruction("klingon"), ("no tag", "klingon", "de, en, fr")),
        ("many languages", Instruction("de", "fr"), ("Whisper writes", "target_language de or en")),
        ("many languages", Instruction(None, "de"), ("needs the language tags", "without source_language")),
        ("many languages", Instruction(source_prefix="so: "), ("reads sounds", "leave source_prefix out")),
        ("english", Instruction("en"), ("takes no language tags",)),
    ],
)
def test_languages_that_it_does_not_know_are_refused(
    name: str, given: Instruction, parts: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        opened(write_whisper(tmp_path, name)).instructed(given)
    assert all(part in raised.value.message for part in (*parts, str(tmp_path))), raised.value.message


def test_roles_rates_and_copies(folder: Path) -> None:
    writer = opened(folder)
    assert len(writer.sites("attention.query")) == 2 + 3 + 3 and len(writer.sites("mlp.up")) == 5
    assert "model.decoder.layers.2.encoder_attn.v_proj" in writer.sites("attention.value")
    assert writer.twin().module.proj_out.weight is writer.module.model.decoder.embed_tokens.weight
    assert writer.copy().module.proj_out.weight is not writer.module.proj_out.weight
    model = Model(writer, kinds.get("generation"), tiny_dataset("generation").task, towers=1)
    Full(decay=0.5).attach(model)
    rates = {name.removeprefix("network.model."): rate for name, rate in model.rates.items()}
    assert rates["decoder.embed_tokens.weight"] == rates["encoder.conv1.weight"] == 0.5**3
    assert rates["encoder.layers.1.fc1.weight"] == rates["decoder.layer_norm.weight"] == 1


def test_top_layers_start_from_kept_states_of_the_encoder(folder: Path, sounds: list[Path]) -> None:
    writer = opened(folder)
    model = Model(writer, kinds.get("generation"), tiny_dataset("generation").task, towers=1).eval()
    TopLayers(k=2).attach(model)
    inputs = writer.collate(writer.encode(heard(sounds)), range(3))
    assert model.prefix == 2
    with torch.no_grad():
        states = writer.states(inputs)
        assert torch.equal(model.read(inputs, states[2]), model.read(inputs))


def test_texts_are_written_behind_a_space_and_told_without(folder: Path) -> None:
    backbone = opened(folder)
    (tokens,), cut = backbone.encode_texts(["a good film"], 12)
    assert backbone.text_of(tokens) == "a good film" and cut == 0 and backbone.special.lead == " "
    assert backbone.most == 24 - 1


def test_silence_is_heard(folder: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silent.wav", np.zeros(800), 8_000)
    backbone = opened(folder)
    inputs = backbone.collate(backbone.encode(heard([tmp_path / "silent.wav"])), [0])
    states = backbone.features(inputs).sequence
    assert states.isfinite().all() and len(backbone.write(states, inputs["attention_mask"], SEARCHES[0])) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"language": "klingon"}, "klingon"),
        ({"task": "sing", "task_to_id": {"transcribe": 11}}, "sing"),
        ({"forced_decoder_ids": [[2, 11]]}, "forced_decoder_ids"),
        ({"no_timestamps_token_id": 9_000}, "9000"),
    ],
)
def test_what_the_folder_says_wrongly_is_told(said: dict[str, object], told: str, tmp_path: Path) -> None:
    path = write_whisper(tmp_path) / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    with pytest.raises(ConfigError, match=r"generation_config\.json") as raised:
        opened(tmp_path)
    assert told in str(raised.value) and str(tmp_path) in str(raised.value)


@pytest.mark.real
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_whisper_tiny_writes_what_transformers_writes(shared: Path) -> None:
    digits = shared / "data" / "free_spoken_digits" / "recordings"
    if not (REAL.is_dir() and digits.is_dir()):
        pytest.skip("no whisper-tiny.en or no free_spoken_digits here")
    backbone = opened(REAL)
    encoded = backbone.encode(heard([digits / f"{name}_0.wav" for name in ("6_jackson", "8_george", "9_theo")]))
    with torch.no_grad():
        same_texts(backbone, REAL, encoded, (TextSearch(1, 1.0, 0, 8), TextSearch(2, 1.0, 0, 8)))
