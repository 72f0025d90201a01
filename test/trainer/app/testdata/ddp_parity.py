"""muster-train's convnet under Python's DistributedDataParallel, and the comparison of two state dicts.

usage: ddp_parity.py train DATA_DIR STEPS BATCH_SIZE LEARNING_RATE MOMENTUM SEED OUT.pt
           as one of the ranks that a launcher, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, describe;
           STEPS 0: the whole epoch
       ddp_parity.py compare A.pt B.pt
           prints the largest difference of any weight; exit code 1 unless it is 0.0

The same as  muster-train --comm=gloo --optimizer=reference  with these numbers, in every bit of every weight.
"""
import gzip
import sys

import numpy
import torch
import torch.distributed as dist
from torch import nn


def idx(path):
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).copy()).view(*dims)


def train(data_dir, steps, batch_size, learning_rate, momentum, seed, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images = idx(data_dir + "/train-images-idx3-ubyte.gz").unsqueeze(1)
    labels = idx(data_dir + "/train-labels-idx1-ubyte.gz").long()
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    net = net.to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum)
    sampler = torch.utils.data.DistributedSampler(images, world_size, rank, seed=seed)
    indices = torch.tensor(list(sampler))
    rank_batch = batch_size // world_size
    for step, begin in enumerate(range(0, len(indices), rank_batch)):
        if steps and step == steps:
            break
        batch = indices[begin:begin + rank_batch]
        pixels = images[batch].float().div(255).sub(0.2860).div(0.3530)
        # With one channel both layouts are the same bytes; this says which one is meant.
        pixels = pixels.view(-1, 28, 28, 1).permute(0, 3, 1, 2)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pixels), labels[batch]).backward()
        optimizer.step()
    if rank == 0:
        torch.save(net.state_dict(), out)
    dist.barrier()


def compare(one, other):
    a, b = torch.load(one), torch.load(other)
    if list(a) != list(b):
        sys.exit("not the same names: %s, %s" % (list(a), list(b)))
    difference = max((a[name].double() - b[name].double()).abs().max().item() for name in a)
    print("largest difference of any weight:", difference)
    sys.exit(difference != 0)


if sys.argv[1] == "compare":
    compare(sys.argv[2], sys.argv[3])
else:
    train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7]),
          sys.argv[8])
