"""Prints the losses of the first steps of muster-train's model on Fashion-MNIST, computed by PyTorch alone.

usage: reference.py DATA_DIR STEPS BATCH_SIZE LEARNING_RATE MOMENTUM SEED
"""
import gzip
import sys

import numpy
import torch
from torch import nn


def idx(path):
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).copy()).view(*dims)


def main(data_dir, steps, batch_size, learning_rate, momentum, seed):
    torch.set_num_threads(1)
    images = idx(data_dir + "/train-images-idx3-ubyte.gz").unsqueeze(1)
    labels = idx(data_dir + "/train-labels-idx1-ubyte.gz").long()
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum)
    sampler = torch.utils.data.DistributedSampler(images, 1, 0, seed=seed)
    indices = torch.tensor(list(sampler))
    for step in range(steps):
        batch = indices[step * batch_size:(step + 1) * batch_size]
        pixels = images[batch].float().div(255).sub(0.2860).div(0.3530)
        loss = nn.functional.cross_entropy(net(pixels), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step + 1, "%.9g" % loss.item())


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
