"""Trains a small model with DDP on Gloo, as scripts for torchrun do: saves now and then, and goes on from what was saved.

usage: ddp_survival.py CHECKPOINT STEPS
"""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY = 5


def main() -> None:
    path, steps = sys.argv[1], int(sys.argv[2])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    # No rank saves before all have read.
    dist.barrier()
    loss = torch.zeros(())
    while step < steps:
        # Each step's data depends on its number alone, so that a resumed run sees the same.
        data = torch.Generator().manual_seed(1000 * step + rank)
        inputs = torch.randn(8, 16, generator=data)
        targets = torch.randint(0, 4, (8,), generator=data)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % SAVE_EVERY == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(state, path + ".new")
            os.replace(path + ".new", path)
            print(f"saved {step}", flush=True)
        time.sleep(0.02)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(f"final {mean.item():.9g} restarts {os.environ['TORCHELASTIC_RESTART_COUNT']}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
