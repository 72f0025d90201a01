"""One rank of a training of muster-train's networks under Python's DistributedDataParallel, on the GPU or the CPU.

usage: python_ddp.py MODEL --device cuda|cpu --data DIR --steps N [FLAGS of muster-train's names]

Networks, samples in their order, optimizer and batch are muster-train's, so parameters are, too. Prints the samples
that all ranks took in a second, over the second half of the steps.
"""
import argparse
import contextlib
import gzip
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2] / "test/trainer/models/testdata"))
import models  # noqa: E402  pylint: disable=wrong-import-position


def idx(path: str) -> torch.Tensor:
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).copy()).view(*dims)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--loss-log", default="")
    return parser.parse_args()


def main(flags: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    # muster-train's float32 is exact.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group("nccl" if flags.device == "cuda" else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = torch.device(flags.device, 0) if flags.device == "cuda" else torch.device("cpu")
    dtype = getattr(torch, flags.dtype)
    images = idx(flags.data + "/train-images-idx3-ubyte.gz").unsqueeze(1)
    labels = idx(flags.data + "/train-labels-idx1-ubyte.gz").long()
    # As in muster-train: those of the training images, to four decimals.
    shares = images.double().div(255)
    mean, deviation = round(shares.mean().item(), 4), round(shares.std(unbiased=False).item(), 4)
    torch.manual_seed(0)
    net = models.IMAGES[flags.model][0]().to(device=device, dtype=dtype, memory_format=torch.channels_last)
    ddp = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), flags.lr, flags.momentum)
    sampler = torch.utils.data.DistributedSampler(images, world_size, rank, seed=0)
    autocast = torch.autocast(flags.device, torch.bfloat16) if flags.bf16 else contextlib.nullcontext()
    step, epoch, losses = 0, 0, []
    begun, half = 0.0, flags.steps // 2
    while step < flags.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for batch in torch.tensor(list(sampler)).split(flags.batch_size // world_size):
            pixels = images[batch].float().div(255).sub(mean).div(deviation)
            # With one channel both layouts are the same bytes; this selects one.
            pixels = pixels.view(-1, 28, 28, 1).permute(0, 3, 1, 2).to(dtype)
            pixels, targets = pixels.to(device), labels[batch].to(device)
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                loss = nn.functional.cross_entropy(ddp(pixels), targets)
            loss.backward()
            optimizer.step()
            step += 1
            if flags.loss_log:
                losses.append(loss.item())
            if step in (half, flags.steps):
                loss.item()  # until the GPU is there, too
                if step == half:
                    begun = time.perf_counter()
            if step == flags.steps:
                break
    if rank == 0:
        seconds = time.perf_counter() - begun
        print(f"samples per second {(flags.steps - half) * flags.batch_size / seconds:.1f}", flush=True)
        if flags.loss_log:
            Path(flags.loss_log).write_text("".join(f"{i} {loss:.17g}\n" for i, loss in enumerate(losses, 1)))
        if flags.checkpoint:
            torch.save({name: tensor.cpu() for name, tensor in net.state_dict().items()}, flags.checkpoint)
    dist.barrier()
    dist.destroy_process_group()


main(parse())
