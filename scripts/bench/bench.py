"""Muster against its peers. See scripts/bench.sh for what to type.

Each file of benchmarks/ is one: its TARGETS are what Bazel has to build for it, and measure(Settings) does it.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

import machine
import report
import tools

NAMES = ("launch", "hosts", "rendezvous", "store", "tunnel", "failure", "logs", "daemon", "fleet", "training", "checkpoints",
         "parallel")
DOCS = Path("docs/benchmarks/results.md")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", description="Muster against its peers, in turns.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--pairs", type=int, default=5, help="rounds that count, after a warm-up (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: does everything run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there; those of benchmarks that "
                        "are not run now are kept")
    parser.add_argument("--write-docs", action="store_true", help=f"write {DOCS} and its plots from --json's FILE")
    parser.add_argument("--list-targets", action="store_true", help="print what Bazel has to build, and end")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark '{unknown[0]}'; there are {', '.join(NAMES)}")
    if given.pairs < 1:
        parser.error("--pairs takes a number of rounds from 1 on")
    if given.write_docs and not given.json:
        parser.error("--write-docs needs --json FILE")
    given.names = [name for name in NAMES if not given.names or name in given.names]
    return given


def main() -> None:
    given = arguments()
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in given.names}
    if given.list_targets:
        print("\n".join(dict.fromkeys(target for module in modules.values() for target in module.TARGETS)))
        return
    settings = tools.Settings(pairs=1 if given.quick else given.pairs, quick=given.quick)
    results = {}
    if given.json and given.json.exists():
        results = {entry["name"]: entry for entry in json.loads(given.json.read_text())["benchmarks"]}
    run = {}
    for name, module in modules.items():
        benchmark = module.measure(settings)
        benchmark.commands = [command.replace(tools.built_folder(), "bazel-bin") for command in benchmark.commands]
        print(report.terminal(benchmark), flush=True)
        results[name] = report.to_json(benchmark)
        run = {"machine": machine.describe(tools.built("launcher/muster"), tools.PACKAGES),
               "benchmarks": [results[known] for known in NAMES if known in results]}
        if given.json:
            given.json.write_text(json.dumps(run, indent=1) + "\n")
    if given.write_docs:
        report.write_docs(run, DOCS)


if __name__ == "__main__":
    sys.exit(main())
