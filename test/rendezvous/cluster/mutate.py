"""Makes one mistake in a source file: mutate.py IN OUT FROM TO. FROM must be there exactly once."""
import pathlib
import sys

source, target, old, new = sys.argv[1:]
text = pathlib.Path(source).read_text()
if text.count(old) != 1:
    sys.exit(f"mutate: '{old}' is {text.count(old)} times in {source}, and must be there once")
pathlib.Path(target).write_text(text.replace(old, new))
