"""The files of deploy/ name what the server has, and the steps of the Dockerfile make a server, without docker."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank.bank import Bank
from graftwork.cli.serve import command
from graftwork.serve.auth_token import read_token
from graftwork.serve.openapi import openapi
from graftwork.serve.server import END_SECONDS, NOTICE_SECONDS
from graftwork.serve.server_limits import ServerLimits

CHECKOUT = Path(__file__).resolve().parents[2]
DEPLOY = CHECKOUT / "deploy"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments."""
    lines = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8")).splitlines()
    found = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in found]


def started() -> list[str]:
    """What a container runs."""
    told = dict(instructions())
    return json.loads(told["ENTRYPOINT"]) + json.loads(told["CMD"])


def manifest() -> tuple[Any, Any]:
    """The deployment and the service."""
    yaml = pytest.importorskip("yaml", reason="the manifest is read by PyYAML, which is missing")
    deployment, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    return deployment, service


def test_the_dockerfile_names_files_and_options_that_exist() -> None:
    graft, serve, *arguments = started()
    assert (graft, serve) == ("graft", "serve") and command.make_context("serve", arguments).params["token_file"]
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            assert all((CHECKOUT / source).exists() for source in rest.split()[:-1])


def test_the_manifest_names_options_paths_and_ports_that_exist(tmp_path: Path) -> None:
    deployment, service = manifest()
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    asked = command.make_context("serve", container["args"]).params
    assert asked["port"] == container["ports"][0]["containerPort"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in openapi()["paths"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert asked["bank"].startswith(f"{mounts['bank']}/") and asked["token_file"].startswith(f"{mounts['token']}/")
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > before + NOTICE_SECONDS + asked["grace_seconds"] + END_SECONDS
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(volumes["token"]["secret"]["defaultMode"])
    assert read_token(tmp_path / "token") == "0123456789abcdef"


def test_nginx_waits_longer_than_the_server_and_closes_first() -> None:
    told = dict(re.findall(r"^\s*(\w+) +([^;{]+);", (DEPLOY / "nginx.conf").read_text(encoding="utf-8"), re.MULTILINE))
    limits = ServerLimits()
    assert int(told["proxy_read_timeout"].rstrip("s")) > limits.seconds
    assert int(told["keepalive_timeout"].rstrip("s")) < limits.keep_alive_seconds
    assert int(told["client_max_body_size"].rstrip("m")) * 2**20 >= limits.body_bytes
    assert told["server"] == f"127.0.0.1:{command.make_context('serve', ['bank']).params['port']}"


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    if not (shutil.which("nginx") and shutil.which("openssl")):
        pytest.skip("nginx or openssl is missing")
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    files = re.findall(r"ssl_certificate\w* +([^;]+);", text)
    (tmp_path / "site").write_text(text.replace(files[0], f"{tmp_path}/pem").replace(files[1], f"{tmp_path}/key"))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ include {tmp_path}/site; access_log off; }}"
    )
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=graftwork.example.org -keyout key -out pem"
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["nginx", "-t", "-c", f"{tmp_path}/nginx.conf"], capture_output=True, text=True)
    assert "syntax is ok" in done.stderr, done.stderr


@pytest.mark.slow
def test_the_steps_of_the_dockerfile_make_a_server(tmp_path: Path) -> None:
    """Run in a folder in place of `/`. Libraries are those of this Python; pip fetches only what builds the package."""
    if not sysconfig.get_path("purelib").startswith(sys.prefix):
        pytest.skip("the tests run outside an environment")
    here = {"PYTHONPATH": sysconfig.get_path("purelib"), "PIP_RETRIES": "0", "PIP_TIMEOUT": "20"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def moved(text: str) -> str:
        return re.sub(r"(?<![\w/:.])/(?=src\b|opt/graftwork\b)", f"{tmp_path}/", text)

    environment = os.environ | here | {"PATH": path}
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            for source in sources:
                copy = shutil.copytree if (CHECKOUT / source).is_dir() else shutil.copy
                into = Path(moved(target)) / ("" if copy is shutil.copytree else source)
                into.parent.mkdir(parents=True, exist_ok=True)
                copy(CHECKOUT / source, into)
        elif name == "RUN":
            done = subprocess.run(moved(rest), shell=True, env=environment, capture_output=True, text=True)
            if done.returncode and "hatchling" in done.stderr:
                pytest.skip("pip finds no package index")
            assert done.returncode == 0, done.stderr
        elif name == "ENV":
            environment |= dict(pair.split("=", 1) for pair in shlex.split(moved(rest)))
    where = [f"{tmp_path}/opt/graftwork/bin/python", "-c", "import graftwork; print(graftwork.__file__)"]
    assert subprocess.check_output(where, env=environment, text=True).startswith(f"{tmp_path}/opt/graftwork/")

    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(0o440)
    places = {"/srv/bank": str(Bank.create(tmp_path / "bank").path), "/run/secrets/token": str(tmp_path / "token")}
    words = [places.get(word, word) for word in started()]
    program = shutil.which(words[0], path=environment["PATH"])
    assert program == f"{tmp_path}/opt/graftwork/bin/graft"
    with subprocess.Popen(
        [program, *words[1:], "--port", "0"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as serving:  # fmt: skip
        assert serving.stdout is not None
        port = re.search(r"^http://0\.0\.0\.0:(\d+)/$", serving.stdout.readline().strip())
        assert port, serving.communicate()
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/readyz") as response:
            assert json.load(response)["ready"] is True
        serving.send_signal(getattr(signal, dict(instructions())["STOPSIGNAL"]))
        assert serving.wait(15) == 0
