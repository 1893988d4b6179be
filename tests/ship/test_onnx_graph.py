"""The graph of every architecture that a text can be read by gives its network's logits, for any rows and lengths."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.hidden_states import BatchStates
from graftwork.errors import ConfigError
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.ship.onnx_graph import TracedTask, write_graph
from graftwork.ship.onnx_runtime import open_session
from graftwork.train.probe import Probe

sys.path.insert(0, str(Path(__file__).parents[1] / "backbones"))
from test_hf import CONFIGS, EXAMPLES, save_folder


class Squares(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.gammaln(x) ** 2


def test_what_onnx_has_no_operator_for_is_told_in_one_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="can't be written as an ONNX graph"):
        write_graph(Squares(), {"x": torch.ones(2, 3)}, {"y": ["rows"]}, tmp_path / "model.onnx")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", CONFIGS)
def test_every_architecture_gives_its_logits(architecture: str, tmp_path: Path) -> None:
    backbone = open_backbone(f"hf:{save_folder(tmp_path / architecture, architecture)}", precision="fp32")
    shares = torch.zeros(backbone.card.blocks + 1)
    shares[-1] = 1.0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        probe = Probe(backbone, shares, torch.randn(3, backbone.card.width), torch.zeros(3), {})
    encoded = backbone.encode(EXAMPLES)
    inputs = backbone.collate(encoded, [0, 1])
    write_graph(TracedTask(probe, backbone, 1, list(inputs)), inputs, {"logits": ["answers"]}, tmp_path / "model.onnx")
    session = open_session(tmp_path / "model.onnx")
    for rows in ([0, 1, 2], [2], [1], [2, 2, 2, 0, 1]):
        batch = backbone.collate(encoded, rows)
        found = session.run(None, {one.name: batch[one.name].numpy() for one in session.get_inputs()})[0]
        with torch.no_grad():
            expected = probe.read(BatchStates(backbone, batch, backbone.states(batch), 1)).numpy()
        assert np.abs(found - expected).max() < 1e-5
