"""The self-test that an exported folder carries: texts, and the logits that its README's code gives for them."""

from __future__ import annotations

from pathlib import Path

from graftwork.io.files import write_json
from graftwork.module.module_files import SELF_TEST
from graftwork.module.task_module import TaskModule, stored_inputs


def write_self_test(module: TaskModule, folder: Path) -> None:
    """Write the inputs of the module's self-test and its logits in fp32. Raises `StorageError`."""
    examples = module.self_test_examples()
    logits = module.fitted.logits(examples)
    write_json(
        folder / SELF_TEST, {"inputs": [stored_inputs(example) for example in examples], "logits": logits.tolist()}
    )
