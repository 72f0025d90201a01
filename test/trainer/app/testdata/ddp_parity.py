"""muster-train's convnet under Python's DistributedDataParallel, with --zero 1 under ZeroRedundancyOptimizer, and the
comparison of two state dicts.

usage: ddp_parity.py train --data DIR --checkpoint OUT.pt [FLAGS]
           one epoch, as one of the ranks that a launcher, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, describe;
           the flags are muster-train's of the same names
       ddp_parity.py compare A.pt B.pt
           prints the largest difference of any weight; exit code 1 unless it is 0.0

The same as  muster-train --comm=gloo --optimizer=reference --no-eval  with these flags, in every bit of every weight.
"""
import argparse
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


def parse(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--max-steps", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--algorithm", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--zero", type=int, choices=[0, 1], default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def make_optimizer(flags, parameters):
    if flags.zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        adamw = flags.algorithm == "adamw"
        own = {} if adamw else {"momentum": flags.momentum}
        kind = torch.optim.AdamW if adamw else torch.optim.SGD
        return ZeroRedundancyOptimizer(parameters, kind, lr=flags.lr, weight_decay=flags.weight_decay, **own)
    if flags.algorithm == "adamw":
        return torch.optim.AdamW(parameters, flags.lr, weight_decay=flags.weight_decay)
    return torch.optim.SGD(parameters, flags.lr, flags.momentum, weight_decay=flags.weight_decay)


def train(flags):
    torch.set_num_threads(1)
    dtype = getattr(torch, flags.dtype)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images = idx(flags.data + "/train-images-idx3-ubyte.gz").unsqueeze(1)
    labels = idx(flags.data + "/train-labels-idx1-ubyte.gz").long()
    torch.manual_seed(flags.seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    net = net.to(dtype=dtype, memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = make_optimizer(flags, net.parameters())
    sampler = torch.utils.data.DistributedSampler(images, world_size, rank, seed=flags.seed)
    indices = torch.tensor(list(sampler))
    rank_batch = flags.batch_size // world_size
    for step, begin in enumerate(range(0, len(indices), rank_batch)):
        if flags.max_steps and step == flags.max_steps:
            break
        batch = indices[begin:begin + rank_batch]
        pixels = images[batch].float().div(255).sub(0.2860).div(0.3530)
        # With one channel both layouts are the same bytes; this says which one is meant.
        pixels = pixels.view(-1, 28, 28, 1).permute(0, 3, 1, 2).to(dtype)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pixels), labels[batch]).backward()
        optimizer.step()
    if rank == 0:
        torch.save(net.state_dict(), flags.checkpoint)
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
    train(parse(sys.argv[2:]))
