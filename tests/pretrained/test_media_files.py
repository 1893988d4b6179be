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
DEEP = (np.arange(16 * 24, dtype=np.uint16) * 170).reshape(16, 24)  # of 16 bits
TONE = 0.3 * np.sin(np.arange(8000) / 10)


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


@pytest.mark.parametrize(("mode", "name"), [("CMYK", "a.tiff"), ("CMYK", "a.jpg"), ("P", "a.gif"), ("P", "a.png")])
def test_inks_and_palettes_have_the_colours_that_were_saved(tmp_path: Path, mode: str, name: str) -> None:
    half = np.zeros((16, 24, 3), dtype=np.uint8)
    half[:, :8], half[:, 8:] = (200, 30, 60), (20, 180, 240)  # the edge of a block of JPEG's
    image = Image.fromarray(half)
    (image.quantize(2) if mode == "P" else image.convert(mode)).save(tmp_path / name, quality=100)
    np.testing.assert_allclose(np.asarray(decode_image(tmp_path / name), dtype=int), half, atol=2)


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "tiff"])
def test_of_several_frames_the_first_is_read(tmp_path: Path, suffix: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "white")]
    options = {"lossless": True} if suffix == "webp" else {}
    frames[0].save(tmp_path / f"a.{suffix}", save_all=True, append_images=frames[1:], **options)
    assert np.array_equal(np.asarray(decode_image(tmp_path / f"a.{suffix}")), np.full((8, 8, 3), (255, 0, 0)))


def test_a_palette_with_transparent_colours_is_read_without_a_warning(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).convert("P").save(tmp_path / "a.png", transparency=b"\x00\x80")
    assert decode_image(tmp_path / "a.png").mode == "RGB"


def encoded(form: str, samples: np.ndarray | None = None, **options: str) -> bytes:
    """A second of a tone at 8000 Hz, or these samples, in a format of libsndfile's."""
    content = io.BytesIO()
    soundfile.write(content, TONE if samples is None else samples, 8000, format=form, **options)
    return content.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "I;16"])
@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
def test_every_mode_stands_upright(tmp_path: Path, mode: str, suffix: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    image = Image.fromarray(DEEP) if mode == "I;16" else Image.fromarray(GRADIENT).convert(mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.fromarray(GRADIENT[..., 0]))
    if suffix == "webp" and mode in ("P", "I;16"):
        return
    options = {"lossless": True} if suffix == "webp" else {}
    image.save(tmp_path / f"lying.{suffix}", **options)
    image.save(tmp_path / f"turned.{suffix}", exif=exif, **options)
    lying, turned = (np.asarray(decode_image(tmp_path / f"{name}.{suffix}")) for name in ("lying", "turned"))
    assert np.array_equal(turned, np.rot90(lying, -1))


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


@pytest.mark.parametrize("name", ["a.png", "a.tiff", "big_endian.tiff"])
def test_of_16_bits_of_grey_the_upper_8_are_read(tmp_path: Path, name: str) -> None:
    image = Image.fromarray(DEEP)
    if name == "big_endian.tiff":
        image = Image.frombytes("I;16B", (24, 16), DEEP.astype(">u2").tobytes())
    image.save(tmp_path / name)
    assert identify(tmp_path / name, "image").size == (24, 16)
    assert np.array_equal(np.asarray(decode_image(tmp_path / name)), np.dstack([DEEP >> 8] * 3))
    Image.fromarray(DEEP * 0).save(tmp_path / "black.png")
    assert not np.asarray(decode_image(tmp_path / "black.png")).any()


@pytest.mark.parametrize(
    ("pixels", "options", "remedy"),
    [
        (DEEP // 16, {}, "-level 0%,6.25% -depth 8"),  # a camera of 12 bits: 16 greys would be left
        (DEEP, {"tiffinfo": {262: 0}}, "-auto-level -depth 8"),  # zero is white
        (DEEP.astype(np.int32), {}, "-auto-level -depth 8"),
        (DEEP.astype(np.float32), {}, "-auto-level -depth 8"),
    ],
)
def test_greys_of_another_range_name_the_command_that_converts(
    tmp_path: Path, pixels: np.ndarray, options: dict[str, dict[int, int]], remedy: str
) -> None:
    path = tmp_path / "a b.tiff"
    Image.fromarray(pixels).save(path, **options)
    told = refusal(path, "image")
    assert "range" in told.what and "mode" in told.got
    assert f"magick '{path}' {remedy} '{tmp_path / 'a b.png'}'" in told.do


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


@pytest.mark.parametrize(
    ("form", "options", "near"),
    [
        ("WAV", {"subtype": "PCM_24"}, 1e-6),
        ("WAV", {"subtype": "FLOAT"}, 1e-6),
        ("WAV", {"subtype": "DOUBLE"}, 1e-6),
        ("WAV", {"subtype": "ULAW"}, 0.02),
        ("WAV", {"subtype": "GSM610"}, 0.2),  # libsndfile can't seek in it
        ("RF64", {}, 1e-4),
        ("FLAC", {"subtype": "PCM_24"}, 1e-6),
        ("OGG", {"subtype": "VORBIS"}, 0.05),
        ("OGG", {"subtype": "OPUS"}, 0.1),
        ("MP3", {}, 0.05),
        ("AIFF", {}, 1e-4),
        ("AIFF", {"subtype": "FLOAT"}, 1e-6),
        ("AU", {}, 1e-4),
    ],
)
def test_every_format_has_its_samples(tmp_path: Path, form: str, options: dict[str, str], near: float) -> None:
    (tmp_path / "a").write_bytes(encoded(form, **options))
    samples, rate = identify(tmp_path / "a", "sound").size
    assert rate == 8000 and samples == (8320 if options.get("subtype") == "GSM610" else 8000)  # a multiple of 320
    np.testing.assert_allclose(decode_sound(tmp_path / "a", 8000)[200:8000], TONE[200:], atol=near)


def test_an_mp3_may_have_tags_and_lack_its_length(tmp_path: Path) -> None:
    loud = np.concatenate([np.zeros(40_000), np.random.default_rng(0).uniform(-0.9, 0.9, 40_000)])
    whole = encoded("MP3", loud, bitrate_mode="VARIABLE")
    second = whole.index(whole[:2], 4)  # the first frame states the length
    (tmp_path / "a.mp3").write_bytes(b"ID3\x03\0\0\0\0\x02\x00" + bytes(256) + whole)
    assert identify(tmp_path / "a.mp3", "sound").size == (80_000, 8000)
    (tmp_path / "b.mp3").write_bytes(whole[second:])
    assert 80_000 <= identify(tmp_path / "b.mp3", "sound").size[0] < 83_000


def test_a_quiet_channel_is_averaged(tmp_path: Path) -> None:
    tone = 0.25 * np.sin(np.arange(2000) / 10)
    soundfile.write(tmp_path / "a.wav", np.stack([tone, 0 * tone], axis=1), 8000)
    np.testing.assert_allclose(decode_sound(tmp_path / "a.wav", 8000), 0.5 * tone, atol=1e-4)


def test_bad_sounds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(0), 8000)
    assert "empty" in refusal(path, "sound").what
    path.write_bytes(b"")
    assert "empty" in refusal(path, "sound").what
    soundfile.write(path, np.array([0.1, np.nan, 0.2]), 8000, subtype="FLOAT")
    assert "no numbers" in refusal(path, "sound").what
    path.write_bytes(b"not a sound")
    assert "not a sound" in refusal(path, "sound").what


@pytest.mark.parametrize("form", ["WAV", "RF64", "AIFF", "AU", "MP3", "FLAC"])
def test_a_recording_that_is_cut_off_is_not_read_as_a_shorter_one(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a"
    whole = encoded(form, np.random.default_rng(0).uniform(-0.5, 0.5, 8000))
    path.write_bytes(whole[: len(whole) // 2])
    expected = "not a sound that can be decoded" if form == "FLAC" else "the recording is cut off"
    assert refusal(path, "sound").what == expected
    if form == "WAV":
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
    told = refusal(tmp_path / "a.png", "image")
    assert told.what == "not an image that can be decoded" and f"magick {tmp_path / 'a.png'}" in told.do
    for name, content, made in (
        ("a.caf", encoded("CAF"), "a.flac"),
        ("a.aac", b"\xff\xf1" + bytes(100), "a.flac"),
        ("a.flac", b"\0\0\0\x18ftypM4A " + bytes(100), "a.wav"),
    ):
        (tmp_path / name).write_bytes(content)
        told = refusal(tmp_path / name, "sound")
        assert told.what == "not a sound that can be decoded"
        assert f"ffmpeg -i {tmp_path / name} {tmp_path / made}" in told.do


@pytest.mark.parametrize("samples", [1, 8000])
def test_silence_is_read_and_said(tmp_path: Path, samples: int) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(samples), 8000)
    found = identify(tmp_path / "a.wav", "sound")
    assert found.silent and found.size == (samples, 8000)
    assert decode_sound(tmp_path / "a.wav", 16_000).tolist() == [0.0] * len(decode_sound(tmp_path / "a.wav", 16_000))
    copy = small_copy(found, "sound", tmp_path / "kept" / "0")
    assert copy.silent and copy.size[0] == min(samples, 2000)
    soundfile.write(tmp_path / "b.wav", np.full(samples, 0.5), 8000)
    assert not identify(tmp_path / "b.wav", "sound").silent


def test_a_file_that_is_too_large_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    os.truncate(tmp_path / "a.png", 1 << 40)
    with pytest.raises(StorageError, match="too large for its purpose"):
        identify(tmp_path / "a.png", "image")


@pytest.mark.parametrize(("rate", "samples"), [(2**31 - 1, 10), (1_999_993, 10), (1, 7000)])
def test_a_rate_that_resampling_has_no_memory_for_is_refused(tmp_path: Path, rate: int, samples: int) -> None:
    soundfile.write(tmp_path / "a.wav", np.full(samples, 0.5), rate)
    with pytest.raises(DataError, match="sample rate") as caught:
        decode_sound(tmp_path / "a.wav", 16_000)
    assert f"{rate:,} a second" in caught.value.got and "-ar 16000" in caught.value.do
    soundfile.write(tmp_path / "b.wav", np.full(100, 0.5), 250)  # a slow sensor
    assert len(decode_sound(tmp_path / "b.wav", 16_000)) == 6400


def test_a_long_recording_is_refused_by_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile.write(tmp_path / "a.flac", np.full((100, 2), 0.5), 8000)
    assert identify(tmp_path / "a.flac", "sound").size == (100, 8000)
    monkeypatch.setattr(media_files, "MOST_SAMPLES", 199)
    told = refusal(tmp_path / "a.flac", "sound")
    assert told.got == "100 frames of 2 channels" and "199" in told.expected
