"""The workers' marks: from when to when each process ran (chaos_worker.cc writes them)."""

import struct
from dataclasses import dataclass
from pathlib import Path

from processes import is_alive

_LAYOUT = struct.Struct("<7q")


@dataclass(frozen=True)
class Mark:
    """One process of one worker. Instants are nanoseconds of CLOCK_MONOTONIC."""

    agent: str
    escaped: bool  # Not the worker itself but a process that it started and that left its session.
    pid: int
    rank: int
    world_size: int
    restart_count: int
    first_ns: int
    last_ns: int
    left_ns: int  # When it ended by itself, having been asked to (CHAOS_STOP_S); 0: it did not.
    path: Path

    @property
    def alive(self) -> bool:
        return is_alive(self.pid)

    def command(self, line: str) -> None:
        """Tells the worker to do something; see chaos_worker.cc."""
        with open(self.path.with_suffix(".command"), "w", encoding="utf-8") as pipe:
            pipe.write(line + "\n")


def read_marks(agent: str, folder: Path) -> list[Mark]:
    return [Mark(agent, ".escaped." in path.name, *_LAYOUT.unpack(path.read_bytes()), path)
            for path in sorted(folder.glob("*.mark"))]
