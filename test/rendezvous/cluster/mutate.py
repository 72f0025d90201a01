"""Makes one mistake in a source file: mutate.py IN OUT FROM TO [OTHERS...]. FROM must be there exactly once.

OUT includes the other sources, which are compiled with it.
"""
import pathlib
import sys

source, target, old, new, *others = sys.argv[1:]
text = pathlib.Path(source).read_text()
if text.count(old) != 1:
    sys.exit(f"mutate: '{old}' is {text.count(old)} times in {source}, and must be there once")
pathlib.Path(target).write_text("".join(f'#include "{other}"\n' for other in others) + text.replace(old, new))
