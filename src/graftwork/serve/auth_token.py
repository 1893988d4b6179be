"""The access token of clients, read from a file that is kept from others."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import stat
from pathlib import Path

from graftwork.errors import ConfigError
from graftwork.io.files import storage_errors

SHORTEST = 16


def read_token(path: Path) -> str:
    """Read the token, the only line of a file.

    Raises `StorageError`; `ConfigError` when it is no valid token, or when the file is this user's own and others may
    read it. Modes are not checked for files of another user or on a read-only file system, as Kubernetes, systemd and
    docker mount them, nor on Windows, which has no such modes and no `os.geteuid`.
    """
    with storage_errors(path), path.open("rb") as stream:
        facts = os.fstat(stream.fileno())
        fixed = (
            not hasattr(os, "geteuid")
            or facts.st_uid != os.geteuid()
            or os.fstatvfs(stream.fileno()).f_flag & os.ST_RDONLY
        )
        content = stream.read(4096)
    if facts.st_mode & (stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO) and not fixed:
        raise ConfigError(
            "the token file can be read by others",
            where=str(path),
            got=f"mode {stat.S_IMODE(facts.st_mode):04o}",
            expected="mode 0600, or 0640 for a group that may know it",
            do=f"chmod 600 {path}; if others have seen it, make a new one",
        )
    lines = content.decode("ascii", errors="replace").strip().splitlines()
    if len(lines) != 1 or len(lines[0]) < SHORTEST or not all("!" <= char <= "~" for char in lines[0]):
        raise ConfigError(
            "the token file does not contain a valid token",
            where=str(path),
            expected=f"one line of at least {SHORTEST} letters, digits and signs, without spaces",
            do=f"make one: (umask 077; openssl rand -hex 24 > {path})",
        )
    return lines[0]


def shows_token(header: bytes | None, token: str, *, password: bool) -> bool:
    """Return whether an `Authorization` header has the token, compared in constant time.

    As `Bearer TOKEN`; with `password` also as the password of any user in `Basic`, as entered in a browser.
    """
    scheme, _, shown = (header or b"").partition(b" ")
    shown = shown.strip()
    if password and scheme.lower() == b"basic":
        try:
            shown = base64.b64decode(shown, validate=True).partition(b":")[2]
        except binascii.Error:
            return False
    elif scheme.lower() != b"bearer":
        return False
    return hmac.compare_digest(shown, token.encode())
