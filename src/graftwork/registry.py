"""Registries of parts: a name maps to one part, and is the name of the file that defines it."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graftwork.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    from graftwork.core.backbone import BackboneFamily
    from graftwork.core.kind import Kind
    from graftwork.core.meter import Meter
    from graftwork.core.method import Method
    from graftwork.core.metric import Metric
    from graftwork.core.suite import Suite
    from graftwork.doctor.check import Check
    from graftwork.pretrain.objective import Objective
    from graftwork.pretrain.vocabulary import TokenizerKind
    from graftwork.ship.compression import Compression
    from graftwork.ship.exporter import Exporter

T = TypeVar("T")


class Registry(Generic[T]):
    """A lazy registry: `methods.get("lora")` imports `graftwork/methods/lora.py` and returns the part it registered.

    Other packages add parts through an entry-point group named like `package`, such as `graftwork.methods`; notebooks
    and scripts use `register`.
    """

    def __init__(self, noun: str, package: str):
        self.noun, self.package = noun, package
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Any], Any]:
        """Return a decorator that registers its object under `name`. It raises `ValueError` if the name is in use."""

        def keep(part: Any) -> Any:
            if _of_a_notebook(part) and _of_a_notebook(self._parts.get(name)):
                self._parts[name] = part  # its notebook cell was run again
            if self._parts.setdefault(name, part) is not part:
                raise ValueError(f"{self.noun} {name!r} is registered twice: {self._parts[name]} and {part}")
            return part

        return keep

    def register_own(self, name: str, part: T) -> None:
        """Register a part for this process only; it replaces an earlier one of the same name.

        Raises `ConfigError` if a part of this package or of a plug-in has the name.
        """
        if name in self._files | self._plugins.keys():
            raise ConfigError(f"{self.noun} {name!r} exists already", do="give yours another name")
        self._parts[name] = part

    def names(self) -> list[str]:
        """Return all names, sorted, without importing any part."""
        return sorted(self._files | self._plugins.keys() | self._parts.keys())

    def summary(self, name: str) -> str:
        """Return the first sentence of the docstring of the file `name`.py, without import; "" without such a file."""
        file = Path(importlib.import_module(self.package).__path__[0]) / f"{name}.py"
        told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else None
        return re.split(r"(?<=[^.][.])\s+(?=[A-Z`])|\n\n", told)[0].replace("\n", " ") if told else ""

    def here_only(self) -> set[str]:
        """Return the names of parts that only this process has: a notebook or a script registered them."""
        return self._parts.keys() - self._files - self._plugins.keys()

    def get(self, name: str) -> T:
        """Return the part registered as `name`. Raises `UnknownName` with the nearest name."""
        name = str(name)  # so that a number, for example, gives `UnknownName` too
        if name not in self._parts:
            plugins = self._plugins
            if name in plugins:
                plugins[name].load()
            elif name in self.names():
                importlib.import_module(f"{self.package}.{name}")
        try:
            return self._parts[name]
        except KeyError:
            raise UnknownName(self.noun, name, self.names()) from None

    @property
    def _files(self) -> set[str]:
        return {module.name for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__)}

    @functools.cached_property
    def _plugins(self) -> dict[str, importlib.metadata.EntryPoint]:
        return {entry.name: entry for entry in importlib.metadata.entry_points(group=self.package)}


def _of_a_notebook(part: Any) -> bool:
    """Return whether the part, or its class, was defined in a notebook or in a script that is run."""
    return (part if isinstance(part, type) else type(part)).__module__ == "__main__"


backbones: Registry[BackboneFamily] = Registry("backbone", "graftwork.backbones")
kinds: Registry[Kind] = Registry("kind", "graftwork.kinds")
methods: Registry[type[Method]] = Registry("method", "graftwork.methods")
metrics: Registry[Metric] = Registry("metric", "graftwork.metrics")
meters: Registry[Callable[[], Meter]] = Registry("meter", "graftwork.meters")
suites: Registry[Suite] = Registry("suite", "graftwork.suites")
objectives: Registry[type[Objective]] = Registry("objective", "graftwork.pretrain.objectives")
tokenizers: Registry[TokenizerKind] = Registry("tokenizer", "graftwork.pretrain.tokenizers")
compressions: Registry[type[Compression]] = Registry("compression", "graftwork.ship.compressions")
exporters: Registry[Exporter] = Registry("exporter", "graftwork.ship.exporters")
checks: Registry[Check] = Registry("check", "graftwork.doctor.checks")
registries: tuple[Registry[Any], ...] = (backbones, kinds, methods, metrics, meters)  # the parts of a run
