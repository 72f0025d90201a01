#!/usr/bin/python3
"""Writes compile_commands.json for clangd and clang-tidy, from what Bazel would run."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What clang does not know.
GCC_ONLY = ("-fno-canonical-system-headers", "-Wno-free-nonheap-object")


def bazel(*arguments):
    return subprocess.run(["bazel", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def main():
    # Generated headers must exist to be found.
    subprocess.run(["bazel", "build", "//proto:all"], cwd=ROOT, check=True)
    actions = json.loads(bazel("aquery", "--output=jsonproto", 'mnemonic("CppCompile", //...)'))
    entries = {}
    for action in actions["actions"]:
        arguments = [a for a in action["arguments"] if a not in GCC_ONLY]
        source = arguments[arguments.index("-c") + 1]
        # A source may be compiled twice, with and without -fPIC; one of them will do.
        entries[source] = {"directory": str(ROOT), "file": source, "arguments": arguments}
    (ROOT / "compile_commands.json").write_text(
        json.dumps(sorted(entries.values(), key=lambda e: e["file"]), indent=1))
    print(f"compile_commands.json: {len(entries)} files")


if __name__ == "__main__":
    main()
