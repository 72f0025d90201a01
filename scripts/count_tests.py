#!/usr/bin/python3
"""Counts the test cases of the last `bazel test //...` from the results that Bazel keeps.

usage: count_tests.py ["N passed, M failed" ...]      of what ran outside of Bazel

Prints each case that failed, then one line "N passed, M failed[, K skipped]". A target without a result
(it did not build, or it never ran) is one failed case. Exits with 1 if any failed.
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def bazel(*arguments):
    result = subprocess.run(["bazel", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=True)
    return result.stdout.split()


def results_of(folder):
    """Those of the last run: a test that has been cut into shards since, or is whole again, leaves older ones."""
    whole, shards = folder / "test.xml", sorted(folder.glob("shard_*/test.xml"))
    if not whole.exists():
        return shards
    newest = max((shard.stat().st_mtime for shard in shards), default=0)
    return [whole] if whole.stat().st_mtime > newest else shards


def main():
    logs = pathlib.Path(bazel("info", "bazel-testlogs")[0])
    passed, failed, skipped = 0, [], 0
    # //... does not run tests that are tagged "manual".
    for target in bazel("query", "tests(//...) except attr(tags, manual, //...)"):
        folder = logs / target.removeprefix("//").replace(":", "/")
        results = results_of(folder)
        if not results:
            failed.append(f"{target} (no result)")
        for result in results:
            try:
                cases = list(ElementTree.parse(result).iter("testcase"))
            except ElementTree.ParseError:
                failed.append(f"{target} (unreadable result)")
                continue
            for case in cases:
                name = f"{target} {case.get('classname', '')}.{case.get('name', '')}"
                if case.find("failure") is not None or case.find("error") is not None:
                    failed.append(name)
                elif case.find("skipped") is not None or case.get("result") == "skipped":
                    skipped += 1
                elif case.get("status") != "notrun":
                    passed += 1
    for outside in sys.argv[1:]:
        counts = re.search(r"(\d+) passed, (\d+) failed", outside)
        if counts is None:
            failed.append(f"a run outside of Bazel that ended with '{outside}'")
            continue
        passed += int(counts[1])
        failed += [outside] * int(counts[2])
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
