"""Ten steps of torch's own optimizers.

usage: optimizers.py PREFIX OPTIMIZER...      writes tensors to the file PREFIX + OPTIMIZER for each:
  before:I, grad:STEP:I, after:I         the parameters I, and the gradients they were given
  KEY:I                                  what state_dict()['state'][I] holds in the end
and prints a line `OPTIMIZER key value` for each entry of its last group in param_groups
"""
import sys

import torch

import tensors

STEPS = 10
# A convolution, a bias, a matrix with enough elements for several threads, and a single number.
SHAPES = [(16, 3, 3, 3), (16,), (300, 301), ()]

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True),
    "decay": lambda p: torch.optim.SGD(p, 0.1, momentum=0.8, weight_decay=0.01),
    "groups": lambda p: torch.optim.SGD(
        [{"params": [q for q in p if q.dim() > 1]}, {"params": [q for q in p if q.dim() <= 1], "weight_decay": 0.0}],
        0.1, momentum=0.9, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "adamw-betas": lambda p: torch.optim.AdamW(p, 0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.0),
}


def main(kind, path):
    torch.manual_seed(5)
    dtype = torch.float64 if kind.endswith("-float64") else torch.float32
    parameters = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in SHAPES]
    out = [("before:%d" % i, p.detach().clone()) for i, p in enumerate(parameters)]
    optimizer = OPTIMIZERS[kind.replace("-float64", "")](parameters)
    for step in range(STEPS):
        for i, p in enumerate(parameters):
            # The last parameter has no gradient in the first three steps.
            p.grad = None if i == 3 and step < 3 else torch.randn(p.shape, dtype=dtype)
            if p.grad is not None:
                out.append(("grad:%d:%d" % (step, i), p.grad))
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (step + 1)
        optimizer.step()
    out += [("after:%d" % i, p) for i, p in enumerate(parameters)]
    saved = optimizer.state_dict()
    for index, state in saved["state"].items():
        out += [("%s:%d" % (key, index), value) for key, value in state.items() if value is not None]
    tensors.write(path, out)
    for key, value in saved["param_groups"][-1].items():
        print(kind, key, value)


for name in sys.argv[2:]:
    main(name, sys.argv[1] + name)
