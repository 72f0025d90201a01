"""What a run of the harness found: as JSON for programs, as lines for a terminal, as docs/faults.md for readers."""

import json
import os
import platform
import statistics
import subprocess
import textwrap
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from case import Case, matrix
from trial import Outcome

_PASSED, _FAILED, _WAITING, _IMPOSSIBLE = "passed", "failed", "waiting", "not injected"


def result_of(case: Case, outcomes: list[Outcome]) -> dict:
    """The JSON object of one case that was run."""
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.figures_ms))
    problems = list(dict.fromkeys(problem for outcome in outcomes for problem in outcome.problems))
    return {
        "id": case.id,
        "title": case.title,
        "outcome": _FAILED if problems else _PASSED,
        "problems": problems,
        "repetitions": len(outcomes),
        "failed_repetitions": sum(bool(outcome.problems) for outcome in outcomes),
        "figures_ms": {name: _figure(case, name, outcomes) for name in names},
        "overlap_ns": max((outcome.overlap_ns for outcome in outcomes), default=0),
        "shown": next((outcome.shown for outcome in outcomes if outcome.shown), ""),
        "orphans": sum(outcome.orphans for outcome in outcomes),
    }


def waiting(case: Case, features: Iterable[str]) -> dict:
    """The JSON object of a case that needs what this Muster does not have."""
    problem = f"these binaries lack {', '.join(features)}"
    return {"id": case.id, "title": case.title, "outcome": _WAITING, "problems": [problem]}


def impossible(case: Case, reasons: Iterable[str]) -> dict:
    """The JSON object of a case that this machine does not allow."""
    return {"id": case.id, "title": case.title, "outcome": _IMPOSSIBLE, "problems": list(reasons)}


def _figure(case: Case, name: str, outcomes: list[Outcome]) -> dict:
    values = [outcome.figures_ms[name] for outcome in outcomes if name in outcome.figures_ms]
    goal = {"detect": case.goals.detect_ms, "recover": case.goals.recover_ms}.get(name)
    figure = {"median": round(statistics.median(values), 1), "worst": round(max(values), 1)}
    return figure if goal is None else {**figure, "goal": goal, "met": max(values) <= goal}


def run(muster: str, results: list[dict]) -> dict:
    """The JSON object of a whole run: what ran, and on what."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "version": subprocess.run([muster, "--version"], capture_output=True, text=True, check=False).stdout.strip(),
        "machine": {
            "kernel": platform.release(),
            "processors": os.cpu_count(),
            "memory_gib": round(memory / 2**30),
        },
        "cases": results,
    }


def line(result: dict) -> str:
    """One result for a terminal."""
    figures = ", ".join(
        f"{name} {_spread(figure)}" + (f" (goal {_time(figure['goal'])})" if figure.get("met") else "")
        for name, figure in result.get("figures_ms", {}).items()
    )
    text = f"{result['outcome']:>12}  {result['id']:<9} {result['title']}"
    problems = "".join(f"\n{'':14}{problem}" for problem in result["problems"])
    return text + (f": {figures}" if figures else "") + problems


def write_xml(file: Path, results: list[dict]) -> None:
    """One test case for each result, as Bazel and scripts/count_tests.py read them."""
    suite = ElementTree.Element("testsuite", name="chaos", tests=str(len(results)))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", name=result["id"], classname="chaos")
        if result["outcome"] != _PASSED:
            kind = "failure" if result["outcome"] == _FAILED else "skipped"
            ElementTree.SubElement(case, kind, message="; ".join(result["problems"]))
    ElementTree.ElementTree(suite).write(file, encoding="utf-8", xml_declaration=True)


def merge(file: Path, run: dict) -> dict:
    """`run`, with the results of cases that it did not include as `file` had them."""
    old = json.loads(file.read_text(encoding="utf-8"))["cases"] if file.exists() else []
    known = {result["id"]: result for result in [*old, *run["cases"]]}
    return {**run, "cases": [known[case.id] for case in matrix() if case.id in known]}


def _spread(figure: dict) -> str:
    median, worst = _time(figure["median"]), _time(figure["worst"])
    number, unit = median.split()
    spread = f"{number if worst.endswith(' ' + unit) else median} / {worst}"
    return spread if figure.get("met", True) else f"{spread} (**missed** its goal, {_time(figure['goal'])})"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


_HEAD = """\
# Faults

What happens to a job when something fails, and how long it takes; [below](#daemons-that-stand-by) the same for daemons
that [stand by for one another](standby.md). Each row is a case of `scripts/chaos.sh`: real processes on hosts that are
network namespaces, three nodes with two workers each and `musterd` on a fourth host unless the row says otherwise. The
case injects the fault, checks what must happen, and measures on CLOCK_MONOTONIC. It also checks that no process of a
round ran beside workers of a later one (to 0.1 ms), and that no process is left one second after the agents have ended.
Workers of a node that is cut off, or cannot be reached when a round ends, ignore SIGTERM, so they stop as late as they
can.

- **What is shown**: the rank or node and the cause, in `muster status`, the page's events and `muster replay`; metrics
  count it by kind. A rank in trouble is shown while that lasts, and by `muster replay` later. Empty: no job, or chance
  decides what ends.
- **Detection**: from the fault until the last remaining agent knows that the round is over. **Recovery**: until the
  last worker of the next round runs. A row may say otherwise. Median / worst; a worst time above its goal is marked
  **missed**, which fails no case.
- **torchrun**: of PyTorch 2.6 (Debian 13), with three such hosts, the c10d backend and workers without collectives;
  measured once, not by the script. Empty: not tried.

"""


def write_docs(file: Path, run: dict) -> None:
    """Writes docs/faults.md. Everything in it but the words of the cases comes from `run`."""
    results = {result["id"]: result for result in run["cases"]}
    ran = [result for result in results.values() if result["outcome"] in (_PASSED, _FAILED)]
    machine_text = "{processors} processors, {memory_gib} GiB, Linux {kernel}".format(**run["machine"])
    summary = (
        f"Made by `scripts/chaos.sh --write-docs` with {run['version']} on a machine with {machine_text}: "
        f"{len(ran)} cases, {sum(result['repetitions'] for result in ran)} repetitions, "
        f"{sum(result['outcome'] == _PASSED for result in ran)} cases passed. "
        f"Longest overlap of two rounds: {max((result['overlap_ns'] for result in ran), default=0)} ns. "
        f"Processes left behind: {sum(result['orphans'] for result in ran)}."
    )
    lines = [
        textwrap.fill(summary, 120),
        "",
        "| | fault | what is done | what must happen | what is shown | detection | recovery | torchrun |",
        "|---|---|---|---|---|---|---|---|",
        *_rows([(case, results[case.id]) for case in matrix() if results.get(case.id) in ran]),
        "",
    ]
    for title, outcome in (
        ("Waiting for a part of Muster", _WAITING),
        ("Not injected on this kind of machine", _IMPOSSIBLE),
    ):
        rest = [result for result in results.values() if result["outcome"] == outcome]
        if rest:
            items = [f"- {result['id']}, {result['title']}: {'; '.join(result['problems'])}" for result in rest]
            lines += [f"## {title}", "", *items, ""]
    file.write_text(_HEAD + "\n".join(lines) + _standbys(file), encoding="utf-8")


# Where the part about daemons that stand by begins; it is of another run.
_STANDBYS = """
## Daemons that stand by

Three hosts, each with a daemon and a member of their etcd, and a job on two more (`scripts/chaos.sh --group ha`). One
fault after the other is injected at random, two of three at the leader's host. How long writes to the job's store
waited:

"""


def _standbys(file: Path) -> str:
    _, head, rest = file.read_text(encoding="utf-8").partition(_STANDBYS) if file.exists() else ("", "", "")
    return head + rest


def write_standbys(file: Path, text: str) -> None:
    """Writes that part of docs/faults.md, and leaves the other as it is."""
    other = file.read_text(encoding="utf-8").partition(_STANDBYS)[0]
    file.write_text(other + _STANDBYS + text, encoding="utf-8")


_SHORT = 20  # A text of fewer characters is repeated.


def _shown(case: Case, result: dict) -> str:
    if case.shows is None:
        return ""
    return result.get("shown") or ("in `muster replay` alone: " + case.shows if case.shows else "no round has ended")


def _rows(ran: list[tuple[Case, dict]]) -> list[str]:
    """A sentence that an earlier row has shown is not repeated: "as F1"."""
    first_with: dict[str, str] = {}
    rows = []
    for case, result in ran:
        shown = _shown(case, result)
        first = first_with.setdefault(shown, case.id)
        rows.append(_row(case, result, shown if first == case.id or len(shown) < _SHORT else f"as {first}"))
    return rows


def _row(case: Case, result: dict, shown: str) -> str:
    figures = result["figures_ms"]

    def cell(name: str, meaning: str) -> str:
        return "" if name not in figures else _spread(figures[name]) + (f" {meaning}" if meaning else "")

    others = [name for name in figures if name not in ("detect", "recover")]
    recovery = [cell("recover", case.recovers), *(f"{name}: {_spread(figures[name])}" for name in others)]
    expected = case.expected
    if result["problems"]:
        failed = f"{result['failed_repetitions']} of {result['repetitions']}"
        expected += f"; **{failed} not as expected**: {result['problems'][0]}"
    cells = [case.id, case.title, case.fault, expected, shown, cell("detect", case.detects),
             "; ".join(filter(None, recovery)), case.torchrun]
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"
