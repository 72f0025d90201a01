"""Contestants that take turns, so that whatever else the machine does in the meantime meets them all alike."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

# One measurement: each metric's value by its name.
Figures = dict[str, float]
# All measurements of a contest: contestant -> metric -> one value per round, in order.
Samples = dict[str, dict[str, list[float]]]


class Withdraws(Exception):
    """Raised by a contestant's run: it cannot do this case, and why."""


@dataclass(frozen=True)
class Contestant:
    name: str
    run: Callable[[], Figures]
    # The most rounds it takes part in; 0: all. For a peer that needs minutes where others need
    # milliseconds.
    rounds: int = 0


def order(contestants: int, round_number: int) -> list[int]:
    """Who runs first, second, ... in a round: a row of a balanced Latin square (E. J. Williams, 1949).

    Over as many rounds as there are contestants, or twice as many if they are odd, everyone has every place equally
    often and runs right behind everyone else equally often: what one of them leaves to be cleaned up (processes that the
    kernel still takes apart, memory, a hot processor) is shared by all the others.
    """
    zigzag = [place // 2 + 1 if place % 2 else -(place // 2) for place in range(contestants)]
    row = [(place + round_number) % contestants for place in zigzag]
    return row[::-1] if contestants % 2 and round_number // contestants % 2 else row


def take_turns(what: str, contestants: list[Contestant], pairs: int, warm_up: int = 1,
               notes: list[str] | None = None) -> Samples:
    """Runs every contestant once in each round, in `warm_up` rounds that do not count and `pairs` that do.

    Each round has an order of its own (`order`), so nobody always runs behind the same other one.

    Who withdraws has no figures at all, and `notes` says why. Whatever else a contestant's run raises ends the contest: a
    figure that could not be taken is not replaced by another.
    """
    samples: Samples = {contestant.name: {} for contestant in contestants}
    for round_number in range(-warm_up, pairs):
        for contestant in (contestants[place] for place in order(len(contestants), round_number)):
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
