"""One rank of a training of muster-train's GPT, shared in one of the ways that PyTorch has, written to be fast.

usage: training_parallel.py WAY SHAPE TEXT

WAY: zero (ZeroRedundancyOptimizer under DistributedDataParallel), fsdp (FSDP1), tensor (DTensor) or pipeline
(torch.distributed.pipelining's GPipe); all but the first need the PyTorch of Debian 13. SHAPE is a JSON object, see
benchmarks/parallel.py. As one of the ranks that a launcher started. Rank 0 prints a JSON object: "reports", a list of
[step, Unix time, mean loss of the steps since the report before], and "torch", the version.
"""
import json
import math
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

import models

LEARNING_RATE, SEED = 0.001, 0
NEW = hasattr(functional, "scaled_dot_product_attention")  # PyTorch 2


class Attention(nn.Module):
    """That of models.py with what makes it faster: PyTorch's own operation where there is one, else a mask that is
    made once. A rank may have some of the heads alone: as they are drawn at random, it does not matter which."""

    def __init__(self, whole, context):
        super().__init__()
        self.head_width = whole.c_proj.in_features // whole.heads
        self.c_attn, self.c_proj = whole.c_attn, whole.c_proj
        self.mask = torch.ones(context, context, dtype=torch.bool).triu(1)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (-1, self.head_width)).transpose(1, 2) for part in self.c_attn(x).chunk(3, -1))
        if NEW:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(self.head_width))
            mixed = scores.masked_fill(self.mask, float("-inf")).softmax(-1) @ v
        return self.c_proj(mixed.transpose(1, 2).flatten(2))


class Part(nn.Module):
    """Some of the blocks of a GPT: with the embeddings before the first, and the head behind the last."""

    def __init__(self, net, begin, end):
        super().__init__()
        body = net.transformer
        self.blocks = nn.ModuleList(body["h"][begin:end])
        self.embeddings = nn.ModuleList([body["wte"], body["wpe"]] if begin == 0 else [])
        self.head = nn.ModuleList([body["ln_f"], net.lm_head] if end == len(body["h"]) else [])

    def forward(self, x):
        if self.embeddings:
            tokens, places = self.embeddings
            x = tokens(x) + places(torch.arange(x.shape[1]))
        for layer in (*self.blocks, *self.head):
            x = layer(x)
        return x


def adamw():
    """The fastest that there is on a CPU."""
    return {"lr": LEARNING_RATE, "weight_decay": 0.01, **({"fused": True} if NEW else {"foreach": True})}


def loss_of(scores, targets):
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def stepping(net, optimizer):
    """A step of `net`, which has the whole model or acts as if. Returns the loss."""
    def step(inputs, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(net(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def zero(net):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    ddp = DistributedDataParallel(net, gradient_as_bucket_view=True)
    return stepping(ddp, ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, parameters_as_bucket_view=True,
                                                 **adamw()))


def fsdp(net):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    wrapped = FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({models.Block}),
                                       sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.device("cpu"))
    return stepping(wrapped, torch.optim.AdamW(wrapped.parameters(), **adamw()))


def tensor(net):
    """The blocks are shared. Queries, keys and values are one matrix, so that one sum of gradients is enough."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in net.transformer["h"]:
        parallelize_module(block, mesh, {"attn.c_attn": ColwiseParallel(), "attn.c_proj": RowwiseParallel(),
                                         "mlp.c_fc": ColwiseParallel(), "mlp.c_proj": RowwiseParallel()})
    # Fused AdamW accepts either DTensors or plain tensors, not a mix.
    split = [parameter for parameter in net.parameters() if hasattr(parameter, "full_tensor")]
    whole = [parameter for parameter in net.parameters() if not hasattr(parameter, "full_tensor")]
    return stepping(net, torch.optim.AdamW([{"params": split}, {"params": whole}], **adamw()))


def pipeline(net, micro_batches):
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, ranks = dist.get_rank(), dist.get_world_size()
    layers = len(net.transformer["h"])
    part = Part(net, rank * layers // ranks, (rank + 1) * layers // ranks)
    schedule = ScheduleGPipe(PipelineStage(part, rank, ranks, torch.device("cpu")), micro_batches,
                             loss_fn=lambda y, wanted: loss_of(y, wanted) / micro_batches)  # it does not divide itself
    optimizer = torch.optim.AdamW(part.parameters(), **adamw())

    def step(inputs, targets):
        optimizer.zero_grad(set_to_none=True)
        losses = []
        schedule.step(*([inputs] if rank == 0 else []), **({"target": targets} if rank == ranks - 1 else {}),
                      losses=losses)
        optimizer.step()
        return sum(loss.item() for loss in losses)
    return step


def main(way, shape, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    context, batch_size = shape["context"], shape["batch"]
    with open(path, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    windows = text[:(len(text) - 1) // context * context].view(-1, context)
    following = text[1:len(windows) * context + 1].view(-1, context)

    torch.manual_seed(SEED)
    net = models.Gpt(256, context, shape["layers"], shape["heads"], shape["width"], tied=False)
    for block in net.transformer["h"]:
        block.attn = Attention(block.attn, context)
    shares = ranks if way in ("zero", "fsdp") else 1  # of a batch
    # Each sample's loss must count once over all ranks.
    counts = shares > 1 or rank == (ranks - 1 if way == "pipeline" else 0)
    step_on = pipeline(net, shape["micro_batches"]) if way == "pipeline" else globals()[way](net)

    sampler = DistributedSampler(windows, shares, rank % shares, seed=SEED)
    batches = torch.tensor(list(sampler)).split(batch_size // shares)
    reports, loss_sum, taken = [], 0.0, 0
    for step in range(1, shape["steps"] + 1):
        batch = batches[step - 1]
        loss_sum += step_on(windows[batch], following[batch])
        taken += 1
        if step % shape["report_every"] == 0:
            sums = torch.tensor([loss_sum, taken] if counts else [0.0, 0.0], dtype=torch.float64)
            dist.all_reduce(sums)
            reports.append([step, time.time(), (sums[0] / sums[1]).item()])
            loss_sum, taken = 0.0, 0
    if rank == 0:
        print(json.dumps({"reports": reports, "torch": torch.__version__}), flush=True)
    dist.barrier()


main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
