"""Processes: those that the harness starts, and those that it finds."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

# Longer than anything takes here on a slow machine; only a broken product makes a wait this long.
PATIENCE_S = 30.0


class TimedOut(Exception):
    """A condition did not become true in time; the text says which."""


def now() -> int:
    """Nanoseconds of CLOCK_MONOTONIC, which agents' event logs and workers' marks have, too."""
    return time.monotonic_ns()


def wait_for(ready: Callable[[], T | None], otherwise: str | Callable[[], str], seconds: float = PATIENCE_S) -> T:
    """Asks `ready` until it returns neither None nor False, and returns that; `otherwise` says what is wrong in the end.

    What is measured comes from time stamps in logs and marks, so the pause between two questions does not matter.
    """
    deadline = now() + int(seconds * 1e9)
    while (result := ready()) is None or result is False:
        if now() > deadline:
            raise TimedOut(f"after {seconds:g} s: {otherwise if isinstance(otherwise, str) else otherwise()}")
        time.sleep(0.005)
    return result


@dataclass(frozen=True)
class Line:
    """A line of a program's stderr, and when it came."""

    ns: int
    text: str


class Program:
    """A process that the harness started. Its stderr is read at once, each line with the time at which it came, unless
    the caller gives another."""

    def __init__(self, name: str, argv: Sequence[str], env: dict[str, str], pass_fds: Sequence[int] = (), **more):
        self.name = name
        self.lines: list[Line] = []
        self._process = subprocess.Popen(
            argv, env=env, pass_fds=pass_fds,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE,
               "start_new_session": True, **more},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        if self._process.stderr is not None:
            self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> int:
        """Sends the signal; returns the instant before."""
        before = now()
        self._process.send_signal(number)
        return before

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """The exit code as a shell shows it: 128 + n for signal n."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            what = f"{self.name} has not ended; it said last: {self.last_words()}"
            raise TimedOut(f"after {seconds:g} s: {what}") from None
        return code if code >= 0 else 128 - code

    def said(self, text: str, since: int = 0) -> Line | None:
        """The first line with `text` in it that came at or after `since`."""
        return next((line for line in self.lines if line.ns >= since and text in line.text), None)

    def wait_for_line(self, text: str, since: int = 0, seconds: float = PATIENCE_S) -> Line:
        return wait_for(lambda: self.said(text, since),
                        lambda: f"{self.name} has not said '{text}' but: {self.last_words()}", seconds)

    def last_words(self, count: int = 3) -> str:
        # Its last output is read by then, unless a leftover process keeps the stream open.
        if self._reader.is_alive() and not self.running():
            self._reader.join(0.5)
        return " / ".join(line.text for line in self.lines[-count:]) or "nothing"

    def _read(self) -> None:
        assert self._process.stderr is not None
        for raw in self._process.stderr:
            self.lines.append(Line(now(), raw.decode(errors="replace").rstrip("\n")))


def stat_fields(pid: int) -> list[str] | None:
    """State, parent and so on, from /proc/PID/stat after the name; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int) -> bool:
    """A zombie is dead: it only waits to be asked for its status."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in ("Z", "X")


def living() -> dict[int, str]:
    """Every process of this namespace but the harness itself: pid and command line."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        if is_alive(int(name)):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    found[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def children(pid: int) -> list[int]:
    """The living children of a process."""
    found = {int(name): stat_fields(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return sorted(each for each, fields in found.items() if fields and fields[1] == str(pid) and is_alive(each))


def runs(pid: int, program: str) -> bool:
    """Whether a process executes this file."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program)
    except OSError:
        return False  # It has ended in between.


def thread_count(pid: int) -> int:
    """0 for a process that is no more."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def reap_all() -> None:
    """Asks for the status of every child that has ended, also of orphans that came to us as process 1. Only when no
    Program of interest is left: it would not learn its own status."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmRSS:")), 0)
