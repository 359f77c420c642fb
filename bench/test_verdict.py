# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the bench: by number, by ratio, and what is said when something is missing."""

import unittest

from rows import ROWS
from table import cells, summary
from verdict import Floor, Row, Verdict, judge

CLONE = Floor("a clone", "clone_ms", 2.5)
RATE = Floor("clones per second", "clones", 750)
TIME = Row("create", "create", "ms", 5, floor=CLONE, counts=True)
LAUNCHES = Row("lives", "lives", "per s", 150, more=True, floor=RATE, counts=True)


class Verdicts(unittest.TestCase):
    def test_a_reached_number_is_met(self) -> None:
        self.assertEqual(str(judge(TIME, 5.0, 2.5)), "met")
        self.assertEqual(str(judge(LAUNCHES, 150, 750)), "met")

    def test_a_missed_number_may_be_met_by_ratio(self) -> None:
        self.assertEqual(str(judge(TIME, 8.0, 4.0)), "met by ratio")
        self.assertEqual(str(judge(LAUNCHES, 80, 400)), "met by ratio")

    def test_neither_is_missed(self) -> None:
        self.assertEqual(str(judge(TIME, 8.1, 4.0)), "missed")
        self.assertEqual(str(judge(LAUNCHES, 79, 400)), "missed")

    def test_a_faster_machine_does_not_hide_a_missed_ratio(self) -> None:
        self.assertEqual(str(judge(TIME, 4.0, 1.0)), "met, not by ratio")
        self.assertEqual(str(judge(LAUNCHES, 200, 2000)), "met, not by ratio")

    def test_a_floor_for_comparison_gives_no_verdict(self) -> None:
        row = Row("create", "create", "ms", 5, floor=CLONE)
        self.assertEqual(judge(row, 6.0, 100.0), Verdict(False, None))
        nothing_there = Row("create", "create", "ms", 5, floor=Floor("a clone", "clone_ms"), counts=True)
        self.assertEqual(judge(nothing_there, 6.0, 100.0), Verdict(False, None))

    def test_what_was_not_measured_is_missed(self) -> None:
        self.assertEqual(judge(TIME, None, 4.0), Verdict(False, False))
        self.assertEqual(judge(TIME, 8.0, None), Verdict(False, None))
        self.assertEqual(judge(TIME, 8.0, 0.0), Verdict(False, None))
        self.assertEqual(str(judge(TIME, None, None)), "missed")

    def test_without_a_goal_nothing_is_said(self) -> None:
        self.assertEqual(str(judge(Row("create", "create", "ms", floor=CLONE, counts=True), 1.0, 1.0)), "")


class Table(unittest.TestCase):
    def test_a_row_shows_floor_ratio_and_both_goals(self) -> None:
        samples = {"create": [8.0, 7.0, 9.0], "clone_ms": [4.0, 3.0, 5.0]}
        texts, _verdict = cells(TIME, samples)
        self.assertEqual(texts, ["create", "4", "8", "9", "9", "2.00", "ms", "<= 5", "<= 2", "met by ratio"])

    def test_tails_of_rates_are_the_slow_ones(self) -> None:
        texts, _verdict = cells(LAUNCHES, {"lives": [float(n) for n in range(101)], "clones": [100.0]})
        self.assertEqual(texts[2:5], ["50", "6", "2"])
        self.assertEqual(texts[7:], [">= 150", ">= 0.2", "met by ratio"])

    def test_both_counts_stand_apart(self) -> None:
        told = summary([Verdict(True), Verdict(True, False), Verdict(False, True), Verdict(False, False), Verdict()])
        self.assertEqual(
            told, "2 of 4 goals met as numbers; 1 of the 3 beside a measured floor met by ratio; 1 missed both ways"
        )

    def test_every_row_that_counts_knows_its_floor_there(self) -> None:
        for row in ROWS:
            if row.counts:
                self.assertIsNotNone(row.goal_ratio, row.title)


if __name__ == "__main__":
    unittest.main()
