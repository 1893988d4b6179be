"""Decoding files: what comes out, and one clear refusal for each way in which a file can be bad."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from graftwork.errors import DataError, StorageError
from graftwork.io.files import file_digest
from graftwork.pretrained import media_files
from graftwork.pretrained.media_files import decode_image, decode_sound, identify, small_copy

GRADIENT = np.arange(16 * 24 * 3, dtype=np.uint8).reshape(16, 24, 3)


def refusal(path: Path, role: str) -> DataError:
    with pytest.raises(DataError) as caught:
        identify(path, role)
    assert caught.value.where == str(path)
    assert caught.value.do
    return caught.value


def test_a_file_is_its_content(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        Image.fromarray(GRADIENT).save(tmp_path / name)
    a, b = (identify(tmp_path / name, "image") for name in ("a.png", "b.png"))
    assert a == b and hash(a) == hash(b) and a.path != b.path
    assert (a.sha256, a.size) == (file_digest(tmp_path / "a.png"), (24, 16))
    assert np.array_equal(np.asarray(decode_image(a.path)), GRADIENT)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    Image.fromarray(GRADIENT).convert(mode).save(tmp_path / "a.tiff")
    assert decode_image(tmp_path / "a.tiff").mode == "RGB"


def test_a_palette_with_transparent_colours_is_read_without_a_warning(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).convert("P").save(tmp_path / "a.png", transparency=b"\x00\x80")
    assert decode_image(tmp_path / "a.png").mode == "RGB"


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(tmp_path: Path, mode: str) -> None:
    """Black shapes cut out of nothing, as icons are: their shape is in alpha alone."""
    alpha = np.zeros((16, 24), dtype=np.uint8)
    alpha[4:12] = 255
    image = Image.fromarray(np.dstack([np.zeros((16, 24, 3), dtype=np.uint8), alpha]))
    if mode == "P":
        image = Image.fromarray(alpha // 255)
        image.putpalette([0] * 6)
        image.info["transparency"] = 0
    image.convert(mode).save(tmp_path / "a.png", **({"transparency": 0} if mode == "P" else {}))
    seen = np.asarray(decode_image(tmp_path / "a.png"))
    assert (seen[4:12] == 0).all() and (seen[:4] == 255).all() and (seen[12:] == 255).all()


def test_an_opaque_alpha_changes_nothing(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).convert("RGBA").save(tmp_path / "a.png")
    assert np.array_equal(np.asarray(decode_image(tmp_path / "a.png")), GRADIENT)


def test_an_image_stands_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(GRADIENT).save(tmp_path / "a.png", exif=exif)
    upright = np.asarray(decode_image(tmp_path / "a.png"))
    assert np.array_equal(upright, np.rot90(GRADIENT, -1))


def test_an_image_whose_exif_is_broken_lies_as_it_was_saved(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "a.jpg", exif=b"Exif\x00\x00" + b"no directory")
    assert decode_image(tmp_path / "a.jpg").size == (24, 16)


def test_bad_images_are_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(whole, "JPEG")
    path = tmp_path / "a.jpg"
    for content, what in (
        (whole.getvalue()[: len(whole.getvalue()) // 2], "damaged"),
        (b"<html>404</html>", "not an image"),
        (b"", "empty"),
    ):
        path.write_bytes(content)
        assert what in refusal(path, "image").what
    assert "<html>" not in refusal(path, "image").got
    deep = tmp_path / "deep.tiff"
    Image.fromarray(np.ones((4, 4), dtype=np.uint16)).save(deep)
    assert "8 bits" in refusal(deep, "image").what
    with pytest.raises(StorageError):
        identify(tmp_path / "absent.jpg", "image")


@pytest.mark.parametrize("share", [0.4, 0.9, 1.5])  # of the pixels: Pillow's error, Pillow's warning and ours alone
def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(16 * 24 * share))
    monkeypatch.setattr(media_files, "MOST_PIXELS", 16 * 24 - 1)
    assert "too large" in refusal(tmp_path / "bomb.png", "image").what


def test_sounds_are_averaged_over_channels_and_resampled(tmp_path: Path) -> None:
    times = np.arange(8000) / 8000
    tone = np.sin(2 * np.pi * 440 * times)
    soundfile.write(tmp_path / "a.flac", np.stack([0.8 * tone, 0.2 * tone], axis=1), 8000)
    assert identify(tmp_path / "a.flac", "sound").size == (8000, 8000)
    np.testing.assert_allclose(decode_sound(tmp_path / "a.flac", 8000), 0.5 * tone, atol=1e-4)
    twice = decode_sound(tmp_path / "a.flac", 16_000)
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert len(twice) == 16_000
    np.testing.assert_allclose(twice[500:-500], expected[500:-500], atol=2e-3)


@pytest.mark.parametrize("noise", [0.0, 3e-5])
def test_channels_that_cancel_are_read_as_one_of_them(tmp_path: Path, noise: float) -> None:
    tone = 0.25 * np.sin(np.arange(2000) / 10)
    other = -tone + noise * np.random.default_rng(0).standard_normal(2000)
    soundfile.write(tmp_path / "a.wav", np.stack([tone, other], axis=1), 8000)
    seen = decode_sound(tmp_path / "a.wav", 8000)
    assert min(np.abs(seen - tone).max(), np.abs(seen + tone).max()) < 2e-4


def test_a_quiet_channel_is_averaged(tmp_path: Path) -> None:
    tone = 0.25 * np.sin(np.arange(2000) / 10)
    soundfile.write(tmp_path / "a.wav", np.stack([tone, 0 * tone], axis=1), 8000)
    np.testing.assert_allclose(decode_sound(tmp_path / "a.wav", 8000), 0.5 * tone, atol=1e-4)


def test_bad_sounds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    for samples, what in ((np.zeros(800), "silent"), (np.zeros(0), "empty")):
        soundfile.write(path, samples, 8000)
        assert what in refusal(path, "sound").what
    soundfile.write(path, np.array([0.1, np.nan, 0.2]), 8000, subtype="FLOAT")
    assert "no numbers" in refusal(path, "sound").what
    path.write_bytes(b"not a sound")
    assert "not a sound" in refusal(path, "sound").what


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_a_recording_that_is_cut_off_is_not_read_as_a_shorter_one(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a"
    soundfile.write(path, np.random.default_rng(0).uniform(-0.5, 0.5, 8000), 8000, format=form)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(path, "sound").what == "not a sound that can be decoded"
    if form == "WAV":
        assert "cut off" in refusal(path, "sound").got
        for told in (0xFFFFFFFF, len(whole)):  # of a pipe's, whose length nobody knew; of those that count all
            path.write_bytes(whole[:4] + told.to_bytes(4, "little") + whole[8:])
            assert identify(path, "sound").size == (8000, 8000)


def test_copies_are_small_and_stay_decodable(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((300, 600, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    quiet_first = np.concatenate([np.zeros(16_000), np.full(4_000, 0.5), np.zeros(8_000)])
    soundfile.write(tmp_path / "a.wav", quiet_first, 8000)
    image = small_copy(identify(tmp_path / "a.png", "image"), "image", tmp_path / "kept" / "0")
    sound = small_copy(identify(tmp_path / "a.wav", "sound"), "sound", tmp_path / "kept" / "1")
    assert image.size == (32, 16)
    assert sound.size == (2000, 8000)
    assert decode_sound(sound.path, 8000).max() > 0.4


def test_other_formats_that_the_library_knows_are_not_read(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "a.png", format="PCX")
    assert refusal(tmp_path / "a.png", "image").what == "not an image"
    soundfile.write(tmp_path / "a.wav", np.full(100, 0.5), 8000, format="AIFF")
    assert refusal(tmp_path / "a.wav", "sound").what == "not a sound that can be decoded"


def test_a_file_that_is_too_large_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    os.truncate(tmp_path / "a.png", 1 << 40)
    with pytest.raises(StorageError, match="too large for its purpose"):
        identify(tmp_path / "a.png", "image")


def test_a_long_recording_is_refused_by_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile.write(tmp_path / "a.flac", np.full((100, 2), 0.5), 8000)
    assert identify(tmp_path / "a.flac", "sound").size == (100, 8000)
    monkeypatch.setattr(media_files, "MOST_SAMPLES", 199)
    told = refusal(tmp_path / "a.flac", "sound")
    assert told.got == "100 frames of 2 channels" and "199" in told.expected
