"""Serve the tasks of a bank over HTTP, with a web page to try them."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

import click

from graftwork.cli.completion import paths
from graftwork.cli.options import Command, device_option, option, use_threads
from graftwork.documents import document
from graftwork.errors import ConfigError
from graftwork.io.extras import extra
from graftwork.serve.server_limits import ServerLimits


@click.command("serve", cls=Command)
@click.argument("bank", shell_complete=paths)
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Any other than loopback needs --token-file.",
)
@option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port to listen on; 0: any free one."
)
@option(
    "--token-file",
    metavar="FILE",
    help="File with the token that clients send. Only its owner and its group may read it.  [default: a random"
    " token, printed once]",
)
@option(
    "--max-batch-tokens",
    "batch_tokens",
    type=click.IntRange(1),
    default=ServerLimits.batch_tokens,
    show_default=True,
    metavar="N",
    help="Approximate number of tokens per batch.",
)
@option(
    "--max-queue",
    "queue_tokens",
    type=click.IntRange(1),
    default=ServerLimits.queue_tokens,
    show_default=True,
    metavar="N",
    help="Tokens that may wait in the queue; further requests are refused with status 429.",
)
@option(
    "--timeout",
    "seconds",
    type=float,
    default=ServerLimits.seconds,
    show_default=True,
    metavar="SECONDS",
    help="Time after which an unanswered request is refused.",
)
@option(
    "--keep-alive",
    "keep_alive_seconds",
    type=click.IntRange(0, 3600),
    default=ServerLimits.keep_alive_seconds,
    show_default=True,
    metavar="SECONDS",
    help="Time after which an idle connection is closed. Behind a proxy, set it above that of the proxy.",
)
@option(
    "--grace",
    "grace_seconds",
    type=click.IntRange(0, 3600),
    default=ServerLimits.grace_seconds,
    show_default=True,
    metavar="SECONDS",
    help="Time to finish accepted requests once the server is stopped; those that are left are refused.",
)
@device_option
@option("--threads", type=int, help="CPU threads.  [default: all cores but one, which reads requests]")
@option(
    "--feedback",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keep the labels that people give on the page in FILE, as rows to train on.",
)
@option("--log-texts", is_flag=True, help="Include the texts of requests in the log.")
def command(
    bank: str,
    host: str,
    port: int,
    token_file: str | None,
    device: str,
    threads: int | None,
    feedback: Path | None,
    log_texts: bool,
    **limits: Any,
) -> None:
    """Serve the tasks of BANK over HTTP, until stopped by SIGTERM, SIGHUP or Ctrl-C.

    BANK is a bank, a task module or a run's folder, or a folder that graft export --to onnx made of one of these.

    Changes of the bank take effect within about a second. The log is written to stderr, one JSON line per request.
    """
    with extra("serve", "graft serve"):
        from graftwork.serve.auth_token import read_token
        from graftwork.serve.server import is_loopback, serve_bank

    if not 0 < limits["seconds"] <= 3600:  # click lets NaN pass a range
        raise ConfigError("--timeout must be more than 0 and at most 3600", got=str(limits["seconds"]))
    if not (is_loopback(host) or token_file):
        raise ConfigError(
            "a server that other machines can reach needs a token file",
            got=f"--host {host}",
            do=f"give --token-file FILE, or omit --host; {document('how-to/serve.md')} says how to make a token",
        )
    token = read_token(Path(token_file)) if token_file else secrets.token_urlsafe(24)
    import torch

    use_threads(max(1, torch.get_num_threads() - 1) if threads is None else threads)
    shown = f"[{host}]" if ":" in host else host

    def say(port: int) -> None:
        secret = "" if token_file else f"#token={token}"
        click.echo(f"http://{shown}:{port}/{secret}")
        sys.stdout.flush()

    asked = ServerLimits(**limits)
    told: dict[str, Any] = {"device": device, "log_texts": log_texts, "feedback": feedback}
    serve_bank(Path(bank), (host, port), token, asked, **told, say=say)
