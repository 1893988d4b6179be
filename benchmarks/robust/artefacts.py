"""Hostile files, made on demand: each is an alteration of a scene, with the command that reads it."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graftwork.io.files import file_digest

CANARY = "canary"  # the file that a payload creates when executed
SECRET = "secret.json"  # next to the scene; nothing may read or write it
CODE = f"import os\nos.mkdir({CANARY!r})\n"
TRAIN = ("train", "data.csv", "--method", "linear_probe", "--epochs", "1", "--cache-size", "0", "--backbone")
NETWORK = (*TRAIN, "hf:network")
MODULE = ("predict", "module", "a good film")
BANK = ("predict", "bank", "moods", "a good film")
LOCK_IN = ("bank", "add", "bank", "module", "--task", "other")
IMPORT = ("bank", "import", "empty", "adapter", "--name", "other", "--backbone", "hf:network")
ELMO = (*TRAIN, "elmo:elmo")
REMOTE = "trust_remote_code"
Content = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """A folder with copies of a network, a module, a bank and data, in which commands run."""

    folder: Path

    @property
    def weights(self) -> Path:
        """Return the path of the network's weights."""
        return self.folder / "network" / "model.safetensors"

    def edit(self, name: str, change: Callable[[Content], Any]) -> None:
        """Change a JSON file."""
        path = self.folder / name
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    def write(self, name: str, content: bytes | str) -> Path:
        """Write a file, creating its folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def delta(self, content: bytes) -> None:
        """Write the module's weights, and their hash into module.json."""
        path = self.write("module/delta.safetensors", content)
        self.edit("module/module.json", lambda told: told.update(delta_sha256=file_digest(path)))


@dataclass(frozen=True)
class Case:
    """An artefact, the command that reads it, and the expected refusal: a file, and words of the rule."""

    name: str
    make: Callable[[Scene], Any]
    command: tuple[str, ...]
    file: str
    rule: str


def met_by(command: tuple[str, ...], file: str, *rows: tuple[str, Callable[[Scene], Any], str]) -> tuple[Case, ...]:
    """Return the cases of one command and one file, from name, maker and rule of each."""
    return tuple(Case(name, make, command, file, rule) for name, make, rule in rows)


def tensors(header: Content | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """Return a safetensors file with this header, valid or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def told(shape: list[int], begin: int, end: int, dtype: str = "F32") -> Content:
    """Return one entry of such a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class Payload:
    """An object that creates the canary when unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (CANARY,)


def archive(content: Any) -> bytes:
    """Return the content as torch.save writes it."""
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def network(content: bytes) -> Callable[[Scene], Path]:
    """Return an alteration that replaces the network's weights by these bytes."""
    return lambda scene: scene.write("network/model.safetensors", content)


def config(**changes: Any) -> Callable[[Scene], None]:
    """Return an alteration of config.json, with a code file beside it."""

    def make(scene: Scene) -> None:
        scene.write("network/evil.py", CODE)
        scene.edit("network/config.json", lambda content: content.update(changes))

    return make


def tokenizer(change: Callable[[Content], Any]) -> Callable[[Scene], None]:
    """Return an alteration of tokenizer.json."""
    return lambda scene: scene.edit("network/tokenizer.json", change)


def sparse(name: str, size: int, start: bytes = b"") -> Callable[[Scene], None]:
    """Return a maker of a large file that takes no disk space."""

    def make(scene: Scene) -> None:
        scene.write(name, start)
        os.truncate(scene.folder / name, size)

    return make


def poisoned(number: float) -> Callable[[Scene], None]:
    """Return an alteration that sets one weight of the network to `number`."""

    def make(scene: Scene) -> None:
        content = bytearray(scene.weights.read_bytes())
        content[-4:] = struct.pack("<f", number)
        scene.weights.write_bytes(bytes(content))

    return make


def poisoned_delta(scene: Scene) -> None:
    """Make one weight of the module infinite."""
    content = bytearray((scene.folder / "module" / "delta.safetensors").read_bytes())
    content[-4:] = struct.pack("<f", float("inf"))
    scene.delta(bytes(content))


def linked(name: str, to: str) -> Callable[[Scene], None]:
    """Return an alteration that replaces a file or folder by a symbolic link."""

    def make(scene: Scene) -> None:
        path = scene.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(to)

    return make


def hard_linked(scene: Scene) -> None:
    """Make the module's weights a hard link to a file elsewhere."""
    path = scene.folder / "module" / "delta.safetensors"
    path.unlink()
    os.link(scene.folder / SECRET, path)


def piped(name: str) -> Callable[[Scene], None]:
    """Return an alteration that replaces a file by a pipe without a writer: reading it blocks forever."""

    def make(scene: Scene) -> None:
        (scene.folder / name).unlink()
        os.mkfifo(scene.folder / name)

    return make


def index(*names: str) -> Callable[[Scene], None]:
    """Return an alteration whose index says that the weights are in other files."""

    def make(scene: Scene) -> None:
        shutil.copy(scene.weights, scene.folder / "outside.safetensors")
        scene.weights.unlink()
        listed = {f"tensor {number}": name.format(scene.folder) for number, name in enumerate(names)}
        scene.write("network/model.safetensors.index.json", json.dumps({"weight_map": listed}))

    return make


def adapter(weights: bytes, name: str = "adapter_model.bin") -> Callable[[Scene], None]:
    """Return a maker of a LoRA folder as peft writes it."""

    def make(scene: Scene) -> None:
        scene.write(f"adapter/{name}", weights)
        scene.write(
            "adapter/adapter_config.json",
            json.dumps({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 8, "lora_alpha": 8}),
        )

    return make


def zip_bomb() -> bytes:
    """Return an archive that unpacks to a thousand megabytes of zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        made.writestr("a/data.pkl", b"\x80\x02}.")
        with made.open("a/data/0", "w", force_zip64=True) as record:
            for _ in range(256):
                record.write(bytes(1 << 22))
    return stream.getvalue()


def overlapping() -> bytes:
    """Return an archive whose directory lists one record a thousand times."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("a/data.pkl", b"\x80\x02}.")
        made.writestr("a/data/0", bytes(1 << 16))
        record = made.getinfo("a/data/0")
        for number in range(1, 1000):
            other = zipfile.ZipInfo(f"a/data/{number}")
            other.header_offset, other.CRC = record.header_offset, record.CRC
            other.file_size = other.compress_size = record.file_size
            made.filelist.append(other)
            made.NameToInfo[other.filename] = other
        made._didModify = True  # type: ignore[attr-defined]
    return stream.getvalue()


def wide_lora() -> bytes:
    """Return two matrices of rank a hundred million without any number."""
    rank = 100_000_000
    site = "base_model.model.bert.encoder.layer.0.attention.self.query"
    return tensors({f"{site}.lora_A.weight": told([rank, 0], 0, 0), f"{site}.lora_B.weight": told([0, rank], 0, 0)})


def hdf5(change: Callable[[Any], Any]) -> Callable[[Scene], None]:
    """Return a maker of a published ELMo whose first array is replaced."""

    def make(scene: Scene) -> None:
        import h5py

        options = {
            "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8]], "n_highway": 1, "activation": "relu",
                         "n_characters": 261, "max_characters_per_token": 50},
            "lstm": {"dim": 8, "projection_dim": 4, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
        }  # fmt: skip
        scene.write("elmo/options.json", json.dumps(options))
        with h5py.File(scene.folder / "outside.hdf5", "w") as other:
            other["char_embed"] = np.zeros((261, 4), np.float32)
        with h5py.File(scene.folder / "elmo" / "lm_weights.hdf5", "w") as file:
            change(file)

    return make


def external_link(file: Any) -> None:
    """Put the array in another file."""
    import h5py

    file["char_embed"] = h5py.ExternalLink("../outside.hdf5", "char_embed")


def external_storage(file: Any) -> None:
    """Store the array's numbers in another file."""
    file.create_dataset("char_embed", (261, 4), "f4", external=[(f"../{SECRET}", 0, 261 * 16)])


def unpacked(file: Any) -> None:
    """Make the array four gigabytes of zeros."""
    file.create_dataset("char_embed", (1 << 30,), "f4", chunks=(1 << 20,), compression="gzip")


def huge_png() -> bytes:
    """Return an image of 30,000 x 30,000 pixels in a few kilobytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(bytes(1 << 20), 9)
    head = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def huge_wav() -> bytes:
    """Return a header of 65,535 channels and four gigabytes, without data."""
    form = struct.pack("<IHHIIHH", 16, 1, 65_535, 48_000, 192_000, 4, 16)
    return b"RIFF\xff\xff\xff\xffWAVEfmt " + form + b"data\xff\xff\xff\xff"


def long_flac(scene: Scene) -> None:
    """Write half an hour of sixteen silent channels, which FLAC compresses well."""
    import soundfile

    path = scene.folder / "sounds" / "high" / "0.flac"
    path.parent.mkdir(parents=True, exist_ok=True)
    with soundfile.SoundFile(path, "w", 48_000, 8, format="FLAC") as sound:
        block = np.zeros((48_000 * 5, 8), np.int16)
        for _ in range(60):
            sound.write(block)


def wide_parquet(scene: Scene) -> None:
    """Write a row group of sixty million equal rows."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000_000, np.int8)), pa.array(["a"]))
    table = pa.table({"text": rows, "label": rows})
    parquet.write_table(table, scene.folder / "rows.parquet", row_group_size=60_000_000)


def long_vectors(scene: Scene) -> None:
    """Write word vectors of zeros, a thousand times as large as their gzip file."""
    with gzip.open(scene.folder / "words.bin.gz", "wb", compresslevel=9) as stream:
        stream.write(b"4000 20000\n")
        for number in range(4000):
            stream.write(b"w%d " % number + bytes(80_000))


def laughing() -> str:
    """Return a task file with 50,000 nested arrays."""
    return 'data = "data.csv"\n' + "x = " + "[" * 50_000 + "]" * 50_000


def doubled(content: Content) -> None:
    """Replace every letter by ten, forty times."""
    parts = [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10} for _ in range(40)]
    content["normalizer"] = {"type": "Sequence", "normalizers": parts}


def repeating(content: Content) -> None:
    """Make a text be read a thousand times."""
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [piece] * 1000,
        "pair": [piece],
        "special_tokens": {},
    }


def endless(content: Content) -> None:
    """Use a pattern with exponential backtracking."""
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+$"},
        "behavior": "Isolated",
        "invert": False,
    }


def far(content: Content) -> None:
    """Give a token an id outside of every table."""
    content["model"]["vocab"]["a"] = 1 << 40


def mistaken(scene: Scene) -> None:
    """Make a module's self-test read an image outside of its folder."""
    scene.edit(
        "module/selftest.json", lambda test: test.update(inputs=[{"image": "../../secret.png"}] * len(test["inputs"]))
    )


def rewritten(scene: Scene) -> None:
    """Change the version in the last line of the ledger."""
    path = scene.folder / "bank" / "ledger.jsonl"
    lines = path.read_text().splitlines()
    lines[-1] = lines[-1].replace('"version":1', '"version":2')
    path.write_text("\n".join(lines) + "\n")


def elsewhere(scene: Scene) -> None:
    """Name a task with a path."""
    scene.edit("bank/bank.json", lambda bank: bank["tasks"].update({"../../evil": bank["tasks"]["moods"]}))


def wide_module(scene: Scene) -> None:
    """Set the rank of a LoRA in module.json to a hundred million."""
    scene.edit("lora/module.json", lambda told: told["method"].update(rank=100_000_000))


def fetched(scene: Scene) -> None:
    """Make a module name a network of the hub."""
    scene.edit("module/module.json", lambda told: told["backbone"].update(id="hf:evil/network"))


def _many() -> bytes:
    return tensors({f"t{number}": told([0], 0, 0) for number in range(110_000)})


_ONE = {"a": told([4], 0, 16)}
WEIGHTS = "model.safetensors"
CASES = (
    *met_by(
        NETWORK,
        WEIGHTS,
        (
            "a pickle that is called safetensors",
            network(b"\x80\x02cos\nmkdir\nX\x06\x00\x00\x00canary\x85R."),
            "pickle",
        ),
        ("a zip archive of torch's that is called safetensors", network(archive({"a": Payload()})), "zip archive"),
        ("a 7z archive that is called safetensors", network(b"7z\xbc\xaf\x27\x1c" + bytes(100)), "7z archive"),
        ("gzip that is called safetensors", network(gzip.compress(bytes(10_000_000))), "gzip"),
        ("HDF5 that is called safetensors", network(b"\x89HDF\r\n\x1a\n" + bytes(100)), "HDF5"),
        (
            "a file behind the tensors: safetensors and zip at once",
            lambda scene: scene.weights.write_bytes(scene.weights.read_bytes() + archive({"a": Payload()})),
            "behind the header",
        ),
        (
            "a header of 100 MB",
            sparse("network/model.safetensors", 200 << 20, (100 << 20).to_bytes(8, "little") + b"{"),
            "at most",
        ),
        ("a header of 2^63 bytes", network(tensors(b"{}", length=1 << 63)), "header of"),
        ("a header longer than its file", network(tensors(b"{}", length=1000)), "header of"),
        ("tensors that overlap", network(tensors(_ONE | {"b": told([4], 8, 24)}, bytes(24))), "overlaps"),
        ("a hole between tensors", network(tensors(_ONE | {"b": told([4], 24, 40)}, bytes(40))), "hole"),
        ("bytes behind the last tensor", network(tensors(_ONE, bytes(20))), "behind the header"),
        ("a negative side", network(tensors({"a": told([-4], 0, 16)}, bytes(16))), "shape"),
        ("a range that ends before it begins", network(tensors({"a": told([4], 16, 0)}, bytes(16))), "range"),
        (
            "sides whose product overflows",
            network(tensors({"a": told([1 << 32, 1 << 32], 0, 16)}, bytes(16))),
            "no memory holds",
        ),
        ("an empty tensor of 2^60 columns", network(tensors({"a": told([0, 1 << 60], 0, 0)})), "no memory holds"),
        ("an unknown dtype", network(tensors({"a": told([4], 0, 16, "OBJECT")}, bytes(16))), "dtype"),
        ("110,000 tensors", network(_many()), "at most"),
        (
            "a tensor twice in the header",
            network(tensors(b'{"a":' + json.dumps(_ONE["a"]).encode() + b',"a":{}}', bytes(16))),
            "twice",
        ),
        ("a header of lists in lists", network(tensors(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")), "deep"),
        ("a weight that is NaN", poisoned(float("nan")), "NaN"),
        ("weights that are a link", linked("network/model.safetensors", f"../{SECRET}"), "symbolic link"),
        ("weights that are a pipe", piped("network/model.safetensors"), "a pipe"),
    ),
    *met_by(
        MODULE,
        "delta.safetensors",
        ("an infinite weight in a module", poisoned_delta, "infinite"),
        ("a module's weights that are a pipe", piped("module/delta.safetensors"), "a pipe"),
        ("a module's weights that are a hard link to a file elsewhere", hard_linked, "header"),
        (
            "a module's weights that are a pickle",
            lambda scene: scene.delta(b"\x80\x04cos\nmkdir\n" + bytes(50)),
            "pickle",
        ),
    ),
    *met_by(
        NETWORK,
        "config.json",
        (
            "auto_map with code beside it",
            config(auto_map={"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}),
            "auto_map",
        ),
        ("trust_remote_code", config(**{REMOTE: True}), REMOTE),
        ("custom_pipelines", config(custom_pipelines={"x": {"impl": "evil.Pipe"}}), "custom_pipelines"),
        (
            "_attn_implementation_internal",
            config(_attn_implementation_internal="evil/kernels"),
            "_attn_implementation_internal",
        ),
        ("attention from the hub", config(_attn_implementation="evil/kernels:attention"), "_attn_implementation"),
        ("experts from the hub", config(_experts_implementation="evil/kernels"), "_experts_implementation"),
        ("a quantization_config", config(quantization_config={"quant_method": "evil"}), "quantization_config"),
        ("a dtype that is no dtype", config(torch_dtype="load"), "torch_dtype"),
        ("a width of 10^9", config(hidden_size=10**9), "hidden_size"),
        ("10^7 layers", config(num_hidden_layers=10**7), "layers"),
        (
            "sizes far beyond the weights",
            config(hidden_size=16_000, intermediate_size=64_000, vocab_size=1_000_000),
            "far larger",
        ),
        (
            "config.json of objects in objects",
            lambda scene: scene.write("network/config.json", '{"a":' * 100_000 + "1" + "}" * 100_000),
            "deep",
        ),
        ("config.json of 300 MB", sparse("network/config.json", 300 << 20, b"{"), "too large"),
        (
            "config.json of a million empty lists",
            lambda scene: scene.write("network/config.json", '{"a":[' + "[]," * 1_000_000 + "[]]}"),
            "lists",
        ),
        (
            "config.json with a key twice",
            lambda scene: scene.write("network/config.json", '{"model_type":"bert","model_type":"evil"}'),
            "twice",
        ),
        (
            "config.json with a key of a megabyte",
            lambda scene: scene.write("network/config.json", json.dumps({"a" * (1 << 21): 1})),
            "characters",
        ),
        ("config.json with NaN", config(hidden_dropout_prob=float("nan")), "NaN"),
    ),
    *met_by(
        NETWORK,
        "network",
        ("a model_type that is none", config(model_type="evil"), "model_type"),
        ("config.json that is a device", linked("network/config.json", "/dev/zero"), "config.json"),
    ),
    Case(
        "sizes that are to be drawn",
        config(hidden_size=64_000, intermediate_size=64_000),
        (*TRAIN, "random:hf:network"),
        "config.json",
        "far larger",
    ),
    *met_by(
        NETWORK,
        "tokenizer_config.json",
        (
            "a tokenizer_class of nobody's",
            lambda scene: scene.edit(
                "network/tokenizer_config.json", lambda content: content.update(tokenizer_class="evil.Tokenizer")
            ),
            "tokenizer_class",
        ),
        (
            "a tokenizer with code",
            lambda scene: scene.edit(
                "network/tokenizer_config.json",
                lambda content: content.update(auto_map={"AutoTokenizer": ["evil.T", None]}),
            ),
            "auto_map",
        ),
    ),
    *met_by(
        NETWORK,
        "tokenizer.json",
        ("a tokenizer that makes much of little", tokenizer(doubled), "as long"),
        ("a tokenizer that repeats the text", tokenizer(repeating), "template"),
        ("a tokenizer with a pattern without end", tokenizer(endless), "repeats what repeats"),
        ("a token numbered 2^40", tokenizer(far), "id"),
        ("a tokenizer of 500 MB", sparse("network/tokenizer.json", 500 << 20, b"{"), "too large"),
        ("a tokenizer of lists in lists", lambda scene: scene.write("network/tokenizer.json", "[" * 200_000), "deep"),
    ),
    *met_by(
        NETWORK,
        "index.json",
        ("an index that points outside", index("../outside.safetensors"), "leads out"),
        ("an index that points to the root", index("{}/outside.safetensors"), "leads out"),
        ("an index of pickles", index("a.bin"), "index of weights"),
    ),
    Case(
        "pooling that is stated outside",
        lambda scene: scene.write("network/modules.json", json.dumps([{"type": "x.Pooling", "path": "../../secret"}])),
        NETWORK,
        "modules.json",
        "leads out",
    ),
    *met_by(
        MODULE,
        "module.json",
        ("module.json that is a link", linked("module/module.json", f"../{SECRET}"), "symbolic link"),
        ("module.json of 200 MB", sparse("module/module.json", 200 << 20, b"{"), "too large"),
    ),
    Case(
        "a link that a bank would copy",
        linked("module/README.md", f"../{SECRET}"),
        LOCK_IN,
        "README.md",
        "symbolic link",
    ),
    Case(
        "module.json edited",
        lambda scene: scene.edit("module/module.json", lambda told: told.update(method={"name": "evil", "version": 1})),
        MODULE,
        "",
        "method",
    ),
    Case(
        "module.json whose labels are others",
        lambda scene: scene.edit("module/module.json", lambda told: told["task"].update(labels=["a", "b", "c"])),
        MODULE,
        "module",
        "shape",
    ),
    Case("a rank of 10^8", wide_module, ("predict", "lora", "a good film"), "module.json", "larger method"),
    Case("a module on a network of the hub", fetched, MODULE, "evil/network", "starts no download"),
    Case("a self-test outside of its folder", mistaken, MODULE, "selftest.json", "leads out"),
    *met_by(
        LOCK_IN,
        "ledger.jsonl",
        ("a ledger that was edited", rewritten, "damaged"),
        ("a ledger that is a link", linked("bank/ledger.jsonl", f"../{SECRET}"), "symbolic link"),
    ),
    Case("a bank whose task is a path", elsewhere, BANK, "bank.json", "damaged"),
    Case("a bank whose tasks are elsewhere", linked("bank/tasks", "../module"), BANK, "tasks", "symbolic link"),
    Case(
        "a link in a bank's task",
        linked("bank/tasks/moods/1/README.md", "/etc/passwd"),
        BANK,
        "README.md",
        "symbolic link",
    ),
    *met_by(
        IMPORT,
        "adapter_model.bin",
        ("an archive with a program", adapter(archive({"a": torch.ones(2), "b": Payload()})), "names"),
        ("a bare pickle", adapter(b"\x80\x02cos\nmkdir\nX\x06\x00\x00\x00canary\x85R."), "pickle"),
        ("a zip bomb", lambda scene: adapter(zip_bomb())(scene), "compressed"),
        ("an archive whose records overlap", lambda scene: adapter(overlapping())(scene), "overlap"),
        ("something before an archive", adapter(b"MZ" + bytes(100) + archive({"a": torch.ones(2)})), "program"),
        ("something behind an archive", adapter(archive({"a": torch.ones(2)}) + CODE.encode()), "behind"),
    ),
    Case(
        "a LoRA of rank 10^8 without a number",
        adapter(wide_lora(), "adapter_model.safetensors"),
        IMPORT,
        "adapter_model.safetensors",
        "rank",
    ),
    *met_by(
        ELMO,
        "lm_weights.hdf5",
        ("an array of HDF5 in another file", hdf5(external_link), "link"),
        ("numbers of HDF5 in another file", hdf5(external_storage), "another file"),
        ("an array of HDF5 that unpacks to 4 GB", hdf5(unpacked), "unpacks"),
    ),
    *met_by(
        ("data", "images"),
        "0.png",
        ("an image of 900 million pixels", lambda scene: scene.write("images/red/0.png", huge_png()), "too large"),
        (
            "PostScript that is called PNG",
            lambda scene: scene.write("images/red/0.png", "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
            "not an image",
        ),
    ),
    Case("40 minutes of silence in 8 channels", long_flac, ("data", "sounds"), "0.flac", "too long"),
    Case(
        "a WAV that says it has 4 GB",
        lambda scene: scene.write("sounds/high/0.wav", huge_wav()),
        ("data", "sounds"),
        "0.wav",
        "not a sound",
    ),
    *met_by(
        ("data", "task.toml"),
        "task.toml",
        ("a task file of arrays in arrays", lambda scene: scene.write("task.toml", laughing()), "deep"),
        (
            "a task file with a key of 10,000 parts",
            lambda scene: scene.write("task.toml", ".".join("a" * 10_000) + " = 1\n"),
            "deep",
        ),
        ("a task file of 100 MB", sparse("task.toml", 100 << 20, b"#"), "too large"),
    ),
    Case("word vectors that unpack to 320 MB", long_vectors, ("vectors", "words.bin.gz"), "words.bin.gz", "unpacks"),
    Case(
        "word vectors that are 10^12 words",
        lambda scene: scene.write("words.bin", b"999999999999 99999\n\x00\x01"),
        ("vectors", "words.bin"),
        "words.bin",
        "ends before",
    ),
    Case(
        "Parquet with a group of 60 million rows",
        wide_parquet,
        ("data", "rows.parquet"),
        "rows.parquet",
        "group of rows",
    ),
)
BENIGN: Mapping[str, tuple[str, ...]] = {
    "a network": NETWORK,
    "a module": MODULE,
    "another module": ("predict", "lora", "a good film"),
    "a bank": BANK,
    "adding to a bank": LOCK_IN,
    "images": ("data", "images"),
    "sounds": ("data", "sounds"),
    "data": ("data", "data.csv"),
}  # commands that must succeed on the unaltered scene
