"""One of two ranks with the PyTorch of Debian 13: computes the gradients of a GPT in the ways that PyTorch has to
share a model, and compares them with those of muster-train. Started by parallel26.sh.

usage: parallel26.py FOLDER    with text, init.pt, and after a step of SGD with a learning rate of 1 tp.pt, zero.pt, pp.pt
"""

import sys

import torch
import torch.distributed as dist
from models import Gpt
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

CONTEXT, WINDOWS, LAYERS, HEADS, WIDTH = 32, 8, 2, 4, 32
MICRO_BATCHES = 4
MOST = 1e-6

folder = sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
text = torch.frombuffer(bytearray(open(folder + "/text", "rb").read()), dtype=torch.uint8).long()
init = torch.load(folder + "/init.pt")
failed = False


def fresh():
    net = Gpt(256, CONTEXT, LAYERS, HEADS, WIDTH, tied=False).double()
    net.load_state_dict(init)
    return net


def loss_of(scores, wanted):
    return functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())


def windows(shift):
    """Inputs and targets of an epoch whose windows begin `shift` tokens later."""
    return (text[first : first + WINDOWS * CONTEXT].view(WINDOWS, CONTEXT) for first in (shift, shift + 1))


def difference(file, gradients):
    ours = torch.load(f"{folder}/{file}.pt")
    return max((init[name] - ours[name] - gradient).abs().max().item() for name, gradient in gradients.items())


def compare(what, file, gradients):
    """Of the parameters that this rank has."""
    global failed
    worst = difference(file, gradients)
    everywhere = torch.tensor([worst, -len(gradients)])
    dist.all_reduce(everywhere, dist.ReduceOp.MAX)
    good = everywhere[0].item() <= MOST
    failed |= not good
    if rank == 0:
        print(f"{'ok  ' if good else 'FAIL'} {what}: largest difference of any gradient {everywhere[0].item():.1e}")


class SplitAttention(nn.Module):
    """The attention of models.py with queries, keys and values in matrices of their own: DTensor cuts rows as they
    stand."""

    def __init__(self, whole, heads):
        super().__init__()
        width = whole.c_proj.weight.shape[0]
        self.head_width = width // heads
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        for i, part in enumerate(self.parts):
            part.weight.data = whole.c_attn.weight.data[i * width : (i + 1) * width].clone()
            part.bias.data = whole.c_attn.bias.data[i * width : (i + 1) * width].clone()
        self.c_proj = whole.c_proj

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2) for part in self.parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).flatten(2))


def tensor_parallel():
    net = fresh()
    mesh = init_device_mesh("cpu", (ranks,))
    plan = {"mlp.c_fc": ColwiseParallel(), "mlp.c_proj": RowwiseParallel(), "attn.c_proj": RowwiseParallel()}
    for i in range(3):
        plan[f"attn.parts.{i}"] = ColwiseParallel()
    for block in net.transformer["h"]:
        block.attn = SplitAttention(block.attn, HEADS)
        parallelize_module(block, mesh, plan)
    loss_of(net(inputs), targets).backward()
    whole = {}
    for name, parameter in net.named_parameters():
        gradient = parameter.grad
        whole[name] = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
    for i in range(LAYERS):
        for kind in ("weight", "bias"):
            names = [f"transformer.h.{i}.attn.parts.{part}.{kind}" for part in range(3)]
            whole[f"transformer.h.{i}.attn.c_attn.{kind}"] = torch.cat([whole.pop(name) for name in names])
    compare("DTensor's tensor parallelism and --mesh tp=2", "tp", whole)


def fully_sharded():
    net = fresh()
    wrapped = FullyShardedDataParallel(
        net,
        auto_wrap_policy=ModuleWrapPolicy({type(net.transformer["h"][0])}),
        sharding_strategy=ShardingStrategy.FULL_SHARD,
        use_orig_params=True,
        device_id=torch.device("cpu"),
    )
    mine = slice(rank * WINDOWS // ranks, (rank + 1) * WINDOWS // ranks)
    loss_of(wrapped(inputs[mine]), targets[mine]).backward()
    with FullyShardedDataParallel.summon_full_params(wrapped, with_grads=True):
        whole = {n.replace("_fsdp_wrapped_module.", ""): p.grad.clone() for n, p in wrapped.named_parameters()}
    compare("FSDP1 FULL_SHARD and --zero 3", "zero", whole)


class Part(nn.Module):
    """The first or the second half of a GPT, with its names."""

    def __init__(self, net, first):
        super().__init__()
        self.first = first
        body = net.transformer
        blocks = nn.ModuleDict({str(i): body["h"][i] for i in range(LAYERS) if (i < LAYERS // 2) == first})
        own = {"wte": body["wte"], "wpe": body["wpe"], "h": blocks} if first else {"h": blocks, "ln_f": body["ln_f"]}
        self.transformer = nn.ModuleDict(own)
        if not first:
            self.lm_head = net.lm_head

    def forward(self, x):
        if self.first:
            x = self.transformer["wte"](x) + self.transformer["wpe"](torch.arange(x.shape[1]))
        for block in self.transformer["h"].values():
            x = block(x)
        return x if self.first else self.lm_head(self.transformer["ln_f"](x))


def pipeline():
    part = Part(fresh(), rank == 0)
    stage = PipelineStage(part, rank, ranks, torch.device("cpu"))
    # It does not divide by the number of micro-batches.
    schedule = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=lambda y, wanted: loss_of(y, wanted) / MICRO_BATCHES)
    if rank == 0:
        schedule.step(inputs)
    else:
        schedule.step(target=targets)
    own = {name: parameter.grad for name, parameter in part.named_parameters()}
    compare("torch.distributed.pipelining's GPipe and --mesh pp=2", "pp", own)


# muster-train picks a random start for an epoch's windows: the shift at which one process has equal
# gradients reveals it.
for shift in range(CONTEXT):
    inputs, targets = windows(shift)
    alone = fresh()
    loss_of(alone(inputs), targets).backward()
    gradients = {name: parameter.grad for name, parameter in alone.named_parameters()}
    if difference("alone", gradients) <= MOST:
        break
compare("one process", "alone", gradients)
tensor_parallel()
fully_sharded()
pipeline()
dist.barrier()
sys.exit(failed)
