"""What was measured, and what it is held against."""

import statistics
from dataclasses import dataclass, field

OURS = "muster"


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    higher_is_better: bool = False


@dataclass(frozen=True)
class Goal:
    """One of three: `times` as good as `peer`, at most `beyond` units worse than `peer`, or `limit` units itself."""

    peer: str = ""
    times: float | None = None
    beyond: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Ratio:
    """How many times better ours is than a peer: the median over the rounds of each round's own ratio, and its ends."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Row:
    """One metric of one case, of everyone who was measured in it."""

    case: str
    metric: Metric
    samples: dict[str, list[float]]  # contestant -> figures in the order of the rounds
    goals: tuple[Goal, ...] = ()
    size: float | None = None  # what the case is, as a number: the place on a plot's axis

    def median(self, name: str) -> float:
        return statistics.median(self.samples[name])

    def peers(self) -> list[str]:
        return [name for name in self.samples if name != OURS and self.samples[name]]

    def has_ratio(self, peer: str) -> bool:
        """There is none to nothing: lines that were lost, say."""
        return bool(self.samples.get(OURS)) and all(self.samples[OURS] + self.samples[peer])

    def ratio(self, peer: str) -> Ratio:
        pairs = zip(self.samples[OURS], self.samples[peer])
        ratios = [ours / theirs if self.metric.higher_is_better else theirs / ours for ours, theirs in pairs]
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))

    def met(self, goal: Goal) -> bool | None:
        """None where the peer was not measured."""
        if OURS not in self.samples or (goal.peer and not self.samples.get(goal.peer)):
            return None
        if goal.times is not None:
            return self.ratio(goal.peer).median >= goal.times
        sign = -1 if self.metric.higher_is_better else 1
        if goal.beyond is not None:
            return sign * (self.median(OURS) - self.median(goal.peer)) <= goal.beyond
        return sign * self.median(OURS) <= sign * goal.limit

    def goal_text(self, goal: Goal) -> str:
        if goal.times is not None:
            return f"{goal.times:.3g} times {goal.peer}"
        if goal.beyond is not None:
            return f"{goal.peer} {'-' if self.metric.higher_is_better else '+'} {goal.beyond:g} {self.metric.unit}"
        return f"{'at least' if self.metric.higher_is_better else 'at most'} {goal.limit:g} {self.metric.unit}"


@dataclass(frozen=True)
class Plot:
    """Cost against size: the rows of one metric, a line for each contestant, both axes logarithmic."""

    title: str
    metric: str
    size_label: str


@dataclass
class Benchmark:
    name: str
    title: str
    how: str  # what is measured, from where to where, and with which settings of each peer
    commands: list[str] = field(default_factory=list)  # what was run, for a reader to run again
    rows: list[Row] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # a peer that could not run, say, and why

    def add(self, case: str, metrics: list[Metric], samples: dict, goals: dict[str, tuple[Goal, ...]] | None = None,
            size: float | None = None) -> None:
        """A row for each metric that anyone has figures of; `samples` are those of contest.take_turns."""
        for metric in metrics:
            figures = {name: of_metric[metric.name] for name, of_metric in samples.items() if metric.name in of_metric}
            if figures:
                self.rows.append(Row(case, metric, figures, (goals or {}).get(metric.name, ()), size))
