"""PyTorch's dynamic rendezvous, the one behind torchrun: N handlers in threads of this process, over its TCPStore.

Prints a JSON object: how long it took until all nodes but one had joined, and how long from the last one's joining
until every handler had its rank. Run by Debian's Python.
"""

import json
import logging
import os
import pickle
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout

RUN_ID = "bench"
TIMEOUT = timedelta(seconds=300)
# How often to check whether the others have joined. Each check costs the store a read.
LOOK_EVERY_S = 0.02


def handler(port: int, nodes: int) -> DynamicRendezvousHandler:
    """A node's, with a connection of its own, as create_handler makes it."""
    store = TCPStore("127.0.0.1", port, None, False, TIMEOUT)
    return DynamicRendezvousHandler.from_backend(RUN_ID, store, C10dRendezvousBackend(store, RUN_ID), nodes, nodes,
                                                 RendezvousTimeout(join=TIMEOUT))


def participants(backend: C10dRendezvousBackend) -> int:
    state = backend.get_state()
    return len(pickle.loads(state[0]).participants) if state else 0


def main(nodes: int) -> None:
    logging.disable(logging.CRITICAL)
    server = TCPStore("127.0.0.1", 0, None, True, TIMEOUT, False)
    spectator = C10dRendezvousBackend(TCPStore("127.0.0.1", server.port, None, False, TIMEOUT), RUN_ID)
    handlers = [handler(server.port, nodes) for _ in range(nodes)]
    ranks: list[int | None] = [None] * nodes

    def join(node: int) -> None:
        _, ranks[node], _ = handlers[node].next_rendezvous()

    threads = [threading.Thread(target=join, args=(node,)) for node in range(nodes)]
    first = time.perf_counter()
    for thread in threads[:-1]:
        thread.start()
    while participants(spectator) < nodes - 1:
        time.sleep(LOOK_EVERY_S)
    gathering = time.perf_counter() - first

    last = time.perf_counter()
    threads[-1].start()
    for thread in threads:
        thread.join()
    last_join = time.perf_counter() - last
    if sorted(ranks) != list(range(nodes)):
        sys.exit(f"the ranks are {ranks}")
    print(json.dumps({"agents": nodes, "gathering_s": gathering, "last_join_s": last_join}), flush=True)
    # Its handlers' threads keep sending heartbeats.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
