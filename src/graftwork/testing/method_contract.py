"""The contract of a method: its configuration, its adapters, its training and its stored module."""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.configured_methods import ConfiguredMethod, configured, method_from_config, parse_method
from graftwork.core.kind import Kind, OwnOutputs
from graftwork.core.media import MEDIA
from graftwork.core.meter import GRADES
from graftwork.core.method import IdentityAtStart, Setting, unfit
from graftwork.core.model import Model, Stacks
from graftwork.core.ragged import Numbers, flat
from graftwork.core.task import Dataset
from graftwork.core.writing import TOKENS, TextWriter
from graftwork.errors import IncompatibleModule
from graftwork.io.files import canonical
from graftwork.module.task_module import TaskModule, save_module, self_test_examples
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing.require import require
from graftwork.testing.tiny_data import pooled, tiny_bench, tiny_dataset
from graftwork.testing.tiny_media import tiny_media
from graftwork.train.loop import Attaches, build_model
from graftwork.train.optimiser import FlatAdamW
from graftwork.train.text_loop import padded_tokens

STEPS = 10  # after which the loss must have fallen
KINDS = ("classification", "tagging", "span", "choice", "generation")


def check_method(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    backbone: str = "tiny_text",
    of_kinds: Sequence[str] = KINDS,
) -> None:
    """Check what every method must do, with the hyper-parameters `settings`, on the toy tasks that it can be used for.

    `of_kinds` are the kinds of text tasks to try. For ("generation",) the backbone is opened as a text generator.
    Raises `AssertionError`.
    """
    made = configured(name, settings or {})
    _check_words(made)
    writes = tuple(of_kinds) == ("generation",)
    opened = open_backbone(backbone, precision="fp32", writes=writes) if made.method.uses_backbone else None
    with tempfile.TemporaryDirectory() as folder:
        tasks = [tiny_dataset(kind) for kind in of_kinds]
        tasks += [tiny_media(Path(folder) / role, role) for role in MEDIA]
        tasks = [data for data in tasks if opened is None or data.task.reads == opened.card.modality]
        reasons = [unfit(made.method, data.task, opened.card if opened else None) for data in tasks]
        if all(reasons):
            tasks = [tiny_dataset("classification", pair=True)]
            reasons = [unfit(made.method, data.task, opened.card if opened else None) for data in tasks]
        if all(reasons) and opened is not None:  # it may need a network that encodes each text of a pair separately
            opened = replace(cast(Any, opened), card=replace(opened.card, towers=2))
            reasons = [unfit(made.method, data.task, opened.card) for data in tasks]
        require(not all(reasons), f"{made.label} does not fit the toy task over {backbone}: {reasons[0]}")
        for data in (data for data, reason in zip(tasks, reasons, strict=True) if not reason):
            if opened is not None and isinstance(made.method, Attaches):
                _check_attached(made.method, opened, data)
            _check_fitted(made, opened, data)


def _check_words(made: ConfiguredMethod) -> None:
    """Check that the method, its label and its configuration convert into one another."""
    config = json.loads(canonical(dict(made.config)))
    require(made.method.VERSION >= 1, "VERSION starts at 1")
    parsed = replace(parse_method(made.label), given=made.given)  # a label may name defaults that were not given
    require(parsed == made, f"{made.label!r} does not parse to the method that it names")
    require(method_from_config(config) == made.method, f"the stored configuration {config} makes another method")
    require(hash(made.method) == hash(copy.copy(made.method)), "the method is not a frozen dataclass")


def _check_attached(method: Attaches, backbone: Backbone, data: Dataset) -> None:
    """Check a model with the method's adapters before, during and after training, and the shared backbone below it."""
    setting = Setting(data.task, kinds.get(data.task.kind), backbone)
    encoded, rows = backbone.encode(data.train.examples), np.arange(len(data.train.examples))
    inputs = backbone.collate(encoded, encoded.sequences(rows))
    names, weights, before = list(backbone.module.state_dict()), digest_of(backbone.module), pooled(backbone, inputs)
    model = _fresh(method, setting, encoded.towers, seed=0)
    delta, shared = model.delta(), {id(parameter) for parameter in backbone.module.parameters()}
    require(bool(delta), "nothing is trained: model.delta() is empty")
    require(all(id(p) not in shared for p in delta.values()), "a weight of the shared backbone is trained")
    require(not any(p.requires_grad for p in backbone.module.parameters()), "the shared backbone requires grad")
    require(torch.equal(pooled(backbone, inputs), before), "a model that lives changes the shared backbone's features")
    if method.IDENTITY_AT_START if isinstance(method, IdentityAtStart) else True:
        require(torch.equal(pooled(model.backbone, inputs), before), "attaching changed the features")
    if isinstance(backbone, TextWriter):
        texts = [references[0] for references in data.train.targets]
        asked = inputs | {TOKENS: padded_tokens(backbone.encode_texts(texts, 32)[0])}
        _check_learning(model, method.learning_rate, lambda: -model(asked).mean())
    else:
        asked, targets = inputs, torch.from_numpy(flat(data.train.targets)[encoded.answered(rows)])
        _check_learning(model, method.learning_rate, lambda: setting.kind.loss(model(inputs), targets))
    _check_copies(model, asked)
    _check_stacks(model, asked)
    _check_stored(model, _fresh(method, setting, encoded.towers, seed=1), asked)
    model.unplug()
    if not any(name.startswith("network.") for name in delta):
        require(torch.equal(pooled(model.backbone, inputs), before), "unplugging left something behind")
    require(list(model.backbone.module.state_dict()) == names, "the names of the backbone's weights changed")
    require(digest_of(backbone.module) == weights, "the shared backbone's weights changed")


def _fresh(method: Attaches, setting: Setting, towers: int, seed: int) -> Model:
    torch.manual_seed(seed)
    return build_model(method, setting, towers)


def _check_learning(model: Model, rate: float, loss: Callable[[], Tensor]) -> None:
    """Check that every trained parameter gets a gradient, and that the loss on the same rows falls."""
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser, losses = FlatAdamW(model.delta(), rate, 0.0, 1.0, model.tables()), []
    for _ in range(STEPS):
        value = loss()
        value.backward()
        idle = [name for name, parameter in model.delta().items() if parameter.grad is None]
        require(not idle, f"these are in the delta and get no gradient: {idle[:3]}")
        optimiser.step(1.0)
        losses.append(float(value.detach()))
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, start[name])}
    require(bool(changed), "training did not change the delta")
    strange = sorted(changed - model.delta().keys())
    require(not strange, f"training changed what is not in the delta: {strange[:3]}")
    require(losses[-1] < losses[0], f"the loss did not fall in {STEPS} steps: {losses[0]:.4f} -> {losses[-1]:.4f}")


def _check_copies(model: Model, inputs: Inputs) -> None:
    """Check that a deep copy gives the same logits and has its own adapters."""
    twin, delta = copy.deepcopy(model), {name: p.detach().clone() for name, p in model.delta().items()}
    with torch.no_grad():
        answers = model(inputs)
        require(_alike(twin(inputs), answers), "a deep copy of the model gives other answers")
        for parameter in model.delta().values():
            parameter.add_(1.0)
        require(not torch.equal(model(inputs), answers), "the answers do not depend on the delta")
        require(_alike(twin(inputs), answers), "a deep copy goes on using the adapters of the original")
    model.load_delta(delta)


def _check_stacks(model: Model, inputs: Inputs) -> None:
    """Check that stacked adapters give for each row the same output as each adapter alone."""
    seen: list[tuple[Stacks, tuple[Tensor, ...], Tensor]] = []
    hooks = [
        adapter.register_forward_hook(lambda one, args, output: seen.append((one, args, output.clone())))
        for adapter in model.adapters.values()
        if isinstance(adapter, Stacks)
    ]
    with torch.no_grad():
        model(inputs)
        for adapter, (x, y), output in seen:
            weights = {name: torch.stack([weight] * len(x)) for name, weight in adapter.weights().items()}
            before, after = (one.reshape(len(one), -1, one.shape[-1]) for one in (x, y))  # OPT's may be (S T, D)
            stacked = adapter.adapt(before, after, weights).view(output.shape)
            require(_alike(stacked, output), f"{type(adapter).__name__}: stacked it gives other answers")
    for hook in hooks:
        hook.remove()


def _check_stored(model: Model, fresh: Model, inputs: Inputs) -> None:
    """Check that loading the delta into a fresh model reproduces the logits."""
    with torch.no_grad():
        answers, others = model(inputs), fresh(inputs)
        require(not torch.equal(others, answers), "an untrained model answers like the trained one")
        fresh.load_delta({name: parameter.detach().clone() for name, parameter in model.delta().items()})
        require(_alike(fresh(inputs), answers), "the delta in a fresh model gives other answers")


def _alike(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal up to the last bits, which may depend on the memory layout of weights."""
    return torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def _check_fitted(made: ConfiguredMethod, backbone: Backbone | None, data: Dataset) -> None:
    """Check that the same seed gives bit-identical deltas, and that a stored module restores the same logits."""
    setting = Setting(data.task, kinds.get(data.task.kind), backbone)
    fitted, again = (made.method.fit(tiny_bench(data, backbone)) for _ in range(2))
    delta, repeated = fitted.delta(), again.delta()
    require(delta.keys() == repeated.keys(), "the same seed trained other parameters")
    differing = [
        name for name, tensor in delta.items() if not torch.equal(*map(torch.as_tensor, (tensor, repeated[name])))
    ]
    require(not differing, f"the same seed gave another delta: {differing[:3]}")
    examples = data.test.examples
    answers = fitted.logits(examples)
    _check_answers(answers, data, setting.kind)
    flops, grade = fitted.flops(examples)
    require(flops >= 0 and grade in GRADES, f"answering takes {flops} FLOP, graded {grade!r}")
    about = {"run": "", "method": made.config, "recipe": {}, "precision": "fp32", "backbone_seed": 0, "scores": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "module"
        kept = self_test_examples(folder, examples)
        save_module(folder, setting, fitted, about | {"trained_parameters": 0}, kept, fitted.logits(kept))
        try:
            restored = TaskModule.load(folder).fitted
        except IncompatibleModule as error:
            raise AssertionError(f"a restored module is refused: {error}") from error
        require(np.array_equal(flat(restored.logits(examples)), flat(answers)), "a restored module gives other answers")
        require(restored.trained_parameters == fitted.trained_parameters, "a restored module counts other parameters")


def _check_answers(answers: Numbers, data: Dataset, kind: Kind) -> None:
    """Check that each example has finite logits, or outputs of the kind itself that survive a round trip to JSON."""
    targets, logits = data.test.targets, flat(answers)
    require(type(answers) is type(targets), f"answers are {type(answers).__name__}")
    if isinstance(kind, OwnOutputs):
        require(len(answers) == len(targets), f"{len(answers)} answers to {len(targets)} examples")
        again = kind.from_lists(json.loads(json.dumps(answers.tolist(), allow_nan=False)))
        require(kind.difference(again, answers) == 0, "stored and read, the answers are others")
        return
    wanted = (len(flat(targets)), kind.outputs(data.task))
    require(logits.shape == wanted, f"logits are {logits.shape}, not {wanted}")
    require(bool(np.isfinite(logits).all()), "logits are not finite")


def digest_of(module: nn.Module) -> str:
    """Return the sha256 of all weights."""
    hashed = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        hashed.update(name.encode() + tensor.float().numpy().tobytes())
    return hashed.hexdigest()
