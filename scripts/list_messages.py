#!/usr/bin/env python3
"""Lists the sentences that Muster can say, as its sources have them.

usage: scripts/list_messages.py [FOLDER...]     (all of the product if none is named)

Prints one block for each statement that holds text for people: file, line, and the text with … for
what is filled in. To be read as a whole, as a native speaker would, before a release.
"""

import pathlib
import re
import sys

PRODUCT = ["base", "launcher", "rendezvous", "worker", "trainer"]

# The next string literal, plain or raw, comment, or character literal.
TOKEN = re.compile(
    r'R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<plain>(?:\\.|[^"\\\n])*)"'
    r"|//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])'|^[ \t]*#[^\n]*|(?P<end>[;{}])",
    re.DOTALL | re.MULTILINE)


def statements(source):
    """Yields (line, text) for each statement with string literals, in the order of the file."""
    parts, line, last = [], 0, 0
    for token in TOKEN.finditer(source):
        text = token["raw"] if token["raw"] is not None else token["plain"]
        if text is not None:
            if not parts:
                line = source.count("\n", 0, token.start()) + 1
            elif source[last:token.start()].strip():
                parts.append("…")  # something that is filled in stands between the two
            parts.append(text.replace("\\n", "\n").replace('\\"', '"'))
            last = token.end()
        elif token["end"] and parts:
            yield line, "".join(parts)
            parts = []
    if parts:
        yield line, "".join(parts)


def for_people(text):
    """Whether a text has two words beside each other, as paths, formats and names have not."""
    return re.search(r"[A-Za-z]{2,}[,:']? [A-Za-z]{2,}|[A-Za-z]{3,} …|… [A-Za-z]{3,}", text)


def main():
    count = 0
    for folder in sys.argv[1:] or PRODUCT:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            for line, text in statements(path.read_text()):
                if for_people(text):
                    count += 1
                    print(f"{path}:{line}: {text.strip()}")
    print(f"{count} messages", file=sys.stderr)


if __name__ == "__main__":
    main()
