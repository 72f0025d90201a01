"""torch.distributed.rpc: every rank calls the next one."""
import os

import torch
import torch.distributed.rpc as rpc

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
rpc.init_rpc("worker%d" % rank, rank=rank, world_size=size)
answer = rpc.rpc_sync("worker%d" % ((rank + 1) % size), torch.add, args=(torch.ones(2), rank))
assert answer.tolist() == [1 + rank] * 2, answer
rpc.shutdown()
print("rank %d of %d: rpc is right" % (rank, size), flush=True)
