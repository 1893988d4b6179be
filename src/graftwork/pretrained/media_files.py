"""Strict decoding of image and sound files to arrays; damaged or too large files are rejected."""

from __future__ import annotations

import io
import math
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from graftwork.core.media import Media, conversion
from graftwork.errors import DataError, clip
from graftwork.io.extras import extra
from graftwork.io.files import file_digest, storage_errors, write_bytes
from graftwork.io.plain_files import open_plain, read_plain
from graftwork.machine.environment import version

if TYPE_CHECKING:
    from PIL.Image import Image

SMALL_SIDE, SMALL_SECONDS = 32, 0.25  # of the small copies stored in a module
KEPT_BYTES = 1 << 30
MOST_PIXELS = 89_478_485  # Pillow's own limit against decompression bombs
MOST_BYTES = 1 << 29  # of a file: more than `MOST_PIXELS` take uncompressed
MOST_SAMPLES = 100_000_000  # of all channels of a recording: 17 minutes in stereo at 48 kHz
MOST_RATE = 1_000_000  # samples per second: the filter of resampling has 20 coefficients for each
MOST_TOLD = 1 << 30  # above this, a header's length is a placeholder
REMEDY = "replace it, or take it out of the data"
GROUND = "white"  # behind the transparent parts of an image
CANCELS = 0.1  # the mean of the channels is not used if its root mean square is below this share of the loudest one's
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # of images
IMAGE_FORMATS = "an image: JPEG, PNG, WebP, BMP, GIF or TIFF"
SOUNDS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"FORM", b".snd", b"ID3")  # first bytes of formats, but for bare MP3
SOUND_FORMATS = "a sound: WAV, FLAC, Ogg, MP3, AIFF or AU"
BITS, PHOTOMETRIC, ZERO_IS_BLACK = 258, 262, 1  # numbers of TIFF's tags, and a value
LEAST_USED = 1 << 12  # a 16-bit image whose greatest value is below this would be read as 16 levels of grey


class KeptArrays:
    """An in-memory LRU cache of arrays decoded from files."""

    def __init__(self, cap_bytes: int = KEPT_BYTES):
        self.cap_bytes, self._bytes = cap_bytes, 0
        self._arrays: OrderedDict[str, NDArray[Any]] = OrderedDict()  # sha256 -> array, least recently used first
        self._lock = threading.Lock()  # the next examples are prefetched in a thread

    def get(self, media: Media, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the cached array of this file, or call `make` and cache its result."""
        with self._lock:
            if media.sha256 in self._arrays:
                self._arrays.move_to_end(media.sha256)
                return self._arrays[media.sha256]
        made = make()
        with self._lock:
            if media.sha256 not in self._arrays:
                self._arrays[media.sha256] = made
                self._bytes += made.nbytes
            while self._bytes > self.cap_bytes:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
        return made


def decoders() -> dict[str, str]:
    """Return the versions of the decoding, resampling and spectrogram libraries, which affect the decoded values."""
    optional = ("torchaudio",) if find_spec("torchaudio") else ()  # transformers uses it if installed
    found = {name: version(name) for name in ("pillow", "soundfile", "scipy", *optional)}
    return {name: known for name, known in found.items() if known is not None}


def identify(path: Path, role: str) -> Media:
    """Decode the file once to check it; return its `Media`. Raises `DataError`, or `StorageError` if unreadable."""
    if role == "image":
        decode_image(path, roughly=True)
        from PIL import Image

        with Image.open(path, formats=FORMATS) as image:
            return Media(str(path), file_digest(path), image.size)
    samples, rate = _samples(path)
    return Media(str(path), file_digest(path), (len(samples), rate), silent=not samples.any())


def decode_image(path: Path | str, roughly: bool = False) -> Image:
    """Decode the first frame of an image to RGB, upright by its EXIF orientation, with white behind transparent parts.

    16-bit greys keep their upper 8 bits. With `roughly` a JPEG is decoded to its end, but at an eighth of its size.
    Raises `DataError` for a file that is not an image, damaged or too large, or with greys that are of neither 8 nor 16
    bits.
    """
    path = Path(path)
    with extra("images", "reading images", where=str(path)):
        from PIL import Image, UnidentifiedImageError
    try:
        with storage_errors(path):
            content = read_plain(path, MOST_BYTES)
        image = Image.open(io.BytesIO(content), formats=FORMATS)
        _refuse_large(path, image.size)
        if roughly:
            image.draft("RGB", (1, 1))
        image.load()
        found = _in_rgb(path, image)
        found.info = image.info
        return _upright(found)
    except UnidentifiedImageError:
        _refuse_foreign(path, content[:16], "image")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        _refuse_bomb(path, f"more than {MOST_PIXELS:,} pixels")
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(
            f"the image is damaged: {str(error).strip() or type(error).__name__}",
            where=str(path),
            got=f"{len(content):,} bytes",
            expected="an image that can be decoded to its end",
            do="copy or save it again, or take it out of the data",
        ) from None


def decode_sound(path: Path | str, rate: int) -> NDArray[np.float32]:
    """Decode a recording to one channel (`_mono`): samples (T,) in -1 … 1 at `rate` per second, resampled if needed.

    Raises `DataError` for a file that is not a sound, damaged, empty or too long, or at a rate that can't be resampled.
    """
    from scipy.signal import resample_poly

    samples, own = _samples(Path(path))
    if own == rate:
        return samples
    common = math.gcd(own, rate)
    if own // common > MOST_RATE or len(samples) * rate > MOST_SAMPLES * own:
        raise DataError(
            "the recording has a sample rate that cannot be converted",
            where=str(path),
            got=f"{len(samples):,} samples at {own:,} a second",
            expected=f"at most {MOST_SAMPLES:,} samples at {rate:,} a second, from a rate up to {MOST_RATE:,}",
            do=f"resample or cut it: {conversion(Path(path), 'sound', f'-ar {rate}')}; or take it out of the data",
        )
    return np.asarray(resample_poly(samples, rate // common, own // common), dtype=np.float32)


def small_copy(given: Media, role: str, stem: Path) -> Media:
    """Write a small copy: a shrunk image as PNG; a sound's quarter second around its loudest sample as WAV."""
    content = io.BytesIO()
    if role == "image":
        path = stem.with_suffix(".png")
        image = decode_image(given.path)
        image.thumbnail((SMALL_SIDE, SMALL_SIDE))
        image.save(content, "PNG")
        write_bytes(path, content.getvalue())
        return identify(path, role)
    path = stem.with_suffix(".wav")
    samples, rate = _samples(Path(given.path))
    import soundfile

    loud = int(np.abs(samples).argmax())
    start = max(0, loud - int(rate * SMALL_SECONDS / 2))  # around the loudest sample
    cut = samples[start : start + int(rate * SMALL_SECONDS)]
    soundfile.write(content, cut, rate, subtype="PCM_16", format="WAV")
    write_bytes(path, content.getvalue())
    return identify(path, role)


def _in_rgb(path: Path, image: Image) -> Image:
    from PIL import Image as images

    if image.mode.startswith(("I", "F")):
        return images.fromarray(_upper_bits(path, image)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")  # dropping alpha would show colours that no viewer shows
    return images.alpha_composite(images.new("RGBA", image.size, GROUND), image).convert("RGB")


def _upper_bits(path: Path, image: Image) -> NDArray[np.uint8]:
    """Return the upper 8 of the 16 bits of a grey image (H, W). Raises `DataError` for greys of another range."""
    values, tags = np.asarray(image), getattr(image, "tag_v2", {})
    whole = (
        image.mode.startswith("I;16")
        and tags.get(BITS, (16,)) == (16,)
        and tags.get(PHOTOMETRIC, ZERO_IS_BLACK) == ZERO_IS_BLACK
        and not image.has_transparency_data
    )
    dark = whole and 0 < values.max() < LEAST_USED
    if dark or not whole:
        stretch = f"-level 0%,{LEAST_USED / (1 << 16):.2%}" if dark else "-auto-level"  # the same for all dark images
        raise DataError(
            "the image's greys have a range that is not that of 8 or 16 bits",
            where=str(path),
            got=f"pixels of the mode {image.mode} from {values.min():g} to {values.max():g}",
            expected=f"8 bits a channel, or 16 bits of grey with a value from {LEAST_USED:,} on",
            do=f"convert it: {conversion(path, 'image', f'{stretch} -depth 8')}; or take it out of the data",
        )
    return (values >> 8).astype(np.uint8)


def _upright(image: Image) -> Image:
    """Apply the EXIF orientation; return the image unchanged if that block cannot be read, like viewers do."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, ValueError, LookupError, TypeError, struct.error):
        return image


def _refuse_large(path: Path, size: tuple[int, int]) -> None:
    if size[0] * size[1] > MOST_PIXELS:
        _refuse_bomb(path, f"{size[0]:,} x {size[1]:,} pixels")


def _refuse_bomb(path: Path, got: str) -> NoReturn:
    raise DataError(
        "the image is too large to be decoded safely",
        where=str(path),
        got=got,
        expected=f"at most {MOST_PIXELS:,} pixels",
        do="shrink it, or take it out of the data",
    )


def _refuse_foreign(path: Path, head: bytes, role: str, got: str = "") -> NoReturn:
    raise DataError(
        f"not {'an image' if role == 'image' else 'a sound'} that can be decoded" if head else "the file is empty",
        where=str(path),
        got=got or (f"a file that begins with {clip(head.decode('latin-1'))}" if head else "0 bytes"),
        expected=IMAGE_FORMATS if role == "image" else SOUND_FORMATS,
        do=f"convert it: {conversion(path, role)}; or take it out of the data" if head else REMEDY,
    )


def _refuse_long(path: Path, frames: int, channels: int) -> None:
    if frames * channels > MOST_SAMPLES:
        raise DataError(
            "the recording is too long to be decoded safely",
            where=str(path),
            got=f"{frames:,} frames of {channels:,} channels",
            expected=f"at most {MOST_SAMPLES:,} samples",
            do="cut it into parts, or take it out of the data",
        )


def _refuse_cut(path: Path, told: int, there: int, what: str) -> None:
    """Raise `DataError` for a truncated file, which libsndfile would read as a shorter recording.

    Writers may or may not count the first eight bytes; headers written to a pipe state a huge placeholder length.
    """
    if there + 8 < told < MOST_TOLD:
        raise DataError(
            "the recording is cut off",
            where=str(path),
            got=f"{there:,} {what}",
            expected=f"{told:,} {what}, as its head says",
            do="copy it again, or take it out of the data",
        )


def _told_bytes(head: bytes) -> int:
    """Return the length of the file as its head (28 bytes) states it, in bytes; 0 if it does not."""
    if head[:4] == b"RIFF":
        return int.from_bytes(head[4:8], "little")
    if head[:4] == b"RF64":
        return int.from_bytes(head[20:28], "little")
    if head[:4] == b".snd":
        return int.from_bytes(head[4:8], "big") + int.from_bytes(head[8:12], "big")
    return int.from_bytes(head[4:8], "big") if head[:4] == b"FORM" else 0


def _counts_samples(stream: BufferedReader, head: bytes) -> bool:
    """Return whether the first frame of an MP3 states its number of samples.

    If not, libsndfile estimates it, up to five times too high for a variable bit rate.
    """
    sizes = head[6:10]
    start = 10 + sum(size << 7 * place for place, size in enumerate(reversed(sizes))) if head[:3] == b"ID3" else 0
    stream.seek(start)
    first = stream.read(200)
    stream.seek(0)
    return any(mark in first for mark in (b"Xing", b"Info"))


def _begins_frame(head: bytes) -> bool:
    """Return whether these are the first bytes of an MP3 frame: eleven bits set, and a layer (AAC states none)."""
    return len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x06 > 0


def _mono(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean (T,) of channels (T, C), or the loudest channel where they cancel, as in opposite phase."""
    mean: NDArray[np.float32] = channels.mean(axis=1, dtype=np.float32)
    if channels.shape[1] == 1:
        return mean
    power = np.square(channels, dtype=np.float64).mean(axis=0)
    loudest = int(np.nan_to_num(power).argmax())
    cancelled = np.square(mean, dtype=np.float64).mean() < CANCELS**2 * power[loudest]
    return np.ascontiguousarray(channels[:, loudest]) if cancelled else mean


def _samples(path: Path) -> tuple[NDArray[np.float32], int]:
    """Return the samples (T,) of a file, not resampled, and their rate per second."""
    with extra("sound", "reading sound", where=str(path)):
        import soundfile

    with storage_errors(path), open_plain(path) as stream:
        head = stream.peek(28)[:28]
        mp3 = head[:3] == b"ID3" or _begins_frame(head)
        if not (mp3 or head.startswith(SOUNDS)):
            _refuse_foreign(path, head[:16], "sound")
        _refuse_cut(path, _told_bytes(head), path.stat().st_size, "bytes")
        counted = not mp3 or _counts_samples(stream, head)
        try:
            with soundfile.SoundFile(stream) as sound:
                _refuse_long(path, sound.frames, sound.channels)
                channels, rate = sound.read(sound.frames, "float32", always_2d=True), sound.samplerate
                if counted:
                    _refuse_cut(path, sound.frames, len(channels), "samples")
        except (soundfile.LibsndfileError, RuntimeError, ValueError) as error:
            told = str(getattr(error, "error_string", error))
            _refuse_foreign(path, head, "sound", f"{path.stat().st_size:,} bytes; {told.rstrip('.')}")
    if not len(channels):
        raise DataError("the recording is empty", where=str(path), got="no samples", expected="at least one", do=REMEDY)
    samples = _mono(channels)
    if not np.isfinite(samples).all():
        raise DataError(
            "the recording has samples that are no numbers",
            where=str(path),
            got="an infinity or NaN",
            expected="finite samples",
            do=REMEDY,
        )
    return samples, int(rate)
