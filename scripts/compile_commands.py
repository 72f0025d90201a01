#!/usr/bin/python3
"""Writes compile_commands.json for clangd and clang-tidy, from what Bazel would run."""

import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Unknown to clang.
GCC_ONLY = ("-fno-canonical-system-headers", "-Wno-free-nonheap-object", "-Wno-subobject-linkage")


def bazel(*arguments):
    return subprocess.run(["bazel", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def main():
    # Generated headers must exist to be found, and units (room.bzl) to be read.
    units = bazel("query", 'kind("_unit rule", //...)').decode().split()
    subprocess.run(["bazel", "build", "//proto:all", *units], cwd=ROOT, check=True)
    built = pathlib.Path(bazel("info", "execution_root").decode().strip())
    actions = json.loads(bazel("aquery", "--output=jsonproto", 'mnemonic("CppCompile", //...)'))
    entries = {}
    for action in actions["actions"]:
        arguments = [a for a in action["arguments"] if a not in GCC_ONLY]
        source = arguments[arguments.index("-c") + 1]
        # Each source of a unit as if it were compiled alone.
        alone = re.findall(r'^#line 1 "(.*)"', (built / source).read_text(), re.M) if source.endswith("_unit.cc") else [source]
        for file in alone:
            # A source may be compiled twice, with and without -fPIC; one entry is enough.
            entries[file] = {"directory": str(ROOT), "file": file,
                             "arguments": [file if a == source else a for a in arguments]}
    (ROOT / "compile_commands.json").write_text(
        json.dumps(sorted(entries.values(), key=lambda e: e["file"]), indent=1))
    print(f"compile_commands.json: {len(entries)} files")


if __name__ == "__main__":
    main()
