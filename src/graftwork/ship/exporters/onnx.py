"""ONNX: one graph from tokens to logits, and the tokenizer, for onnxruntime in any language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.kind import OwnOutputs
from graftwork.core.method import Logits, ReadsStates
from graftwork.io.extras import extra
from graftwork.io.files import read_json, write_bytes, write_json, write_text
from graftwork.module.exported_folder import EXPORTED, EXPORTED_BANK
from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters, kinds
from graftwork.ship.onnx_parts import changed_part, graph_parts, parts_of, parts_of_task
from graftwork.ship.onnx_readme import DOCKERFILE, example_of, readme_of
from graftwork.ship.onnx_runtime import GRAPH, TOKENIZER, open_network, reader_told
from graftwork.ship.onnx_tasks import TASKS, open_tasks

EXAMPLE = "example.py"
VNNI = ("avx512_vnni", "avx_vnni")  # without them, sums of 8-bit products may overflow in 16 bits


class Onnx:
    """Implements `Exporter`, `Opens`, `ExportsBanks` and `Quantizes`."""

    open = staticmethod(open_network)
    parts = staticmethod(parts_of)
    changed_part = staticmethod(changed_part)

    def unfit(self, module: TaskModule) -> str:
        """Return a reason unless the module is a transformer encoder of texts with a head that gives logits."""
        backbone, fitted = module.backbone, module.fitted
        if isinstance(kinds.get(module.task.kind), OwnOutputs):
            return f"tasks of kind {module.task.kind} write texts token by token, which one graph can't do"
        if backbone is None:
            return f"{module.description['method']['name']} has no network: it counts words, or looks answers up"
        if backbone.card.modality != "text":
            return f"it reads {backbone.card.modality}s, whose preparation is outside of a graph"
        from graftwork.nn.int8_linear import Int8Map
        from graftwork.pretrained.transformer import TransformerBackbone
        from graftwork.ship.onnx_graph import MOST_BYTES, numbers_of

        if not isinstance(backbone, TransformerBackbone):
            return "its backbone is no transformer: the layers depend on each text's length"
        if not isinstance(fitted, ReadsStates):
            return f"{module.description['method']['name']} doesn't answer from the states of one network"
        if any(isinstance(layer, Int8Map) for layer in backbone.module.modules()):
            return (
                "its matrices are 8-bit integers for torch; the module that it was made of can be exported with --int8"
            )
        if 4 * numbers_of(backbone.module) > MOST_BYTES:
            return "its weights are larger than the 2 GB that a graph in one file may have"
        return ""

    def write(self, module: TaskModule, folder: Path) -> None:
        """Write model.onnx, tokenizer.json, graftwork.json, example.py, Dockerfile and README.md."""
        with extra("onnx", "the export to ONNX"):
            import onnx  # noqa: F401
        from graftwork.pretrained.transformer import TransformerBackbone
        from graftwork.ship.onnx_graph import ANSWERS, TracedTask, write_graph

        backbone, fitted = module.backbone, module.fitted
        assert isinstance(backbone, TransformerBackbone) and isinstance(fitted, ReadsStates)
        encoded = backbone.encode(module.self_test_examples()[:4])
        inputs = backbone.collate(encoded, range(len(encoded.ids)))
        network = TracedTask(fitted, backbone, encoded.towers, list(inputs))
        write_graph(network, inputs, {"logits": [ANSWERS]}, folder / GRAPH)
        write_bytes(folder / TOKENIZER, backbone.tokenizer.to_str().encode())
        told = {"to": "onnx", "reader": reader_told(backbone.reader)}
        write_json(folder / EXPORTED, dict(module.description) | {"precision": "fp32", "export": told})
        write_text(folder / EXAMPLE, example_of(module))
        write_text(folder / "Dockerfile", DOCKERFILE)
        write_text(folder / "README.md", readme_of(module))

    def quantize(self, folder: Path) -> None:
        """Convert the graph's matrices to 8-bit integers, one scale per column, activations at run time."""
        from graftwork.ship.onnx_graph import quantized

        reduce_range = not has_vnni()
        quantized(folder / GRAPH, folder / f"{GRAPH}.int8", reduce_range)
        (folder / f"{GRAPH}.int8").replace(folder / GRAPH)
        told_in = [folder / EXPORTED] if (folder / EXPORTED).is_file() else [folder / EXPORTED_BANK]
        told = read_json(told_in[0])
        write_json(told_in[0], told | {"export": told["export"] | {"reduce_range": reduce_range}})
        for path in [*told_in, *(folder / TASKS).glob("*.json")]:
            write_json(path, read_json(path) | {"precision": "int8", "scores": {}})  # those were in fp32

    def logits(self, folder: Path, module: TaskModule, examples: Sequence[Example]) -> Logits:
        """Return the logits that onnxruntime computes."""
        return open_network(folder, read_json(folder / EXPORTED)).logits(examples)

    def unfit_in_bank(self, module: TaskModule) -> str:
        """Return a reason unless the module is a probe, or adapters with a linear head, on a transformer of texts."""
        from graftwork.ship.onnx_bank import unfit_in_bank

        return self.unfit(module) or unfit_in_bank(module)

    def write_bank(self, modules: Mapping[str, TaskModule], folder: Path, stored_as: Mapping[str, str]) -> None:
        """Write model.onnx, tokenizer.json, graftwork_bank.json, README.md, and two files of each task in tasks/."""
        with extra("onnx", "the export to ONNX"):
            import onnx  # noqa: F401
        from graftwork.ship.onnx_bank import write_bank

        write_bank(modules, folder, stored_as)

    def bank_logits(
        self, folder: Path, wanted: Mapping[str, Sequence[Example]], apart: bool = False
    ) -> Mapping[str, Logits]:
        """Return the logits that onnxruntime computes, in joint batches, or separately for each task if `apart`."""
        opened = open_tasks(folder, read_json(folder / EXPORTED_BANK))
        if not apart:
            return opened.logits(wanted)
        return {name: opened.logits({name: own})[name] for name, own in wanted.items()}

    def bank_parts(self, folder: Path, tests: Mapping[str, Sequence[Example]]) -> tuple[Any, Mapping[str, Any]]:
        """Return the parts of the graph, and each task's: digests of tokens, thresholds, head and adapters."""
        reader = read_json(folder / EXPORTED_BANK)["export"]["reader"]
        return graph_parts(folder), {name: parts_of_task(folder, reader, name, own) for name, own in tests.items()}


def has_vnni() -> bool:
    """Return whether this processor adds 8-bit products in 32 bits; True if that is unknown."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return True
    return "flags" not in told or any(flag in told for flag in VNNI)


exporters.register("onnx")(Onnx())
