"""Strict decoding of image and sound files to arrays; damaged, too large or silent files are rejected."""

from __future__ import annotations

import io
import math
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from graftwork.core.media import Media
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
MOST_TOLD = 1 << 30  # above this, a WAV header's length is a placeholder
GROUND = "white"  # behind the transparent parts of an image
CANCELS = 0.1  # the mean of the channels is not used if its root mean square is below this share of the loudest one's
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # of images
SOUNDS = (b"RIFF", b"RF64", b"fLaC", b"OggS")  # first bytes of accepted formats, a subset of libsndfile's


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
    """Return the versions of the decoding, resampling and spectrogram libraries, which affect the numbers."""
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
    return Media(str(path), file_digest(path), (len(samples), rate))


def decode_image(path: Path | str, roughly: bool = False) -> Image:
    """Decode an image to RGB, on white if it is transparent, rotated by its EXIF orientation; of frames only the first.

    With `roughly` a JPEG is decoded to the end, but kept at an eighth of its size only.
    Of 16-bit colours the upper 8 bits are read. Raises `DataError` for a file that is not an image, damaged, too large,
    or grey with more than 8 bits.
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
        return _upright(_in_rgb(path, image))
    except UnidentifiedImageError:
        _refuse_foreign(path, content)
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
    """Decode samples (T,) in -1 … 1 at `rate` per second, of one channel (`_mixed`), resampled (polyphase) if needed.

    Raises `DataError` for a file that is not a sound, damaged, empty or silent.
    """
    from scipy.signal import resample_poly

    samples, own = _samples(Path(path))
    if own == rate:
        return samples
    common = math.gcd(own, rate)
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
    start = max(0, loud - int(rate * SMALL_SECONDS / 2))  # around the loudest sample, so that it is not silent
    cut = samples[start : start + int(rate * SMALL_SECONDS)]
    soundfile.write(content, cut, rate, subtype="PCM_16", format="WAV")
    write_bytes(path, content.getvalue())
    return identify(path, role)


def _in_rgb(path: Path, image: Image) -> Image:
    if image.mode.startswith(("I", "F")):
        raise DataError(
            "the image has more than 8 bits a channel",
            where=str(path),
            got=f"pixels of the mode {image.mode}",
            expected="8 bits a channel, grey or in colour",
            do="save it with 8 bits a channel",
        )
    if not image.has_transparency_data:
        return image.convert("RGB")
    from PIL import Image as images

    image = image.convert("RGBA")  # dropping alpha would show colours that no viewer shows
    return images.alpha_composite(images.new("RGBA", image.size, GROUND), image).convert("RGB")


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


def _refuse_foreign(path: Path, content: bytes) -> NoReturn:
    raise DataError(
        "not an image" if content else "the file is empty",
        where=str(path),
        got=f"a file that begins with {clip(content[:16].decode('latin-1'))}" if content else "0 bytes",
        expected="an image: JPEG, PNG, WebP, BMP, GIF or TIFF",
        do="save it as one of these, or take it out of the data",
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


def _refuse_cut(told: int, there: int) -> None:
    """Raise `ValueError` for a truncated file, which libsndfile would read as a shorter recording.

    Writers may or may not count the first eight bytes; headers written to a pipe state a huge placeholder length.
    """
    if there + 8 < told < MOST_TOLD:
        raise ValueError(f"it is cut off: its head tells of {told:,} bytes or samples, {there:,} are there")


def _mixed(channels: NDArray[np.float32]) -> NDArray[np.float32]:
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

    remedy = "record it again, or take it out of the data"
    with storage_errors(path), open_plain(path) as stream:
        try:
            begins = stream.peek(8)[:8]
            if begins[:4] not in SOUNDS:
                raise ValueError("none of these formats")
            _refuse_cut(int.from_bytes(begins[4:], "little") if begins[:4] == b"RIFF" else 0, path.stat().st_size)
            with soundfile.SoundFile(stream) as sound:
                _refuse_long(path, sound.frames, sound.channels)
                channels, rate = sound.read(dtype="float32", always_2d=True), sound.samplerate
                _refuse_cut(sound.frames, len(channels))
        except (soundfile.LibsndfileError, RuntimeError, ValueError) as error:
            raise DataError(
                "not a sound that can be decoded",
                where=str(path),
                got=f"{path.stat().st_size:,} bytes; {str(error).rstrip('.')}",
                expected="a sound: WAV, FLAC or Ogg",
                do="save it as one of these, or take it out of the data",
            ) from None
    if not len(channels):
        raise DataError("the recording is empty", where=str(path), got="no samples", expected="at least one", do=remedy)
    samples = _mixed(channels)
    if not np.isfinite(samples).all():
        raise DataError(
            "the recording has samples that are no numbers",
            where=str(path),
            got="an infinity or NaN",
            expected="finite samples",
            do=remedy,
        )
    if not samples.any():
        raise DataError(
            "the recording is silent",
            where=str(path),
            got=f"{len(samples):,} samples, all zero",
            expected="a sample that is not zero",
            do=remedy,
        )
    return samples, int(rate)
