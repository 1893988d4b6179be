"""The public names of `import graftwork as gw`."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import graftwork as gw


def test_names_are_sorted_and_real() -> None:
    assert gw.__all__ == sorted(gw.__all__)
    for name in gw.__all__:
        assert getattr(gw, name) is not None
        assert name in dir(gw)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compair'"):
        gw.compair  # noqa: B018


@pytest.mark.parametrize("name", ["compare", "train"])
def test_functions_win_over_folders_of_the_same_name(name: str) -> None:
    importlib.import_module(f"graftwork.{name}")
    assert inspect.isfunction(getattr(gw, name))
    assert getattr(gw, name).__doc__


def test_folders_can_still_be_imported_from() -> None:
    from graftwork.train import seeds

    assert inspect.ismodule(seeds)


def test_import_is_light() -> None:
    code = "import graftwork, sys; assert not {'torch', 'numpy', 'click'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_holds_only_what_is_public() -> None:
    assert dir(gw) == gw.__all__


def test_modules_inside_folders_that_functions_hide_can_be_named() -> None:
    import graftwork.compare.grid as grid
    import graftwork.train.loop as loop

    assert inspect.ismodule(grid) and inspect.ismodule(loop)
    assert inspect.isfunction(gw.compare) and inspect.isfunction(gw.train)
