"""A worker: `python worker.py JSON` makes one contender and serves it on standard input and output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pieces import Piece
from protocol import Contender, own_output, serve


def make(kind: str, settings: dict[str, Any]) -> Contender:
    """Return the contender described by a JSON object."""
    if kind == "machine":
        from machine import Machine

        return Machine(**settings)
    piece, data = Piece(**settings["piece"]), Path(settings["data"])
    if kind == "ours":
        from ours import Graftwork

        kept = {key: settings[key] for key in ("method", "backbone", "off", "by_epoch")}
        return Graftwork(piece, data, **kept)
    if kind == "board":
        from board import Board

        return Board(piece, data, **{key: settings[key] for key in ("methods", "seeds", "backbone", "exhaustive")})
    if kind == "peer":
        from peer import Peer, PeerSettings

        return Peer(piece, data, PeerSettings(**settings["peer"]), settings["portion"], settings["by_epoch"])
    raise ValueError(f"no contender {kind!r}")


if __name__ == "__main__":
    answers = own_output()
    described = json.loads(sys.argv[1])
    serve(make(described["kind"], described["settings"]), sys.stdin, answers)
