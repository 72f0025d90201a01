"""DistributedDataParallel for 20 steps. The first time rank 1 fails at step 5; the second time all goes well."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(100 + rank)
for step in range(20):
    if attempt == 0 and rank == 1 and step == 5:
        raise ValueError("rank 1 fails the first time")
    inputs = torch.randn(16, 8)
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

weights = [torch.zeros(1, 8) for _ in range(size)]
dist.all_gather(weights, model.module.weight.data)
assert all(torch.equal(w, weights[0]) for w in weights), weights
dist.barrier()
del model, optimizer, loss  # the reducer before its process group
print("rank %d of %d: 20 steps in attempt %d, all ranks alike" % (rank, size, attempt), flush=True)
dist.destroy_process_group()
