"""A reader who carries out a page: saves its files, types its commands, runs its Python, and replaces the IDs."""

from __future__ import annotations

import io
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from glob import glob
from pathlib import Path

import graftwork as gw
from docs.blocks import Block, blocks
from graftwork.cli.main import main

TOLD_BY = {
    "pretrain": r"Backbone: runs/(\w{12})",
    "compare": r"graft predict runs/(\w{12})",
    "train": r"graft predict runs/(\w{12})",
}
FEW = "majority,tfidf_svm,linear_probe,adapter"  # `graft compare tickets.csv`, alone on its line, compares them all
LESS = (  # what a test changes, so that a page takes seconds
    (r"--(epochs|seeds|draws|head-steps) \d+", r"--\1 1"),
    (r"--sizes \S+", "--sizes 8/class,16/class"),
    (r"--reference-sizes \S+", "--reference-sizes 10%"),
    (r"^graft curve (?!.*--methods)", "graft curve --methods tfidf_svm,linear_probe "),
    (r"^graft compare (?!.*--methods|tickets\.csv$|.*word_vectors:)", f"graft compare --methods {FEW} "),
    (r"^graft compare (?!.*--backbone)(.*(?:tasks/|sms\.csv|reviews\.csv))", r"graft compare --backbone tiny_text \1"),
    (r"--(budget \w+|steps \d+|tokens \d+|batch \d+|length \d+|short-length \d+|vocabulary \d+|no-transfer)", ""),
)
FEW_STEPS = ("--steps", "3", "--batch", "8", "--length", "32")


class Reader:
    """Carries out pages in the folder that it is in; `said` is what the last command printed.

    `runs` are the names that the page gives to runs (ID, LM, …): each is the next run that the command `told_by` names.
    Commands in which `without` is found are left out: what they need is published elsewhere.
    """

    def __init__(self, *runs: str, told_by: str = "pretrain", without: str = "") -> None:
        self.waiting = list(runs)
        self.told_by = told_by
        self.without = re.compile(without or "$^")
        self.known: dict[str, str] = {}
        self.names: dict[str, object] = {"gw": gw}  # of the Python of a page, which goes on from block to block
        self.said = ""
        self.server: subprocess.Popen[str] | None = None

    def carry_out(self, page: Path) -> None:
        """Do everything that the page shows, from above."""
        for block in blocks(page):
            if block.saved_as:
                text = cheaper_python(block.text) if block.saved_as.endswith(".py") else block.text
                Path(block.saved_as).write_text(text, encoding="utf-8")
            elif block.language == "python":
                exec(compile(cheaper_python(self.with_ids(block.text)), str(page), "exec"), self.names)
            elif block.language == "sh" and not self.without.search(block.text):
                self.type(block)

    def with_ids(self, text: str) -> str:
        """The text with the IDs of runs in place of their names."""
        return re.sub(r"\b(" + "|".join([*self.known, "no name"]) + r")\b", lambda found: self.known[found[1]], text)

    def type(self, block: Block) -> None:
        """Type a command."""
        line = self.with_ids(block.text)
        if line.startswith("graft serve "):
            self.serve(line)
        elif line.startswith("graft "):
            self.graft(cheaper(line))
        else:
            if self.server is not None:
                line = line.replace(":8080/", f":{self.port}/")
            tools = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, timeout=120, env=os.environ | tools
            )
            self.said = done.stdout
            assert done.returncode == 0, (line, done.stderr)

    def graft(self, words: list[str]) -> None:
        """Run `graft` in this process; a run that it tells gets the next name that waits for one."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(words)
        self.said = out.getvalue()
        assert code == 0, (words, err.getvalue())
        if self.waiting and words[0] == self.told_by and "--bank" not in words:
            self.known[self.waiting.pop(0)] = re.findall(TOLD_BY[self.told_by], self.said)[-1]

    def serve(self, line: str) -> None:
        """Start the server of the page on a free port, and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = shlex.split(line.replace("8080", str(self.port)), comments=True)
        port = [] if str(self.port) in words else ["--port", str(self.port)]
        command = [sys.executable, "-m", "graftwork", *words[1:], *port]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.server.stdout is not None and self.server.stdout.readline().startswith("http")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)

    def end(self) -> int:
        """End the server, if one was started; its exit code."""
        if self.server is None:
            return -1
        self.server.terminate()
        code = self.server.wait(60)
        if self.server.stdout is not None:
            self.server.stdout.close()
        return code


def cheaper(line: str) -> list[str]:
    """The words of a command; one that trains gets fewer epochs, seeds and steps."""
    for old, new in LESS:
        line = re.sub(old, new, line)
    words = [word for typed in shlex.split(line, comments=True)[1:] for word in sorted(glob(typed)) or [typed]]
    if words[0] in ("compare", "benchmark") and "--seeds" not in words:
        words += ["--seeds", "1"]
    if words[0] in ("train", "compare", "curve", "benchmark", "stream") and "--epochs" not in words:
        words += ["--epochs", "1"]
    if words[0] == "curve":
        words += ["--draws", "1"] if "--draws" not in words else []
        words += ["--sizes", "8/class,16/class"] if "--sizes" not in words else []
        words += ["--backbone", "tiny_text"] if "--backbone" not in words else []
    few = ("--tokens", "2000") if "word_vectors" in line else FEW_STEPS
    if "--from minilm" in line and "--head-steps" not in line:
        few += ("--head-steps", "1")
    return [*words, *few] if words[0] == "pretrain" else words


def cheaper_python(text: str) -> str:
    """Python of a page, with fewer seeds, draws, epochs and steps."""
    text = re.sub(r"(seeds|draws|epochs)=\d+", r"\1=1", text)
    text = re.sub(r'sizes="[^"]*"', 'sizes="8/class,16/class", backbone="tiny_text"', text)
    text = re.sub(r"(steps, epochs = .*), \d+$", r"\1, 1", text, flags=re.MULTILINE)
    text = re.sub(r"(gw\.Classifier\(epochs=1)\)", r'\1, backbone="tiny_text")', text)
    text = re.sub(r"(gw\.compare_tasks\(.*)\)$", r'\1, epochs=1, backbone="tiny_text")', text, flags=re.MULTILINE)
    few = "tokens=2000" if "word_vectors" in text else 'steps=3, recipe={"batch": 8, "length": 32}'
    text = re.sub(r'budget="\w+"(, recipe=\{.*?\})?', few, text)
    text = re.sub(r"(gw\.(?:train|compare|stream)\(.*)\)$", r"\1, epochs=1)", text, flags=re.MULTILINE)
    return re.sub(r"(gw\.compare\(.*)\)$", r"\1, seeds=1)", text, flags=re.MULTILINE)
