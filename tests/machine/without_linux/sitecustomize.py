"""Makes a Python look as on Windows or macOS: without the modules, functions and files that Linux alone has."""

import builtins
import io
import os
import shutil
import signal
import sys
from typing import Any

ABSENT_MODULES = ("fcntl", "resource", "pwd", "grp")
ABSENT_FUNCTIONS = (
    "sched_getaffinity", "statvfs", "fstatvfs", "geteuid", "getuid", "getloadavg", "sysconf",
)  # fmt: skip
ABSENT_SIGNALS = ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGQUIT")
ASKED_BY_LIBRARIES = "/proc/self/maps"  # threadpoolctl reads it where sys.platform is "linux"

disk = shutil.disk_usage("/")  # it calls os.statvfs here, and another function on Windows
shutil.disk_usage = lambda path: disk
for name in ABSENT_MODULES:
    sys.modules[name] = None  # type: ignore[assignment]
for name in ABSENT_FUNCTIONS:
    delattr(os, name)
for name in ABSENT_SIGNALS:
    delattr(signal, name)

opened, linked = io.open, os.readlink


def require_present(path: Any) -> None:
    if isinstance(path, str | os.PathLike):
        text = os.fsdecode(path)
        if text.startswith(("/proc/", "/sys/")) and text != ASKED_BY_LIBRARIES:
            raise FileNotFoundError(2, "No such file or directory", text)


def guarded_open(file: Any, *args: Any, **named: Any) -> Any:
    require_present(file)
    return opened(file, *args, **named)


def guarded_readlink(path: Any, *args: Any, **named: Any) -> Any:
    require_present(path)
    return linked(path, *args, **named)


builtins.open = io.open = guarded_open
os.readlink = guarded_readlink
