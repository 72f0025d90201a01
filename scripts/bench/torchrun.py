"""Debian's torchrun 1.13.1 on Debian's Python 3.11, where it ends with an AttributeError as it is.

PyTorch 1.13 reads --redirects and --tee, whose default is 0, by iterating over a Flag class; since Python 3.11 that
leaves out 0 and 3. This reads them; everything else is torchrun itself.
"""

import sys

from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.run import main


def from_str(text: str) -> Std | dict[int, Std]:
    """Of "3", or of "0:3,1:0"."""
    if ":" not in text:
        return Std(int(text))
    return {int(rank): Std(int(streams)) for rank, streams in (entry.split(":") for entry in text.split(","))}


if __name__ == "__main__":
    Std.from_str = from_str
    sys.exit(main())
