"""Serve every task of a bank over HTTP: rows of all tasks in one batch, and a page to try them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from graftwork.cli.options import Command, device_option, use_threads
from graftwork.documents import document
from graftwork.errors import ConfigError


@click.command("serve", cls=Command)
@click.argument("bank")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Another than this machine's own needs --token-file.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes any that is free."
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Holds the token that clients show; nobody else may read it.  [default: a random one, printed once]",
)
@click.option(
    "--max-batch-tokens",
    type=int,
    default=512,
    show_default=True,
    metavar="N",
    help="Of the rows computed together, about.",
)
@click.option(
    "--max-queue",
    type=int,
    default=512,
    show_default=True,
    metavar="N",
    help="Tokens that may wait; beyond them the answer is 429.",
)
@click.option(
    "--timeout", type=float, default=10.0, show_default=True, metavar="SECONDS", help="Until a request is given up."
)
@device_option
@click.option("--threads", type=int, help="Processor threads.  [default: all cores but one, which reads requests]")
@click.option("--log-texts", is_flag=True, help="Write the texts of requests into the log.")
def command(
    bank: str,
    host: str,
    port: int,
    token_file: str | None,
    max_batch_tokens: int,
    max_queue: int,
    timeout: float,
    device: str,
    threads: int | None,
    log_texts: bool,
) -> None:
    """Serve the tasks of BANK over HTTP, until stopped by SIGTERM or Ctrl-C.

    Tasks that are added to the bank, changed or removed are picked up within about a second. The log, one line of JSON
    per request, goes to stderr.
    """
    from graftwork.serve.auth_token import make_token, read_token
    from graftwork.serve.server import is_loopback, serve_bank
    from graftwork.serve.server_limits import ServerLimits

    limits = ServerLimits(batch_tokens=max_batch_tokens, queue_tokens=max_queue, seconds=timeout)
    if not (is_loopback(host) or token_file):
        raise ConfigError(
            "other machines could reach this server, so it needs a token that you keep",
            got=f"--host {host}",
            do=f"give --token-file FILE, or leave --host out; {document('how-to/serve.md')} says how to make one",
        )
    token = read_token(Path(token_file)) if token_file else make_token()
    import torch

    use_threads(max(1, torch.get_num_threads() - 1) if threads is None else threads)
    shown = f"[{host}]" if ":" in host else host

    def say(port: int) -> None:
        secret = "" if token_file else f"#token={token}"
        click.echo(f"http://{shown}:{port}/{secret}")
        sys.stdout.flush()

    serve_bank(Path(bank), (host, port), token, limits, device=device, log_texts=log_texts, say=say)
