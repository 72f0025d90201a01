"""Contestants that take turns, so that whatever else the machine does in the meantime meets them all alike."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

# One measurement: the figure of each metric by the metric's name.
Figures = dict[str, float]
# All measurements of a contest: contestant -> metric -> a figure for each round, in order.
Samples = dict[str, dict[str, list[float]]]


class Withdraws(Exception):
    """Raised by a contestant's run: it cannot do this case, and why."""


@dataclass(frozen=True)
class Contestant:
    name: str
    run: Callable[[], Figures]
    # The most rounds it takes part in; 0: all. For a peer that needs minutes for what others do in milliseconds.
    rounds: int = 0


def take_turns(what: str, contestants: list[Contestant], pairs: int, warm_up: int = 1,
               notes: list[str] | None = None) -> Samples:
    """Runs every contestant once in each round, A B A B, in `warm_up` rounds that do not count and `pairs` that do.

    Who withdraws has no figures at all, and `notes` says why. Whatever else a contestant's run raises ends the contest: a
    figure that could not be taken is not replaced by another.
    """
    samples: Samples = {contestant.name: {} for contestant in contestants}
    for round_number in range(-warm_up, pairs):
        for contestant in contestants:
            if contestant.name not in samples or contestant.rounds and round_number >= contestant.rounds:
                continue
            try:
                figures = contestant.run()
            except Withdraws as why:
                del samples[contestant.name]
                if notes is not None:
                    notes.append(f"{what}: {contestant.name} is not among them: {why}")
                continue
            if round_number >= 0:
                for metric, figure in figures.items():
                    samples[contestant.name].setdefault(metric, []).append(figure)
        print(f"\r{what}: round {max(round_number + 1, 0)} of {pairs}", end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return samples
