"""What happened when, on all hosts together: the agents' event logs and the workers' marks on one clock."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from marks import Mark

# Events that show that an agent knows that a round is over.
NEWS = ("worker_failed", "told_to_stop", "rendezvous_lost", "verdict")


@dataclass(frozen=True)
class Event:
    """A line of an agent's --event-log."""

    agent: str
    ns: int
    name: str
    round: int | None
    rank: int | None
    cause: str


def read_events(agent: str, path: Path) -> list[Event]:
    """A line that is not yet whole is left for the next time."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    return [_event(agent, json.loads(line)) for line in lines if line]


def _event(agent: str, line: dict) -> Event:
    return Event(agent, round(line["monotonic"] * 1e9), line["event"], line.get("round"), line.get("rank"),
                 line.get("cause", ""))


class Timeline:
    """A snapshot of one job's history."""

    def __init__(self, events: Iterable[Event], marks: Iterable[Mark]):
        self.events = sorted(events, key=lambda event: event.ns)
        self.marks = list(marks)

    def first(self, names: str | Collection[str], agent: str | None = None, since: int = 0) -> Event | None:
        names = (names,) if isinstance(names, str) else names
        return next((event for event in self.events
                     if event.name in names and event.ns >= since and agent in (None, event.agent)), None)

    def all_told(self, agents: Collection[str], since: int) -> int | None:
        """When the last of `agents` knew that the round was over; None while one does not."""
        told = [self.first(NEWS, agent, since) for agent in agents]
        return max(event.ns for event in told if event) if all(told) else None

    def round_of(self, mark: Mark) -> int:
        """The round that a worker was started for: the last one its agent had a place in before."""
        rounds = [event.round for event in self.events
                  if event.agent == mark.agent and event.name == "assigned" and event.ns <= mark.first_ns]
        return rounds[-1] if rounds and rounds[-1] is not None else -1

    def workers_of(self, number: int) -> list[Mark]:
        return [mark for mark in self.marks if not mark.escaped and self.round_of(mark) == number]

    def newest_round(self) -> int:
        return max((event.round for event in self.events if event.name == "assigned" and event.round is not None),
                   default=-1)

    def rounds(self) -> list[int]:
        """Rounds that workers ran in, in order."""
        return sorted({self.round_of(mark) for mark in self.marks})

    def running(self, agents: Collection[str], after_round: int) -> int | None:
        """The newest round, if it is after `after_round`, `agents` are its nodes, and all ranks run; else None."""
        number = self.newest_round()
        workers = [mark for mark in self.workers_of(number) if mark.alive]
        if number <= after_round or {mark.agent for mark in workers} != set(agents):
            return None
        ranks = sorted(mark.rank for mark in workers)
        return number if ranks == list(range(workers[0].world_size)) else None

    def started(self, number: int) -> int:
        """When the last worker of a round ran."""
        return max(mark.first_ns for mark in self.workers_of(number))

    def overlap_ns(self) -> int:
        """The longest time for which processes of an older round ran beside workers of a newer one."""
        worst = 0
        spans = [(self.round_of(mark), mark) for mark in self.marks]
        for number in {number for number, _ in spans}:
            older = [mark.last_ns for other, mark in spans if other < number]
            newer = [mark.first_ns for other, mark in spans if other == number]
            if older:
                worst = max(worst, max(older) - min(newer))
        return worst

    def restarts(self) -> int:
        """The highest TORCHELASTIC_RESTART_COUNT that a worker has seen."""
        return max((mark.restart_count for mark in self.marks), default=0)
