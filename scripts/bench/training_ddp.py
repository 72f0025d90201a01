"""One rank of a training of muster-train's networks under Python's DistributedDataParallel, written to be fast.

usage: training_ddp.py MODEL BATCH_SIZE STEPS REPORT_EVERY DATA_DIR [SAVE_EVERY CHECKPOINT]

As one of the ranks that torchrun started. The networks, the samples in their order, the optimizer and the batch (over
all ranks together) are muster-train's, so the losses are, too. Rank 0 prints a JSON object: "reports", a list of
[step, Unix time, mean loss of the steps since the report before], and "phases", milliseconds of a step. Behind
every SAVE_EVERY-th step rank 0 saves model and optimizer in CHECKPOINT and syncs it; the others wait for its gradients.
"""
import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DistributedSampler

sys.path.insert(0, str(Path(__file__).parents[2] / "test/trainer/models/testdata"))
import models  # noqa: E402  pylint: disable=wrong-import-position

LEARNING_RATE, MOMENTUM, SEED = 0.002, 0.9, 0


def idx(path: str) -> torch.Tensor:
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).copy()).view(*dims)


class Phases:
    """Where the time goes: in each phase from enter() to the next one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.phase, self.since = "", time.perf_counter()

    def enter(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0) + now - self.since
        self.phase, self.since = phase, now

    def milliseconds_of_a_step(self, steps: int) -> dict[str, float]:
        return {phase: seconds * 1e3 / steps for phase, seconds in self.seconds.items() if phase}


def save(net: nn.Module, optimizer: torch.optim.Optimizer, step: int, path: str) -> None:
    with open(path + ".new", "wb") as file:
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def train(model: str, batch_size: int, steps: int, report_every: int, data_dir: str, save_every: int = 0,
          checkpoint: str = "") -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # Normalized once: that costs 190 MB, and saves doing it for each batch.
    images = idx(data_dir + "/train-images-idx3-ubyte.gz").flatten(1).float().div_(255).sub_(0.2860).div_(0.3530)
    labels = idx(data_dir + "/train-labels-idx1-ubyte.gz").long()
    sampler = DistributedSampler(labels, world_size, rank, seed=SEED)

    torch.manual_seed(SEED)
    # Convolutions and pooling are faster with channels last, in Python as in muster-train.
    net = models.IMAGES[model][0]().to(memory_format=torch.channels_last)
    ddp = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE, MOMENTUM)

    phases, reports = Phases(), []
    loss_sum, samples = 0.0, 0
    step = epoch = 0
    while step < steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for batch in torch.tensor(list(sampler)).split(batch_size // world_size):
            phases.enter("data")
            # With one channel both layouts are the same bytes; this selects one.
            pixels, targets = images[batch].view(-1, 28, 28, 1).permute(0, 3, 1, 2), labels[batch]
            optimizer.zero_grad(set_to_none=True)
            phases.enter("forward")
            loss = nn.functional.cross_entropy(ddp(pixels), targets)
            phases.enter("backward")
            loss.backward()
            phases.enter("optimizer")
            optimizer.step()
            phases.enter("other")
            loss_sum += loss.item() * len(batch)
            samples += len(batch)
            step += 1
            if step % report_every == 0:
                sums = torch.tensor([loss_sum, samples], dtype=torch.float64)
                dist.all_reduce(sums)
                reports.append([step, time.time(), (sums[0] / sums[1]).item()])
                loss_sum, samples = 0.0, 0
            if save_every and step % save_every == 0 and rank == 0:
                save(net, optimizer, step, checkpoint)
            if step == steps:
                break
    if rank == 0:
        print(json.dumps({"reports": reports, "phases": phases.milliseconds_of_a_step(steps)}), flush=True)
    dist.barrier()


train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5],
      *([int(sys.argv[6]), sys.argv[7]] if len(sys.argv) > 6 else []))
