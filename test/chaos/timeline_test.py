#!/usr/bin/python3
"""What the harness concludes from event logs and marks: above all, that it would see two rounds run side by side."""

import os
import tempfile
import unittest
from pathlib import Path

from marks import Mark
from timeline import Event, Timeline, read_events


def assigned(agent: str, ns: int, number: int) -> Event:
    return Event(agent, ns, "assigned", number, None, "")


def mark(agent: str, first: int, last: int, rank: int = 0, world: int = 1, escaped: bool = False) -> Mark:
    return Mark(agent, escaped, os.getpid(), rank, world, 0, first, last, 0, Path("nowhere"))


class TimelineTest(unittest.TestCase):
    def test_workers_of_two_rounds_at_a_time_are_found(self) -> None:
        timeline = Timeline(
            [assigned("a", 10, 0), assigned("b", 300, 1)],
            [mark("a", 100, 500), mark("b", 400, 900)],
        )
        self.assertEqual(timeline.overlap_ns(), 100)

    def test_rounds_after_one_another_do_not_overlap(self) -> None:
        timeline = Timeline(
            [assigned("a", 10, 0), assigned("a", 300, 1)],
            [mark("a", 100, 250), mark("a", 400, 900)],
        )
        self.assertEqual(timeline.overlap_ns(), 0)

    def test_what_a_worker_left_behind_counts_too(self) -> None:
        timeline = Timeline(
            [assigned("a", 10, 0), assigned("a", 300, 1)],
            [mark("a", 100, 250), mark("a", 110, 450, escaped=True), mark("a", 400, 900)],
        )
        self.assertEqual(timeline.overlap_ns(), 50)

    def test_a_round_before_the_last_one_counts_too(self) -> None:
        timeline = Timeline(
            [assigned("a", 10, 0), assigned("b", 20, 1), assigned("b", 300, 2)],
            [mark("a", 15, 500), mark("b", 600, 650), mark("b", 480, 900)],
        )
        self.assertEqual(timeline.overlap_ns(), 20)

    def test_a_round_runs_when_each_of_its_ranks_runs_on_its_nodes(self) -> None:
        events = [assigned("a", 10, 3), assigned("b", 11, 3)]
        one, other = mark("a", 20, 30, rank=0, world=2), mark("b", 21, 30, rank=1, world=2)
        self.assertIsNone(Timeline(events, [one]).running({"a", "b"}, after_round=2))
        self.assertIsNone(Timeline(events, [one, other]).running({"a"}, after_round=2))
        self.assertIsNone(Timeline(events, [one, other]).running({"a", "b"}, after_round=3))
        self.assertEqual(Timeline(events, [one, other]).running({"a", "b"}, after_round=2), 3)
        self.assertEqual(Timeline(events, [one, other]).started(3), 21)

    def test_all_are_told_when_the_last_one_is(self) -> None:
        told = [Event("a", 50, "told_to_stop", 0, None, ""), Event("b", 70, "worker_failed", 0, 3, "")]
        self.assertIsNone(Timeline(told[:1], []).all_told({"a", "b"}, since=40))
        self.assertIsNone(Timeline(told, []).all_told({"a", "b"}, since=60))
        self.assertEqual(Timeline(told, []).all_told({"a", "b"}, since=40), 70)

    def test_a_line_that_is_being_written_is_left_for_later(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "events.json")
            self.assertEqual(read_events("a", log), [])
            log.write_text('{"monotonic":1.000000002,"event":"joining"}\n{"monot', encoding="utf-8")
            self.assertEqual(read_events("a", log), [Event("a", 1_000_000_002, "joining", None, None, "")])


if __name__ == "__main__":
    unittest.main()
