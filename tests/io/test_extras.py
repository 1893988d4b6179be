"""A library of an extra that is missing is an error that says what to install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from graftwork.errors import ConfigError
from graftwork.io.extras import extra
from graftwork.pretrained.media_files import decoders, identify


def test_what_is_missing_and_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with (
        pytest.raises(ConfigError) as caught,
        extra("parquet", "reading Parquet", where="a.parquet", instead="write CSV"),
    ):
        import pyarrow.parquet  # noqa: F401
    assert (caught.value.what, caught.value.where) == ("reading Parquet needs pyarrow", "a.parquet")
    assert caught.value.do == 'install it: pip install "graftwork[parquet]", or write CSV'


def test_what_is_there_is_imported() -> None:
    with extra("serve", "a page"):
        import json
    assert json.dumps([]) == "[]"


@pytest.mark.parametrize(("role", "library", "name"), [("image", "PIL", "images"), ("sound", "soundfile", "sound")])
def test_a_file_that_needs_an_extra_is_named(
    role: Any, library: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf'needs {library}[\s\S]*pip install "graftwork\[{name}\]"') as caught:
        identify(tmp_path / "given", role)
    assert caught.value.where == str(tmp_path / "given")


def test_decoders_that_are_missing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftwork.pretrained.media_files.version", lambda name: None if name == "soundfile" else "1.0")
    assert decoders().keys() - {"torchaudio"} == {"pillow", "scipy"}
