"""Checkpoints: the last and the one before, torn ones passed over, those of other runs and other arithmetic told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graftwork.core.checkpoint import Checkpoint
from graftwork.errors import IncompatibleModule
from graftwork.io.files import read_json, write_json
from graftwork.train import checkpoint_files
from graftwork.train.checkpoint_files import Checkpoints, Interval

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8)
Tear = Callable[[Path], None]


def some(step: int) -> Checkpoint:
    random = torch.Generator().manual_seed(step)
    tensors = {str(dtype): (torch.randn(3, 5, generator=random) * 9).to(dtype) for dtype in DTYPES}
    tensors |= {"bool": torch.tensor([True, False, True]), "none": torch.empty(0, 4), "one": torch.tensor(float(step))}
    tensors |= {"turned": torch.arange(6.0).view(2, 3).T, "nan": torch.tensor([float("nan"), float("inf")])}
    return Checkpoint({"step": step, "deep": {"a": [0.1, [1, 2]]}}, tensors)


def kept(folder: Path) -> Checkpoints:
    return Checkpoints(folder, "run", lambda: {"threads": 1, "variables": {}})


def require_same(found: Checkpoint | None, step: int) -> None:
    expected = some(step)
    assert found is not None and found.numbers == expected.numbers
    assert found.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        there = found.tensors[name]
        assert (there.dtype, there.shape) == (tensor.dtype, tensor.shape), name
        assert torch.equal(
            there.contiguous().view(-1).view(torch.uint8), tensor.contiguous().view(-1).view(torch.uint8)
        )


def test_the_last_one_is_read_and_the_one_before_is_kept(tmp_path: Path) -> None:
    assert kept(tmp_path / "run").read() is None
    for step in (1, 2, 3):
        kept(tmp_path / "run").write(some(step))
        require_same(kept(tmp_path / "run").read(), step)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "2.json", "2.safetensors", "3.json", "3.safetensors"
    }  # fmt: skip
    kept(tmp_path / "run").remove()
    assert not (tmp_path / "run").exists()


def test_each_tensor_is_where_its_numbers_can_be_read(tmp_path: Path) -> None:
    kept(tmp_path).write(some(1))
    from safetensors import safe_open

    with safe_open(tmp_path / "1.safetensors", framework="pt") as file:
        assert set(file.keys()) == set(some(1).tensors)
    assert all(tensor.data_ptr() % tensor.element_size() == 0 for tensor in kept(tmp_path).read().tensors.values())  # type: ignore[union-attr]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))


def change_a_number(path: Path) -> None:
    path.write_text(path.read_text().replace("0.1", "0.2"))


TORN: list[tuple[str, Tear]] = [
    *[(ending, tear) for ending in (".json", ".safetensors") for tear in (cut, empty, flip)],
    (".safetensors", Path.unlink),
    (".json", lambda path: path.write_text("[]") and None),
    (".json", lambda path: path.write_text('{"seal": null}') and None),
    (".json", lambda path: path.write_bytes(b"\xff\xfe") and None),
    (".json", change_a_number),
]


@pytest.mark.parametrize(("ending", "tear"), TORN)
def test_a_torn_one_is_passed_over_for_the_one_before(
    ending: str, tear: Tear, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = kept(tmp_path)
    checkpoints.write(some(1))
    checkpoints.write(some(2))
    tear(tmp_path / f"2{ending}")
    require_same(kept(tmp_path).read(), 1)
    assert [record.getMessage() for record in caplog.records] == [
        f"graft: the checkpoint {tmp_path / '2.json'} is torn, and passed over"
    ]
    kept(tmp_path).write(some(3))  # beside the one that is whole
    tear(tmp_path / f"2{ending}")
    require_same(kept(tmp_path).read(), 1)
    tear(tmp_path / f"1{ending}")
    assert kept(tmp_path).read() is None
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("stopped", ["tensors", "numbers"])
def test_a_write_that_is_cut_off_leaves_the_one_before(
    stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path).write(some(1))
    kept(tmp_path).write(some(2))
    (tmp_path / ".3.safetensors.k1ll3d").write_bytes(b"half")

    def killed(*rest: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_files, "_write_tensors" if stopped == "tensors" else "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path).write(some(3))
    monkeypatch.undo()
    require_same(kept(tmp_path).read(), 2)
    assert not list(tmp_path.glob(".*"))
    kept(tmp_path).write(some(3))
    require_same(kept(tmp_path).read(), 3)


def test_one_of_another_run_is_refused(tmp_path: Path) -> None:
    kept(tmp_path).write(some(1))
    with pytest.raises(IncompatibleModule, match=r"another configuration\n  got: +run run\n  expected: +run other"):
        Checkpoints(tmp_path, "other", dict).read()


@pytest.mark.parametrize(
    ("here", "told"),
    [
        ({"threads": 2, "variables": {}}, "threads 1 then, 2 now"),
        ({"threads": 1}, "variables {} then, unset now"),
        ({"threads": 2, "variables": {"A": "1"}}, "threads 1 then, 2 now; A unset then, 1 now"),
        ({"threads": 1, "variables": {"A": "b" * 64}}, "A unset then, bbbbbbbb… now"),
    ],
)
def test_other_arithmetic_is_told_and_not_gone_on_with(
    here: dict[str, object], told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept(tmp_path).write(some(1))
    other = Checkpoints(tmp_path, "run", lambda: here)
    assert other.read() is None
    assert f"computed otherwise ({told}): beginning anew" in caplog.text
    assert other.read(follows=True) is not None
    other.write(some(2))
    require_same(other.read(), 2)


def test_one_of_another_format_is_not_gone_on_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept(tmp_path).write(some(1))
    content = read_json(tmp_path / "1.json")
    content["computed_in"]["format"] = 0
    del content["seal"]
    write_json(tmp_path / "1.json", content | {"seal": checkpoint_files.digest(content)})
    assert kept(tmp_path).read() is None
    assert "(format 0 then, 1 now)" in caplog.text


def test_one_is_due_after_a_time_and_later_where_writing_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(checkpoint_files.time, "monotonic", lambda: now[0])
    interval = Interval(60.0)
    found = []
    for wait, took in ((59, None), (1, 0.5), (59, None), (1, 2.0), (199, None), (1, 0.0)):
        now[0] += wait
        found.append(interval.is_due())
        if took is not None:
            interval.wrote(took)
    assert found == [False, True, False, True, False, True]
    always = Interval(0)
    always.wrote(5.0)
    assert always.is_due()
