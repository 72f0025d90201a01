"""Results as a table for a terminal, as JSON for programs, and as docs/benchmarks/results.md with plots for readers."""

import dataclasses
import re
import statistics
import textwrap
from pathlib import Path

from results import OURS, Benchmark, Goal, Metric, Plot, Row


def number(value: float) -> str:
    """Three digits that mean something, and no exponent."""
    if value == 0:
        return "0"
    digits = max(0, 3 - len(str(int(abs(value)))))
    return f"{value:,.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}"


def figure(metric: Metric, samples: list[float]) -> str:
    middle = number(statistics.median(samples))
    spread = f" ({number(min(samples))} to {number(max(samples))})" if len(samples) > 1 else ""
    return f"{middle} {metric.unit}{spread}"


def _verdict(row: Row) -> str:
    words = {True: "met", False: "**missed**", None: "not measured"}
    return "; ".join(f"{row.goal_text(goal)}: {words[row.met(goal)]}" for goal in row.goals)


def _against(row: Row, peer: str) -> str:
    text = figure(row.metric, row.samples[peer])
    if not row.has_ratio(peer):
        return text
    ratio = row.ratio(peer)
    return f"{text}, x {number(ratio.median)} ({number(ratio.lowest)} to {number(ratio.highest)})"


def terminal(benchmark: Benchmark) -> str:
    lines = [f"{benchmark.name}: {benchmark.title}"]
    for row in benchmark.rows:
        lines.append(f"  {row.case}, {row.metric.name}")
        if OURS in row.samples:
            lines.append(f"    {OURS:<16} {figure(row.metric, row.samples[OURS])}")
        lines += [f"    {peer:<16} {_against(row, peer)}" for peer in row.peers()]
        if row.goals:
            lines.append(f"    {'goal':<16} {_verdict(row).replace('**', '')}")
    return "\n".join(lines + [f"  {note}" for note in benchmark.notes])


def to_json(benchmark: Benchmark) -> dict:
    result = dataclasses.asdict(benchmark)
    for row, entry in zip(benchmark.rows, result["rows"]):
        entry["medians"] = {name: row.median(name) for name in row.samples if row.samples[name]}
        if OURS in row.samples:
            entry["ratios"] = {peer: dataclasses.asdict(row.ratio(peer)) for peer in row.peers()
                               if row.has_ratio(peer)}
        for goal, goal_entry in zip(row.goals, entry["goals"]):
            goal_entry.update(text=row.goal_text(goal), met=row.met(goal))
    return result


def from_json(entry: dict) -> Benchmark:
    """The benchmark that to_json made `entry` of."""
    def fields(kind: type, values: dict) -> dict:
        return {name.name: values[name.name] for name in dataclasses.fields(kind)}

    rows = [Row(row["case"], Metric(**row["metric"]), row["samples"],
                tuple(Goal(**fields(Goal, goal)) for goal in row["goals"]), row["size"]) for row in entry["rows"]]
    plots = [Plot(**plot) for plot in entry["plots"]]
    return Benchmark(**{**fields(Benchmark, entry), "rows": rows, "plots": plots})


def _table(benchmark: Benchmark) -> list[str]:
    names = list(dict.fromkeys(name for row in benchmark.rows for name in row.samples if name != OURS))
    lines = ["| " + " | ".join(["case", "figure", OURS, *names, "goal"]) + " |", "|---" * (len(names) + 4) + "|"]
    for row in benchmark.rows:
        cells = [row.case, row.metric.name]
        cells.append(figure(row.metric, row.samples[OURS]) if row.samples.get(OURS) else "")
        cells += [_against(row, name) if row.samples.get(name) else "" for name in names]
        lines.append("| " + " | ".join([*cells, _verdict(row)]) + " |")
    return lines


def _wrapped(text: str, begin: str = "") -> str:
    """One paragraph, or after `begin` one item of a list, as all of docs is wrapped."""
    return textwrap.fill(" ".join(text.split()), 120, initial_indent=begin, subsequent_indent=" " * len(begin),
                         break_long_words=False, break_on_hyphens=False)


def draw(benchmark: Benchmark, folder: Path) -> list[tuple[str, Path]]:
    """An SVG file for each plot, as (title, path)."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "muster"  # the same figures give the same file
    from matplotlib import pyplot

    drawn = []
    for plot in benchmark.plots:
        rows = sorted((row for row in benchmark.rows if row.metric.name == plot.metric and row.size is not None),
                      key=lambda row: row.size)
        if not rows:
            continue
        axes = pyplot.figure(figsize=(6.4, 4)).add_subplot(
            title=plot.title, xscale="log", yscale="log", xlabel=plot.size_label,
            ylabel=f"{plot.metric} ({rows[0].metric.unit})")
        for name in dict.fromkeys(name for row in rows for name in row.samples):
            points = [(row.size, row.median(name)) for row in rows if row.samples.get(name)]
            axes.plot(*zip(*points), marker="o", markersize=4, linewidth=2.2 if name == OURS else 1.2, label=name)
        axes.set_xticks([row.size for row in rows], [f"{row.size:g}" for row in rows])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        file = folder / f"{benchmark.name}_{re.sub('[^a-z0-9]+', '_', plot.metric.lower())}.svg"
        axes.figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(axes.figure)
        drawn.append((plot.title, file))
    return drawn


def section(benchmark: Benchmark, folder: Path) -> list[str]:
    """The section of docs/benchmarks/results.md about one benchmark; its plots are written to that file's `folder`."""
    rounds = max((len(figures) for row in benchmark.rows for figures in row.samples.values()), default=0)
    lines = [f"## {benchmark.title}", "", _wrapped(f"{benchmark.how} Rounds: {rounds}."), ""]
    lines += ["```", *benchmark.commands, "```", ""] if benchmark.commands else []
    lines += [*_table(benchmark), ""]
    lines += [f"![{title}]({path.name})\n" for title, path in draw(benchmark, folder)]
    lines += [_wrapped(note, "- ") for note in benchmark.notes] + [""] if benchmark.notes else []
    return lines


def write_docs(run: dict, file: Path) -> None:
    """docs/benchmarks/results.md from the JSON object of a whole run, with its plots beside it."""
    file.parent.mkdir(exist_ok=True)
    benchmarks = [from_json(entry) for entry in run["benchmarks"]]
    introduction = """
        Written by `scripts/bench.sh --write-docs`; to measure again, run that. [benchmarks.md](../benchmarks.md) is the
        summary. Muster and its peers take turns, one round after the other, so that other load on the machine affects
        all of them alike. The order changes from round to round (a balanced Latin square), so that no program always
        runs after the same other one. A figure is the median of all rounds, with the lowest and the highest in
        parentheses. "x" is how many times better Muster is than that peer: the median of the ratios of the single
        rounds, with the lowest and the highest. No test depends on these figures."""
    lines = ["# Benchmark results", "", _wrapped(introduction), ""]
    lines += [_wrapped(f"{what}: {value}", "- ") for what, value in run["machine"].items()] + [""]
    for benchmark in benchmarks:
        lines += section(benchmark, file.parent)
    file.write_text("\n".join(lines).rstrip() + "\n")
