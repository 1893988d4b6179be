"""Helpers for a method that wraps another one, named by its field `by`: parsing, identity and the fitted result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from graftwork.core.configured_methods import ConfiguredMethod, RestoresEarlier
from graftwork.core.example import Example
from graftwork.core.method import (
    Draws,
    Fitted,
    FreshWeights,
    HasRate,
    HeadStart,
    KnownBy,
    Logits,
    Method,
    Once,
    Over,
    SameStart,
    Workbench,
)
from graftwork.core.part_settings import BY, chosen_settings
from graftwork.pretrained.open_backbone import FRESH
from graftwork.registry import methods

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from graftwork.core.backbone import Backbone, BackboneCard

OWN_VERSION = 1000  # added for the wrapping method, whose own version is 1


@runtime_checkable
class Control(Protocol):
    """A control for comparison, such as one text of a pair alone or random weights; such a method is never chosen."""

    CONTROL: ClassVar[bool]


@runtime_checkable
class OtherReading(Protocol):
    """A method that fits the wrapped one on a backbone that reads the same examples in another way."""

    def reading(self, backbone: Backbone) -> Backbone:
        """Return that backbone."""


def is_control(method: Method) -> bool:
    """Return whether the method is on boards for comparison only."""
    return isinstance(method, Control) and method.CONTROL


def method_by(words: str) -> Method:
    """Build the method that `by` names. Raises `UnknownName` or `ConfigError`."""
    name, settings = chosen_settings(words, methods)
    return cast(Method, cast(Any, methods.get(name))(**settings))


def innermost(method: Method) -> Method:
    """Return the method below all wrapping ones, or the method itself if it wraps none."""
    while isinstance(method, Over):
        method = method_by(method.by)
    return method


def innermost_settings(item: ConfiguredMethod) -> tuple[str, frozenset[str]]:
    """Return the name of the innermost method, and its hyper-parameters that are given explicitly."""
    method, name, given = item.method, item.config["name"], item.given
    while isinstance(method, Over):
        name, settings = chosen_settings(method.by, methods)
        method, given = method_by(method.by), frozenset(settings)
    return name, given


def takes_a_recipe(method: Method) -> bool:
    """Return whether the innermost method is trained at a learning rate for as long as a recipe says; all others take
    no steps, or have a plan of their own."""
    return method.uses_backbone and isinstance(innermost(method), HasRate)


def trainings(method: Method) -> int:
    """Return how often the wrapped method is trained in one run: `runs` of a method over another, else 1."""
    return int(getattr(method, "runs", 1)) if isinstance(method, Over) else 1


def drawn_by(method: Method) -> tuple[str, ...]:
    """Return the sources of variation that the innermost method draws besides those of every run."""
    below = innermost(method)
    return below.DRAWS if isinstance(below, Draws) else ()


def beginning(method: Method, card: BackboneCard | None) -> dict[str, bool]:
    """Return the facts about the start of training that a recipe depends on.

    "head_start": the head is fitted on frozen features first; "pretrained": the weights are learnt ones, those of
    `card`, and the method does not draw its own.
    """
    below, random = innermost(method), card is not None and card.id.startswith(FRESH)
    fresh = random or (isinstance(method, FreshWeights) and method.FRESH_WEIGHTS)
    return {"head_start": not isinstance(below, HeadStart) or below.HEAD_START, "pretrained": not fresh}


def starts_alike(method: Method, card: BackboneCard | None) -> bool:
    """Return whether all seeds start from the same weights, those of the backbone and of a head fitted on it."""
    return isinstance(method, SameStart) and method.SAME_START and all(beginning(method, card).values())


def known_by(by: str) -> dict[str, Any]:
    """Return `by` with every hyper-parameter, for a run's identity. Raises `StorageError` for a missing file."""
    method = method_by(by)
    named = ((item, getattr(method, item.name)) for item in fields(cast(Any, method)))
    settings = {item.name: value for item, value in named if "later" not in item.metadata or value != item.default}
    settings |= method.identity() if isinstance(method, KnownBy) else {}
    name = by.strip().partition(":")[0]
    return {BY: ":".join([name, *(f"{key}={value}" for key, value in settings.items())])}


class WrapperMethod:
    """A base for methods over another one, `by`, a field of the subclass."""

    by: str

    @property
    def VERSION(self) -> int:
        """A version that changes with that of `by`."""
        return OWN_VERSION + method_by(self.by).VERSION

    @property
    def RESTORES(self) -> tuple[int, ...]:
        """The versions with the earlier ones of `by` whose modules it restores."""
        below = method_by(self.by)
        earlier = below.RESTORES if isinstance(below, RestoresEarlier) else ()
        return tuple(self.VERSION - below.VERSION + version for version in earlier)

    def identity(self) -> dict[str, Any]:
        """Return `by` with all its hyper-parameters."""
        return known_by(self.by)


def unfit_over(by: str) -> str:
    """Return why `by` cannot be wrapped, or an empty string."""
    return f"{by!r} is itself over another method" if isinstance(method_by(by), Over) else ""


def sharing_under(bench: Workbench, name: str) -> Workbench:
    """Return a bench for the wrapped method whose shared results are prefixed with `name`."""
    return replace(bench, shared=None if bench.shared is None else _SharedUnder(bench.shared, name))


@dataclass(frozen=True)
class _SharedUnder:
    """Shared work under names that begin with `name`."""

    shared: Once
    name: str

    def get(self, bench: Workbench, name: str, work: Callable[..., Any]) -> Any:
        """Return the result of `work`, as `Once`."""
        return self.shared.get(bench, f"{self.name}: {name}", work)


@dataclass
class FittedOver:
    """The fitted result of a wrapped method; it shares no backbone pass with others."""

    fitted: Fitted
    facts: Mapping[str, Any]
    backbone: Backbone | None = None  # on which `fitted` alone makes the same predictions, if `shown` changes nothing
    shown: Callable[[Example], Example] = lambda example: example  # transforms each example before it is passed on

    @property
    def trained_parameters(self) -> int:
        """Trained parameters of the wrapped method."""
        return self.fitted.trained_parameters

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C), or (W, C)."""
        return self.fitted.logits([self.shown(example) for example in examples])

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the delta of the wrapped method."""
        return self.fitted.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Return the FLOPs of the wrapped method."""
        return self.fitted.flops([self.shown(example) for example in examples])
