"""The fault harness: injects each fault of the matrix into a real job, checks what must happen, measures.

usage: chaos.py [--repeat N] [--subset ci] [--json FILE] [--write-docs] [CASE...]
       chaos.py --group ha [--repeat N] [--seed N] [--json FILE] [--write-docs]
       chaos.py --list | --docs-from FILE

Exit codes: 0 when every case that ran was as expected, 1 when one was not, 2 for a wrong command line or a missing
binary, 77 when this machine does not let us make network namespaces.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

import cases  # noqa: F401  (registers the cases)
import isolation
import report
import standbys
from case import Case, matrix
from ci import CI_CASES
from processes import TimedOut
from tools import Tools, has_feature, why_not_here
from trial import Outcome, Trial

_SKIPPED = 77
_REPEAT = 20
# A case that failed this often is not repeated.
_ENOUGH_FAILURES = 3
_DOCS = Path("docs/faults.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos.sh", description="Injects the faults of the matrix into real jobs.")
    parser.add_argument("--repeat", type=int, metavar="N",
                        help=f"repetitions of each case (default: {_REPEAT}; of a subset: 1)")
    parser.add_argument("--subset", choices=["ci"], help="the cases that every run of the tests goes through")
    parser.add_argument("--group", choices=["ha"],
                        help="instead of cases: daemons that stand by for one another, hit by --repeat faults (100) at "
                             "random")
    parser.add_argument("--seed", type=int, default=0, help="of a group (default: one at random, which is told)")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="write the results there; cases that do not run keep theirs")
    parser.add_argument("--write-docs", action="store_true", help=f"write {_DOCS}; of a group, its part of it")
    parser.add_argument("--docs-from", type=Path, metavar="FILE", help=f"write {_DOCS} from results and run no case")
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="ids such as F1 (default: all)")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace) -> list[Case]:
    known = {case.id: case for case in matrix()}
    ids = arguments.cases or (CI_CASES if arguments.subset == "ci" else list(known))
    for id in ids:
        if id not in known:
            print(f"chaos.sh: there is no case '{id}'; --list shows them", file=sys.stderr)
            sys.exit(2)
    return [known[id] for id in ids]


def _run_once(case: Case, tools: Tools) -> Outcome:
    trial = Trial(tools)
    try:
        try:
            case.run(trial)
        except (TimedOut, RuntimeError, OSError) as error:
            trial.expect(False, str(error))
        if not trial.outcome.problems:
            try:
                trial.check_shown(case.shows, case.trouble)
            except (TimedOut, RuntimeError, OSError) as error:
                trial.expect(False, str(error))
        trial.check_invariants()
    finally:
        trial.close()
    return trial.outcome


def _result(case: Case, tools: Tools, repeat: int) -> dict:
    missing = [feature for feature in case.features if not has_feature(tools, feature)]
    if missing:
        return report.waiting(case, missing)
    reasons = [reason for need in case.needs if (reason := why_not_here(need))]
    if reasons:
        return report.impossible(case, reasons)
    outcomes: list[Outcome] = []
    for _ in range(min(repeat, case.most_repeats)):
        outcomes.append(_run_once(case, tools))
        if sum(bool(outcome.problems) for outcome in outcomes) == _ENOUGH_FAILURES:
            break
    return report.result_of(case, outcomes)


def _tell_bazel(results: list[dict]) -> None:
    """Bazel names the file in which it wants each test case's result."""
    if file := os.environ.get("XML_OUTPUT_FILE"):
        report.write_xml(Path(file), results)


def _run_group(arguments: argparse.Namespace, tools: Tools) -> int:
    """Its faults need no table of cases: one world, hit again and again."""
    seed = arguments.seed or random.randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    own = standbys.OwnTools.find()
    if missing := own.missing():
        print(f"chaos.sh: there is no {', '.join(missing)}; build it first, or name another in CLOCK_JUMPS or "
              "STORE_WITNESS", file=sys.stderr)
        return 2
    result = standbys.run(tools, own, arguments.repeat or 100, seed)
    for name, figure in result["figures_ms"].items():
        print(f"{name} at who leads: {figure['times']} times, writes waited {figure['median']:.0f} ms (median), "
              f"{figure['worst']:.0f} ms (worst), goal {figure['goal']} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if arguments.write_docs:
        report.write_standbys(_DOCS, standbys.in_words(result))
    print(f"{result['injections']} faults, {result['writes']} writes acknowledged and {result['unknown']} not, "
          f"{result['calls']} calls in linearizable histories, {result['calls_unknown']} of them writes without an "
          f"answer; at who leads {result['median_ms']:.0f} ms (median), {result['worst_ms']:.0f} ms (worst); "
          f"{'nothing found' if not result['problems'] else '; '.join(result['problems'])}")
    return 1 if result["problems"] else 0


def main() -> int:
    arguments = _arguments()
    chosen = _chosen(arguments)
    if arguments.list:
        for case in chosen:
            print(f"{case.id:<9} {case.title}: {case.fault}")
        return 0
    if arguments.docs_from:
        report.write_docs(_DOCS, json.loads(arguments.docs_from.read_text(encoding="utf-8")))
        return 0
    tools = Tools.find()
    if missing := tools.missing():
        print(f"chaos.sh: there is no {', '.join(missing)}; build it first, or name another in MUSTER, MUSTERD, "
              "CHAOS_WORKER or CLOCK_SKEW", file=sys.stderr)
        return 2
    if reason := isolation.enter():
        sentence = f"this machine does not let us make network namespaces: {reason}"
        print(f"chaos.sh: skipped, {sentence}")
        _tell_bazel([report.impossible(case, [sentence]) for case in chosen])
        return _SKIPPED

    if arguments.group:
        return _run_group(arguments, tools)
    repeat = arguments.repeat or (1 if arguments.subset else _REPEAT)
    results = []
    for case in chosen:
        results.append(_result(case, tools, repeat))
        print(report.line(results[-1]), flush=True)
        # After each case, because a run is long.
        run = report.run(tools.muster, results)
        if arguments.json:
            run = report.merge(arguments.json, run)
            arguments.json.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if arguments.write_docs:
            report.write_docs(_DOCS, run)
    _tell_bazel(results)
    failed = [result["id"] for result in results if result["outcome"] == "failed"]
    passed = sum(result["outcome"] == "passed" for result in results)
    print(f"{passed} cases as expected, {len(failed)} not{': ' + ', '.join(failed) if failed else ''}, "
          f"{len(results) - passed - len(failed)} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
