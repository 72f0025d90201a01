"""A world of its own for the harness: network, mounts and processes that disappear with it.

The harness runs again inside new namespaces, as process 1 of its own process namespace. Whatever ends it, SIGKILL
included, ends every process, host and link that it made, and nothing outside can collide with their names.
"""

import os
import signal
import subprocess
import sys

_INSIDE = "MUSTER_CHAOS_INSIDE"
_NAMESPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
# Where the harness writes everything: a file system of the mount namespace, so that it disappears,
# too.
SCRATCH = "/run/chaos"


def enter() -> str | None:
    """Makes sure that this process is inside. Returns None there, and why it cannot be done otherwise."""
    if _INSIDE in os.environ:
        _furnish()
        return None
    reason = "unshare is missing (package util-linux)"
    for how in _ways():
        command = ["unshare", *how, *_NAMESPACES]
        try:
            tried = subprocess.run([*command, "sh", "-c", _TRIAL], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            break
        if tried.returncode == 0:
            os.environ[_INSIDE] = "1"
            os.execvp("unshare", [*command, sys.executable, *sys.argv])
        reason = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
    return reason


# A small version of what cluster.py does.
_TRIAL = """
mount -t tmpfs tmpfs /run && mkdir /run/netns && ip netns add trial &&
ip link add near type veth peer name far netns trial
"""


def _ways() -> list[list[str]]:
    as_nobody_special = ["--user", "--map-root-user"]
    return [[], as_nobody_special] if os.geteuid() == 0 else [as_nobody_special]


def _furnish() -> None:
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    # Process 1 gets only signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", "/run"], check=True)
    for folder in ("/run/netns", "/run/lock", SCRATCH):
        os.mkdir(folder)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
