#!/usr/bin/python3
"""Measures the shape of the tree against its limits: files, lines, libraries, test binaries, rooms.

usage: house.py [--list]

Prints one line for each measure: what it is now, and the limit. With --list, also the files and rooms that are beyond a
limit of their own. Exits with 1 if any measure is beyond its limit.

A room is a folder of the product with sources in it; a pair is a header with the source file of the same name, or either
of the two alone. Mutants and other programs that a macro makes for tests count as what the macro makes.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("base", "launcher", "proto", "rendezvous", "trainer", "worker")
SOURCES = (".cc", ".h")
MOST_LINES_OF_A_SOURCE = 400
MOST_PAIRS_OF_A_ROOM = 25


def lines_of(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines()


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [pathlib.PurePath(name) for name in listed.splitlines() if (ROOT / name).is_file()]


def targets(kind):
    query = f"kind('{kind} rule', //...) except //third_party/..."
    found = subprocess.run(["bazel", "query", "--noshow_progress", query], cwd=ROOT, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return len(found.split())


def total(paths):
    return sum(len(lines_of(path)) for path in paths)


def main():
    parser = argparse.ArgumentParser(description="Measures the shape of the tree against its limits.")
    parser.add_argument("--list", action="store_true", help="name the files and rooms that are beyond a limit")
    arguments = parser.parse_args()

    files = tracked()
    builds = [path for path in files if path.name == "BUILD.bazel"]
    product = [path for path in files if path.parts[0] in PRODUCT and path.suffix in SOURCES]
    of_product = [path for path in files if path.parts[0] in PRODUCT]
    of_tests = [path for path in files
                if path.parts[0] == "test" and path.suffix in SOURCES + (".py", ".sh") and path not in builds]

    rooms = collections.defaultdict(set)
    for path in product:
        rooms[path.parent].add(path.stem)
    lengths = {path: len(lines_of(path)) for path in product}
    included = sum(bool(re.match(r"\s*#\s*include\b", line)) for path in product for line in lines_of(path))
    long_sources = sorted((path for path in product if lengths[path] > MOST_LINES_OF_A_SOURCE),
                          key=lambda path: -lengths[path])
    crowded = sorted((room for room in rooms if len(rooms[room]) > MOST_PAIRS_OF_A_ROOM),
                     key=lambda room: -len(rooms[room]))

    measures = [
        ("product sources and headers", len(product), 720),
        ("product lines, with BUILD files", total(of_product), 108000),
        ("test lines", total(of_tests), 100000),
        ("BUILD lines", total(builds), 3000),
        ("cc_library targets", targets("cc_library"), 60),
        ("cc_test targets", targets("cc_test"), 110),
        (f"sources over {MOST_LINES_OF_A_SOURCE} lines", len(long_sources), 0),
        (f"rooms of more than {MOST_PAIRS_OF_A_ROOM} pairs", len(crowded), 0),
        ("include lines, per cent of the product", round(100 * included / sum(lengths.values()), 1), 7),
    ]
    width = max(len(name) for name, _, _ in measures)
    for name, now, most in measures:
        print(f"{name:{width}}  {now:>8}  of {most:>6} at most{'' if now <= most else '   BEYOND'}")
    if arguments.list:
        for path in long_sources:
            print(f"{lengths[path]:6} lines  {path}")
        for room in crowded:
            print(f"{len(rooms[room]):6} pairs  {room}")
    return 0 if all(now <= most for _, now, most in measures) else 1


if __name__ == "__main__":
    sys.exit(main())
