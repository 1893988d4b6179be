"""Every export that lies is refused, on tiny networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from graftwork.bank.bank import Bank
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.run.execute import execute
from graftwork.run.session import Session


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_every_lie_is_refused(
    open_tiny: Callable[..., Session], imported: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    session = open_tiny("classification", False)
    modules = []
    for method, seed in (("linear_probe", 0), ("lora", 0), ("lora", 1)):
        result, _ = execute(session, parse_method(method), Recipe(epochs=3), seed, lambda done, text: None)
        modules.append(session.store.root / result.id / "module")
    bank = Bank.create(tmp_path / "bank", backbone="tiny_text")
    for name, module in zip("ab", modules[1:], strict=True):
        bank.add(module, name)
    found = imported("ship/lies").caught(modules[0], bank.path, tmp_path / "places")
    assert len(found) == 12 and [lie for lie, message in found.items() if not message] == []
