#!/usr/bin/env python3
"""Writes trainer/text/unicode_ranges.cc: which code points are letters and numbers, for tokenizers.

usage: scripts/unicode_ranges.py [UnicodeData.txt] >trainer/text/unicode_ranges.cc

Debian's package unicode-data has the file in /usr/share/unicode. Format the result with clang-format -i.
"""
import sys


def assigned(path):
    """Code points and their general categories ("Lu", "Nd", ...), in order."""
    first = None
    for line in open(path, encoding="ascii"):
        fields = line.split(";")
        code, name, category = int(fields[0], 16), fields[1], fields[2]
        if name.endswith(", First>"):
            first = code
            continue
        for each in range(first if name.endswith(", Last>") else code, code + 1):
            yield each, category


def ranges(path, kind):
    """The runs of code points whose category begins with `kind`."""
    runs = []
    for code, category in assigned(path):
        if not category.startswith(kind):
            continue
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return runs


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode/UnicodeData.txt"
    print("// Made by scripts/unicode_ranges.py from Unicode 15.0's UnicodeData.txt.")
    print('#include "trainer/text/unicode_ranges.h"\n')
    print("namespace muster::trainer {\nnamespace {\n")
    for name, kind in (("kLetterRanges", "L"), ("kNumberRanges", "N")):
        runs = ", ".join("{0x%x, 0x%x}" % (low, high) for low, high in ranges(path, kind))
        print("constexpr CodeRange %s[] = {%s};\n" % (name, runs))
    print("}  // namespace\n")
    for name in ("Letter", "Number"):
        print("std::span<const CodeRange> %sRanges() {\n  return k%sRanges;\n}\n" % (name, name))
    print("}  // namespace muster::trainer")


if __name__ == "__main__":
    main()
