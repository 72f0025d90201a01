"""What the figures were measured on and with."""

import os
import platform
import re
import subprocess
from pathlib import Path


def _package(name: str) -> str:
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=False)
    return query.stdout.strip()


def describe(muster: str, packages: dict[str, str]) -> dict[str, str]:
    """For the head of a report; `packages` are the peers: what they are called -> Debian's package."""
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    ours = subprocess.run([muster, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    versions = ", ".join(f"{peer} {version}" for peer, package in packages.items() if (version := _package(package)))
    return {
        "machine": f"{os.cpu_count()} processors ({cpu.group(1) if cpu else platform.machine()}), "
                   f"{round(memory / 2**30)} GiB, Linux {platform.release()}",
        "Muster": ours,
        "peers": versions,
    }
